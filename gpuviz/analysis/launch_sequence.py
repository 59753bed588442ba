"""The launches of a recording in the order of their calls."""

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import calls_of, durations, phases_of, stacks_of, user_frames
from gpuviz.data.codes import PHASES
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]


class LaunchSequence:
    """The activities of a recording whose launch calls are known, in the order of the calls.

    Args:
        recording: The recording.
        thread: Only the launches of this thread, if given.
    """

    def __init__(self, recording: RecordingData, thread: int | None = None) -> None:
        tables = recording.tables
        activities = tables["activities"]
        calls = calls_of(tables, plain(activities["correlation"]))
        kinds = codes(activities["kind"], _KINDS)
        rows = np.flatnonzero((calls >= 0) & (kinds != _KINDS.index("range")))
        called = plain(tables["api_calls"]["time"])[calls[rows]]
        if recording.bounds is not None:
            first, last = recording.bounds
            inside = (called >= first) & (called <= last)
            rows, called = rows[inside], called[inside]
        if thread is not None:
            own = plain(tables["api_calls"]["thread"])[calls[rows]] == thread
            rows, called = rows[own], called[own]
        rows = rows[np.argsort(called, kind="stable")]
        self._recording = recording
        self._rows = rows
        self._calls = calls[rows]
        self.called = plain(tables["api_calls"]["time"])[self._calls]
        self.returned = np.maximum(plain(tables["api_calls"]["end"])[self._calls], self.called + 1)
        self.kinds = kinds[rows]

    def ends(self) -> np.ndarray:
        """Return when each launch and its work have ended."""
        ended: np.ndarray = np.maximum(
            self.returned, plain(self._recording.tables["activities"]["end"])[self._rows]
        )
        return ended

    def starts(self) -> np.ndarray:
        """Return when the work of each launch began, not before that of an earlier launch."""
        began = plain(self._recording.tables["activities"]["time"])[self._rows]
        started: np.ndarray = np.maximum.accumulate(np.maximum(began, self.called))
        return started

    def threads(self) -> np.ndarray:
        """Return the thread of each launch."""
        threads: np.ndarray = plain(self._recording.tables["api_calls"]["thread"])[self._calls]
        return threads

    def indentation(self, inner: int, outer: int) -> tuple[int, int] | None:
        """Return the indentation, in characters, of two launches' lines where their calls part.

        None if that is unknown, or not in one function.
        """
        frames = _indented_frames(self._recording)
        stacks = self._recording.tables["stacks"]
        ids = stacks_of(self._recording.tables, self._calls[[inner, outer]])
        rows = first_rows(plain(stacks["id"]), ids)
        if (rows < 0).any():
            return None
        calls = (reversed(stacks["frames"][row].as_py()) for row in rows.tolist())
        for one, other in zip(*calls, strict=False):
            if one == other:
                continue
            left, right = frames.get(one), frames.get(other)
            if left is None or right is None or left[0] != right[0]:
                return None
            return left[1], right[1]
        return None

    def lines(self) -> np.ndarray:
        """Return the id in ``frames`` of the user's line of each launch; 0 if unknown."""
        tables = self._recording.tables
        return user_frames(tables, stacks_of(tables, self._calls))

    def phases(self) -> np.ndarray:
        """Return the position in ``PHASES`` of the part of a training step of each launch."""
        tables = self._recording.tables
        return phases_of(tables, stacks_of(tables, self._calls))

    def sites(self) -> np.ndarray:
        """Return a number for each launch, equal for kernels, or copies, of the same line.

        Names do not matter: libraries compile one kernel for each size of an array.
        """
        numbers: np.ndarray = numbered(self.lines() * len(_KINDS) + self.kinds)[0]
        return numbers

    def stacks(self) -> np.ndarray:
        """Return a number for each launch, equal for kernels, or copies, of the same call stack."""
        return numbered(stacks_of(self._recording.tables, self._calls), self.kinds)[0]

    def kernels(self) -> np.ndarray:
        """Return a number for each launch, equal for those of the same name and call stack."""
        names = plain(self._recording.tables["activities"]["name"])[self._rows]
        return numbered(self.stacks(), names)[0]

    def totals(self, device: int, start: np.ndarray, end: np.ndarray) -> dict[str, np.ndarray]:
        """Return what a device did for the launches of which the calls are in spans, in order."""
        activities = self._recording.tables["activities"]
        at = np.searchsorted(start, self.called, side="right") - 1
        inside = (at >= 0) & (self.called < end[at])
        inside &= plain(activities["device"])[self._rows] == device
        copies = self.kinds == _KINDS.index("memcpy")
        kernels = np.isin(self.kinds, [_KINDS.index(kind) for kind in ("kernel", "graph")])
        lengths = durations(activities)[self._rows]
        sizes = plain(activities["bytes"])[self._rows]
        of_phase = self.phases()

        def sums(chosen: np.ndarray, values: np.ndarray) -> np.ndarray:
            total = np.zeros(len(start), np.int64)
            np.add.at(total, at[chosen], values[chosen])
            return total

        return {
            "kernel_ns": sums(inside & kernels, lengths),
            "kernel_count": sums(inside & kernels, np.ones(len(at), np.int64)),
            "copy_ns": sums(inside & copies, lengths),
            "copy_bytes": sums(inside & copies, sizes),
        } | {
            f"{name}_ns": sums(inside & kernels & (of_phase == PHASES.index(name)), lengths)
            for name in filter(None, PHASES)
        }


@Once
def _indented_frames(recording: RecordingData) -> dict[int, tuple[tuple[str, str], int]]:
    """Return the function and the indentation of each frame whose source is known, by id."""
    names = ("id", "name", "filename", "line", "context", "context_line")
    columns = [recording.tables["frames"][name].to_pylist() for name in names]
    found = {}
    for number, name, filename, line, context, first in zip(*columns, strict=True):
        lines = context.split("\n")
        if context and 0 <= line - first < len(lines):
            text = lines[line - first]
            found[number] = ((name, filename), len(text) - len(text.lstrip()))
    return found
