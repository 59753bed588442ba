"""Ranges of a torch memory snapshot."""

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.data.tables import schemas

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.formats.torch_times import Times

_OPEN = -1


class SnapshotRanges:
    """Creates ``ranges`` from ``external_annotations`` and ``user_metadata``.

    Consecutive events of a device with the same metadata form a range from the first to the last,
    unless an annotation of that name covers them.
    """

    def __init__(self, annotations: dict[str, Any], texts: list[str], times: "Times") -> None:
        self._texts = texts
        self._names: list[int] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._pair(annotations, times)
        self._annotated: dict[int, list[tuple[int, int]]] = {}
        for row, name in enumerate(self._names):
            self._annotated.setdefault(name, []).append((self._starts[row], row))
        for rows in self._annotated.values():
            rows.sort()

    def of_events(
        self, metadata: "NDArray[Any]", devices: "NDArray[Any]", times: "NDArray[Any]"
    ) -> "NDArray[Any]":
        """Return the id of each event's range; 0 if it has none."""
        ranges = np.zeros(len(metadata), np.uint32)
        if not metadata.any():
            return ranges
        changes = (np.diff(metadata) != 0) | (np.diff(devices) != 0)
        first = np.concatenate([[0], np.flatnonzero(changes) + 1])
        last = np.concatenate([first[1:], [len(metadata)]])
        for begin, end in zip(first.tolist(), last.tolist(), strict=True):
            name = int(metadata[begin])
            if name:
                start, stop = int(times[begin]), int(times[end - 1])
                ranges[begin:end] = self._covering(name, start, stop)
        return ranges

    def tables(self) -> "dict[str, pa.Table]":
        """Return the tables ``ranges`` and ``strings``."""
        known, names = np.unique(np.array(self._names, np.uint32), return_inverse=True)
        count = len(self._names)
        nothing = np.zeros(count, np.uint32)
        schema = schemas()["ranges"]
        kind = pa.array(["range"] * count, schema.field("kind").type)
        columns = {
            "id": np.arange(1, count + 1, dtype=np.uint32),
            "time": np.array(self._starts, np.int64),
            "end": np.array(self._ends, np.int64),
            "name": names.astype(np.uint32) + 1,
            "kind": kind,
            "thread": nothing,
            "parent": nothing,
        }
        strings = {
            "id": np.arange(1, len(known) + 1, dtype=np.uint32),
            "text": pa.array([self._texts[name - 1] for name in known.tolist()], pa.utf8()),
        }
        return {
            "ranges": pa.table(columns, schema=schema),
            "strings": pa.table(strings, schema=schemas()["strings"]),
        }

    def _pair(self, annotations: dict[str, Any], times: "Times") -> None:
        """Match the starts and ends of annotations; an end matches the latest start of its name."""
        opened: dict[tuple[int, int], list[int]] = {}
        moments = times.of(annotations["time_us"])
        columns = (annotations["name"], annotations["device"], annotations["is_start"], moments)
        for name, device, is_start, time in zip(*(c.tolist() for c in columns), strict=True):
            waiting = opened.setdefault((name, device), [])
            if is_start:
                waiting.append(self._add(name, time, _OPEN))
            elif waiting:
                row = waiting.pop()
                self._ends[row] = max(time, self._starts[row])
            else:
                self._add(name, 0, time)

    def _add(self, name: int, start: int, end: int) -> int:
        self._names.append(name)
        self._starts.append(start)
        self._ends.append(end)
        return len(self._names) - 1

    def _covering(self, name: int, start: int, end: int) -> int:
        rows = self._annotated.get(name, [])
        place = bisect_right(rows, (start, len(self._starts))) - 1
        if place >= 0:
            row = rows[place][1]
            if self._ends[row] >= end or self._ends[row] == _OPEN:
                return row + 1
        return self._add(name, start, end) + 1
