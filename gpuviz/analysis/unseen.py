"""When the work of the GPU is not known, because streams were recorded in windows."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuviz.analysis.intervals import Intervals
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES, Tables

TABLE = "unrecorded_spans"
# The tables beside those of `gpuviz.data.derived.SOURCES` that say when streams were recorded.
FURTHER = (TABLE, "graph_calls")
_LIMIT = 2**60
_KINDS = DICTIONARIES["activities", "kind"]
_WAITS = DICTIONARIES["synchronizations", "kind"]
_GRAPH_CALLS = DICTIONARIES["graph_calls", "kind"]
# Calls that always have an activity if they succeed, and those that have one if they do anything.
_LAUNCH = re.compile(r"cu(da)?(Graph)?Launch(?!Host)")
_WORK = re.compile(r"cu(da)?((Graph)?Launch(?!Host)|Memcpy|Memset)")


class Part(NamedTuple):
    """A time in which the work of the GPU is known.

    Attributes:
        begin: Its begin in ns.
        end: Its end in ns.
        tables: The tables of the recording, with only the activities, calls and synchronizations
            that may have to do with it.
        rows: The numbers of these activities in the recording.
    """

    begin: int
    end: int
    tables: Tables
    rows: np.ndarray


def is_whole(tables: Tables) -> bool:
    """Return whether streams were recorded all the time."""
    return TABLE not in tables or not tables[TABLE].num_rows


def unseen_in(tables: Tables) -> Intervals:
    """Return when it is not known what the GPUs did, from the tables of a recording.

    That is longer than the time in which streams were not recorded. Work that was launched before a
    window may run in it: the window counts from when each stream with work in it or in the window
    before has begun something that was launched in the window, or has nothing left, because the
    host waited for it. And it counts until the first call whose work did not arrive, as that may
    have run on. A window in which nothing was launched does not count.
    """
    if is_whole(tables):
        none = np.zeros(0, np.int64)
        return Intervals(none, none)
    return _Windows(tables).unseen


def parts(tables: Tables, window: tuple[int, int] | None) -> Iterator[Part]:
    """Yield the parts of a window in which the work of the GPU is known, in order.

    Args:
        tables: Tables of which `is_whole` is false.
        window: Its begin and end in ns; from the first activity to the end of the last if None.
    """
    found = _Windows(tables)
    begin, end = extent(tables) if window is None else window
    whole = Intervals(np.array([begin]), np.array([max(begin, end)]))
    seen = whole.without(found.unseen)
    for first, last in zip(seen.begin.tolist(), seen.end.tolist(), strict=True):
        yield found.part(first, last)


def unseen_spans(tables: Tables, window: tuple[int, int] | None = None) -> dict[str, np.ndarray]:
    """Return the columns of the derived table of this name, within a window if one is given."""
    found = unseen_in(tables)
    known = (("activities", "end"), ("api_calls", "end"), ("memory_events", "time"))
    ends = (int(plain(tables[name][column]).max(initial=0)) for name, column in known)
    bounds = (0, max(ends)) if window is None else window
    begin, end = np.clip(found.begin, *bounds), np.clip(found.end, *bounds)
    return {"time": begin[begin < end], "end": end[begin < end]}


def extent(tables: Tables) -> tuple[int, int]:
    """Return the begin of the first activity and the end of the last one, without ranges."""
    activities = tables["activities"]
    is_work = codes(activities["kind"], _KINDS) != _KINDS.index("range")
    begin, end = (plain(activities[name])[is_work] for name in ("time", "end"))
    return (int(begin.min()), int(end.max())) if len(begin) else (0, 0)


class _Windows:
    """The windows in which streams were recorded, and the rows of each."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        spans = tables[TABLE]
        self._is_settled = bool(plain(spans["settled"]).all())
        begin, end = _last_of_each(spans)
        # Each is from the end of a span to the begin of the next one.
        self._first, self._last = np.append(-_LIMIT, end), np.append(begin, _LIMIT)
        activities, calls = tables["activities"], tables["api_calls"]
        waits = tables["synchronizations"]
        self._begin, self._end = plain(activities["time"]), plain(activities["end"])
        self._called, self._ids = plain(calls["time"]), plain(calls["correlation"])
        if self._is_settled:
            # What runs in a window may have been called before it.
            every = [np.arange(len(self._called))] * len(self._first)
            self._rows = {
                "activities": self._by_window(self._end),
                "api_calls": every,
                "synchronizations": [np.arange(waits.num_rows)] * len(self._first),
            }
            return
        called = self._when_called(plain(activities["correlation"]), self._begin)
        waited = self._when_called(plain(waits["correlation"]), plain(waits["time"]))
        self._rows = {
            "activities": self._by_window(called),
            "api_calls": self._by_window(self._called),
            "synchronizations": self._by_window(waited),
        }

    def _when_called(self, correlation: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """Return when the call of each row began, or another time if that is not known."""
        call = first_rows(self._ids, correlation)
        times: np.ndarray = np.where(call >= 0, np.append(self._called, 0)[call], otherwise)
        return times

    def _by_window(self, times: np.ndarray) -> list[np.ndarray]:
        """Return the rows of each window, given a time of each row."""
        window = np.searchsorted(self._first, times, side="right") - 1
        order = np.argsort(window, kind="stable")
        edges = np.searchsorted(window[order], np.arange(1, len(self._first)))
        return np.split(order, edges)

    def part(self, begin: int, end: int) -> Part:
        """Return a part of a window with its rows."""
        at = int(np.searchsorted(self._first, begin, side="right")) - 1
        chosen = {name: rows[at] for name, rows in self._rows.items()}
        own = {name: self._tables[name].take(rows) for name, rows in chosen.items()}
        return Part(begin, end, dict(self._tables) | own, chosen["activities"])

    @cached_property
    def unseen(self) -> Intervals:
        """When it is not known what the GPUs did."""
        seen = [(self._since(at), self._until(at)) for at in range(len(self._first))]
        since, until = (np.array([window[side] for window in seen]) for side in (0, 1))
        until = np.maximum(until, since)
        return Intervals(until[:-1], since[1:])

    def _since(self, at: int) -> int:
        """Return when all work that was launched before a window had ended; its end if unknown."""
        on, off = int(self._first[at]), int(self._last[at])
        if self._is_settled or at == 0:
            return on
        ours = self._by_stream(at)
        if not ours:
            return off
        waits = self._waits(at)
        since = on
        for stream, device in ours.keys() | self._by_stream(at - 1).keys():
            # The order of the work of an unknown stream is unknown.
            began = ours.get((stream, device), off) if stream else off
            waited = (waits.get(key, off) for key in (("stream", stream), ("device", device)))
            since = max(since, min(began, *waited))
        return since

    def _by_stream(self, at: int) -> dict[tuple[int, int], int]:
        """Return when each stream began the first work that was launched in a window."""
        activities = self._tables["activities"]
        is_work = codes(activities["kind"], _KINDS) != _KINDS.index("range")
        rows = self._rows["activities"][at]
        call = first_rows(self._ids, plain(activities["correlation"])[rows])
        rows = rows[is_work[rows] & (call >= 0)]
        found: dict[tuple[int, int], int] = {}
        names = (plain(activities[name])[rows].tolist() for name in ("stream", "device", "time"))
        for stream, device, time in zip(*names, strict=True):
            found[stream, device] = min(found.get((stream, device), _LIMIT), time)
        return found

    def _waits(self, at: int) -> dict[tuple[str, int], int]:
        """Return when the host had first waited for a stream, or for all of a device."""
        waits = self._tables["synchronizations"].take(self._rows["synchronizations"][at])
        kinds = codes(waits["kind"], _WAITS)
        found: dict[tuple[str, int], int] = {}
        for kind, of in (("stream_synchronize", "stream"), ("context_synchronize", "device")):
            rows = np.flatnonzero(kinds == _WAITS.index(kind))
            for which, end in zip(
                plain(waits[of])[rows].tolist(), plain(waits["end"])[rows].tolist(), strict=True
            ):
                found[of, which] = min(found.get((of, which), _LIMIT), end)
        return found

    def _until(self, at: int) -> int:
        """Return when the first call was made whose work did not arrive; else the window's end."""
        off = int(self._last[at])
        if self._is_settled:
            return off
        lost = self._lost[np.searchsorted(self._lost, int(self._first[at])) :]
        return min(off, int(lost[0])) if len(lost) else off

    @cached_property
    def _lost(self) -> np.ndarray:
        """When the calls were made whose work did not arrive, in order."""
        graphs = self._tables.get("graph_calls")
        captured = np.zeros(0, np.uint32)
        if graphs is not None:
            is_launch = codes(graphs["kind"], _GRAPH_CALLS) == _GRAPH_CALLS.index("launch")
            captured = plain(graphs["correlation"])[~is_launch]
        names, of_call = np.unique(plain(self._tables["api_calls"]["name"]), return_inverse=True)
        named = texts(self._tables, names)
        launches, works = (
            np.array([rule.match(text) is not None for text in named], bool)[of_call]
            for rule in (_LAUNCH, _WORK)
        )
        arrived = plain(self._tables["activities"]["correlation"])
        lost = ~np.isin(self._ids, arrived) & ~np.isin(self._ids, captured) & (self._ids != 0)
        # A copy of no bytes has no activity, but what was called after all others may still run.
        lost &= launches | (works & (self._ids > arrived.max(initial=0)))
        return np.sort(self._called[lost])


def _last_of_each(spans: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the begins and ends of spans in order; of several rows of one, the last counts."""
    known = {row["id"]: (row["time"], row["end"]) for row in spans.to_pylist()}
    edges = np.array(sorted(known.values()), np.int64)
    begin, end = edges[:, 0], edges[:, 1]
    return begin, np.where(end < 0, _LIMIT, np.maximum(begin, end))
