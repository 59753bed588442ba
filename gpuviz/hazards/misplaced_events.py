"""Events that were meant to order two operations and do not: recorded or waited for elsewhere."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["synchronizations", "kind"]
# The event in a line that makes a stream wait for one.
_AWAITED = re.compile(r"\.wait_event\(\s*([\w.\[\]]+)\s*\)|([\w.\[\]]+)\.wait\(")
# The names in a line that records an event: what it assigns to, the object, the argument.
_RECORDED = re.compile(r"(?:([\w.]+)\s*=\s*)?([\w.]+)\.record\(\s*([\w.]+)?\s*\)")


@dataclass(frozen=True, slots=True)
class Issued:
    """When the host issued an operation, and the id of its stream."""

    time: int
    stream: int


@dataclass(frozen=True, slots=True)
class MisplacedEvent:
    """An event whose wait does not order two operations.

    Attributes:
        mistake: As ``mistake`` of `gpuviz.hazards.hazard.EventInLines`.
        record: The call stack of the record.
        wait: The call stack of the wait.
        stream: The id of the stream that recorded it.
    """

    mistake: Literal["early", "late", "elsewhere", "again"]
    record: int
    wait: int
    stream: int


def event_name(waiting: str) -> str:
    """Return what a line that makes a stream wait calls the event; empty if it has no name."""
    found = _AWAITED.search(waiting)
    return found[1] or found[2] if found else ""


def _names(recording: str) -> set[str]:
    found = _RECORDED.search(recording)
    return {each for each in found.groups() if each} if found else set()


class EventUses:
    """The event records and waits of the streams of a recording."""

    def __init__(self, recording: RecordingData) -> None:
        self._call_site = recording.call_stacks.call_site
        self._tables = tables = recording.tables
        table, calls = tables["synchronizations"], tables["api_calls"]
        call = first_rows(plain(calls["correlation"]), plain(table["correlation"]))
        kind = codes(table["kind"], _KINDS)
        self._columns: dict[str, np.ndarray] = {
            "time": np.append(plain(calls["time"]), 0)[call],
            "stack": np.append(plain(calls["stack"]), 0)[call],
            "stream": plain(table["stream"]),
            "event": plain(table["event_sync_id"]).astype(np.int64),
        }
        is_known = (call >= 0) & (self._columns["event"] != 0)
        self._records, self._waits = (
            self._in_order(np.flatnonzero(is_known & (kind == _KINDS.index(name))))
            for name in ("event_record", "stream_wait_event")
        )

    def _in_order(self, rows: np.ndarray) -> np.ndarray:
        ordered: np.ndarray = rows[np.argsort(self._columns["time"][rows], kind="stable")]
        return ordered

    @cached_property
    def _work(self) -> tuple[np.ndarray, np.ndarray]:
        """When work was issued, in order, and its streams."""
        calls, activities = self._tables["api_calls"], self._tables["activities"]
        call = first_rows(plain(calls["correlation"]), plain(activities["correlation"]))
        rows = np.flatnonzero(call >= 0)
        times, streams = plain(calls["time"])[call[rows]], plain(activities["stream"])[rows]
        order = np.argsort(times)
        return times[order], streams[order]

    def issued(self, activity: int, stream: int) -> Issued | None:
        """Return when an activity of a stream was issued; None if it is not known."""
        if activity < 0:
            return None
        correlation = self._tables["activities"]["correlation"][activity].as_py()
        calls = self._tables["api_calls"]
        rows = np.flatnonzero(plain(calls["correlation"]) == correlation)
        return Issued(calls["time"][int(rows[0])].as_py(), stream) if len(rows) else None

    def orders(self, first: Issued, second: Issued) -> bool:
        """Return whether an event orders two operations, or one stream that both are in."""
        if first.stream == second.stream:
            return first.time <= second.time
        time, stream, event = (self._columns[name] for name in ("time", "stream", "event"))
        records = self._records[stream[self._records] == first.stream]
        records = records[time[records] > first.time]
        waits = self._waits[stream[self._waits] == second.stream]
        waits = waits[(time[waits] < second.time) & np.isin(event[waits], event[records])]
        recorded = time[records[first_rows(event[records], event[waits])]]
        return bool(np.any(recorded < time[waits]))

    def misplaced(self, first: Issued, second: Issued) -> MisplacedEvent | None:
        """Return the event that would order two operations in another place; None if unknown."""
        time, stream, event = (self._columns[name] for name in ("time", "stream", "event"))
        waits = self._waits[stream[self._waits] == second.stream]
        between = waits[(time[waits] > first.time) & (time[waits] < second.time)]
        for wait in between[::-1].tolist():
            records = self._records[event[self._records] == event[wait]]
            for record in records[time[records] < time[wait]][-1:].tolist():
                is_of_first = stream[record] == first.stream
                if not is_of_first and self._is_again(record, wait, first):
                    return self._found("again", record, wait)
                if is_of_first and time[record] < first.time:
                    return self._found("early", record, wait)
                if not is_of_first and time[record] > first.time and self._is_idle(record, second):
                    return self._found("elsewhere", record, wait)
        records = self._records[stream[self._records] == first.stream]
        records = records[(time[records] > first.time) & (time[records] < second.time)]
        late = waits[(time[waits] > second.time) & np.isin(event[waits], event[records])]
        if not late.size:
            return None
        (record,) = records[event[records] == event[late[0]]][:1].tolist()
        return self._found("late", record, int(late[0]))

    def _is_again(self, record: int, wait: int, first: Issued) -> bool:
        """Return whether an event of the same name was recorded after an operation before that.

        Handles of events are used again, so that only the lines of a function can show it.
        """
        time, stream, stack = (self._columns[name] for name in ("time", "stream", "stack"))
        records = self._records[stream[self._records] == first.stream]
        records = records[(time[records] > first.time) & (time[records] < time[record])]
        site, source = self._call_site(int(stack[wait]))
        function, name = site.rpartition(":")[0], event_name(source)

        def names_it(row: int) -> bool:
            site, source = self._call_site(int(stack[row]))
            return site.rpartition(":")[0] == function and name in _names(source)

        return bool(name) and names_it(record) and any(map(names_it, records.tolist()))

    def _is_idle(self, record: int, second: Issued) -> bool:
        """Return whether a record covers no work that the waiting stream is not after anyway."""
        stream, time = (int(self._columns[name][record]) for name in ("stream", "time"))
        if stream == second.stream:
            return True
        times, streams = self._work
        before = np.searchsorted(times, time)
        return not bool(np.any(streams[:before] == stream))

    def _found(
        self, mistake: Literal["early", "late", "elsewhere", "again"], record: int, wait: int
    ) -> MisplacedEvent:
        stack, stream = (self._columns[name] for name in ("stack", "stream"))
        return MisplacedEvent(mistake, int(stack[record]), int(stack[wait]), int(stream[record]))


event_uses = Once(EventUses)
