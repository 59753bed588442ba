"""The tables of a recording from the rows of RMM's CSV log."""

import re
from array import array
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.data.manifest import Manifest
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import ACTIONS, DICTIONARIES, FRAMEWORKS, schemas

_DAY_NS = 86_400 * 10**9
# Times that decrease by more mean that the log passed midnight; by less, that a thread logged late.
_LATEST_NS = _DAY_NS // 2
_CLOCK = re.compile(r"(?:(\d{4}-\d\d-\d\d)[ T])?(\d{1,2}):(\d\d):(\d\d)(?:[.:,](\d{1,9}))?")
_SECONDS = re.compile(r"(\d{1,10})(?:\.(\d{1,9})\d*)?")
_NOWHERE = frozenset(("", "0", "0x0", "(nil)", "nil", "null", "none"))
_END_OF_MEMORY = 1 << 60
_HIGHEST_THREAD = 2**32 - 1
_ALLOC, _OOM = ACTIONS.index("alloc"), ACTIONS.index("oom")
_FREES = (ACTIONS.index("free_requested"), ACTIONS.index("free_completed"))
_ACTION_NAMES = {
    "allocate": (_ALLOC,),
    "free": _FREES,
    "deallocate": _FREES,
    "allocate failure": (_OOM,),
}
_NO_SEGMENTS = "RMM's log contains requested blocks only; the memory that RMM reserves is unknown."


class RowError(ValueError):
    """A line of the log is invalid."""


class LogRows:
    """Collects the lines of a log in order."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._columns = {name: array("q") for name in ("time", "action", "size", "thread")}
        self._columns |= {name: array("Q") for name in ("address", "stream")}
        self._live: dict[int, int] = {}
        self._before: dict[int, tuple[int, int]] = {}
        self._threads: dict[str, int] = {}
        self._start: int | None = None
        self._is_unix = False
        self._last = 0
        self._days = 0
        self._empty = 0

    def add(self, values: list[str]) -> None:
        """Add a line: thread, time, action, pointer, size, stream.

        Raises:
            RowError: A value is invalid.
        """
        thread, time, action, pointer, size, stream = (value.strip() for value in values)
        codes = _ACTION_NAMES.get(action.lower())
        if codes is None:
            raise RowError(f"action {action!r}; expected {', '.join(_ACTION_NAMES)}")
        count = _number(size, "size", 10)
        address = 0 if codes == (_OOM,) else _number(pointer, "pointer", 16)
        handle = _number(stream, "stream", 16 if stream[:2].lower() == "0x" else 10)
        now = self._time(time)
        if count == 0:
            self._empty += 1
            return
        if codes == (_ALLOC,):
            self._live[address] = count
        elif codes == _FREES and self._live.pop(address, None) is None:
            self._before.setdefault(address, (count, handle))
        for code in codes:
            row = (now, code, count, self._thread(thread), address, handle)
            for column, value in zip(self._columns.values(), row, strict=True):
                column.append(value)

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables of the recording."""
        columns = {name: np.array(values) for name, values in self._with_before().items()}
        handles, streams = np.unique(columns["stream"], return_inverse=True)
        schema = schemas()["memory_events"]
        nothing = np.zeros(len(handles[streams]), np.uint32)
        columns |= {"stream": streams + 1, "requested_size": columns["size"]}
        columns["device"] = nothing + self._device
        actions = pa.array(columns["action"], pa.int8())
        arrays = {
            field.name: pa.array(columns.get(field.name, nothing), field.type)
            for field in schema
            if ("memory_events", field.name) not in DICTIONARIES
        }
        arrays["action"] = pa.DictionaryArray.from_arrays(actions, pa.array(ACTIONS))
        owners = pa.array(nothing + FRAMEWORKS.index("rmm"), pa.int8())
        arrays["framework"] = pa.DictionaryArray.from_arrays(owners, pa.array(FRAMEWORKS))
        rows = {
            "streams": [
                stream_row(number, self._device, handle)
                for number, handle in enumerate(handles.tolist(), 1)
            ],
            "devices": [{"id": self._device, "name": "", "total_memory": 0, "kind": "cuda"}],
            "pools": [{"id": 0, "owner": 0, "segment_type": "unknown", "framework": "rmm"}],
            "threads": self._thread_rows(),
        }
        return {
            "memory_events": pa.table([arrays[name] for name in schema.names], schema=schema),
            **{name: pa.Table.from_pylist(r, schema=schemas()[name]) for name, r in rows.items()},
        }

    def manifest(self) -> Manifest:
        """Return the manifest of the recording."""
        start = self._start or 0
        times = self._columns["time"]
        notes = [_NO_SEGMENTS]
        if self._before:
            notes.append(
                f"{len(self._before)} blocks were allocated before the start of RMM's log."
            )
        if self._empty:
            notes.append(f"{self._empty} lines of RMM's log have 0 bytes and were left out.")
        return Manifest(
            created=datetime.fromtimestamp(start / 1e9, UTC).isoformat() if self._is_unix else "",
            start_unix_ns=start if self._is_unix else 0,
            duration_ns=max(times, default=0),
            allocator="observe",
            allocator_name="RMM",
            events=len(self._before) + len(times),
            initial_events=len(self._before),
            notes=tuple(notes),
        )

    def _with_before(self) -> dict[str, Any]:
        before = {
            "time": [0] * len(self._before),
            "action": [_ALLOC] * len(self._before),
            "size": [size for size, _ in self._before.values()],
            "thread": [0] * len(self._before),
            "address": list(self._before),
            "stream": [stream for _, stream in self._before.values()],
        }
        return {
            name: array(column.typecode, before[name]) + column
            for name, column in self._columns.items()
        }

    def _time(self, text: str) -> int:
        """Return ns since the first line; at least the time of the previous line."""
        clock = _CLOCK.fullmatch(text)
        seconds = _SECONDS.fullmatch(text)
        if clock:
            date, hour, minute, second, fraction = clock.groups()
            whole = (int(hour) * 60 + int(minute)) * 60 + int(second)
            if date:
                whole += int(_midnight(date).timestamp())
            self._is_unix = bool(date)
        elif seconds:
            whole, fraction = int(seconds[1]), seconds[2]
            self._is_unix = True
        else:
            raise RowError(f"time {text!r}; expected HH:MM:SS.ffffff or seconds since 1970")
        now = whole * 10**9 + int((fraction or "0").ljust(9, "0"))
        if self._start is None:
            self._start = now
        since = now - self._start + self._days * _DAY_NS
        if not self._is_unix and since < self._last - _LATEST_NS:
            self._days += 1
            since += _DAY_NS
        self._last = max(self._last, since)
        return self._last

    def _thread(self, text: str) -> int:
        """Return the thread's id; a handle too large for the column is replaced by a number."""
        if text not in self._threads:
            number = _number(text, "thread", 10)  # 0 if unknown
            fits = number <= _HIGHEST_THREAD
            self._threads[text] = number if fits else len(self._threads) + 1
        return self._threads[text]

    def _thread_rows(self) -> list[dict[str, Any]]:
        names = {
            number: "" if text == str(number) else f"thread {text}"
            for text, number in self._threads.items()
        }
        return [{"id": number, "name": name} for number, name in names.items() if number]


def _midnight(date: str) -> datetime:
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC)
    except ValueError:
        raise RowError(f"date {date!r}; expected YYYY-MM-DD") from None


def _number(text: str, name: str, base: int) -> int:
    if text.lower() in _NOWHERE:
        return 0
    try:
        number = int(text, base)
    except ValueError:
        raise RowError(f"{name} {text!r}; expected a number of base {base}") from None
    limit = 1 << 64 if name in {"stream", "thread"} else _END_OF_MEMORY
    if not 0 <= number < limit:
        raise RowError(f"{name} {text!r}; expected at least 0 and below {limit:#x}")
    return number
