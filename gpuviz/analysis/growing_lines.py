"""Lines of a program whose live memory grows, and the blocks that they keep."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.growth import FEWEST, Growth, growth
from gpuviz.analysis.iteration_ends import iteration_ends, round_ends
from gpuviz.analysis.later_use import LaterUse, Use
from gpuviz.analysis.lifetimes import Lifetimes, lifetimes
from gpuviz.analysis.touches import Touches
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

By = Literal["iteration", "cell", "recording"]

_RANGES = DICTIONARIES["ranges", "kind"]
# Ends of iterations that are compared; of more, so many that are equally far from each other.
_MOST_MARKS = 128
# Allocations of a line outside of iterations of which one can tell whether they are freed.
_FEWEST_ALLOCATIONS = 10
_LEAST_SCORE = 0.9
_ORDER = {"unused": 0, "partly": 1, "unknown": 2, "used": 3}


@dataclass(frozen=True, eq=False, slots=True)
class GrowingLine:
    """A line of the program whose live memory grows.

    Attributes:
        by: With what it grows: iterations, runs of the cell, or only with the recording.
        device: Ordinal.
        stack: A call stack of the line's latest block.
        blocks: The line's blocks that are live at the end of the last iteration or run, else of the
            recording; indices of `gpuviz.analysis.lifetimes.lifetimes`.
        live_bytes: Their bytes.
        periods: The number of iterations, or of runs of the cell; 0 if it grows with neither.
        growth: The growth; None if it grows with neither.
        score: By the rule of succession, the probability that the next block is not freed.
        use: Whether blocks that are older than three iterations were used after their own one.
        unused_bytes: The bytes of those that were not; None if that is unknown.
        used: The blocks that were; indices as in ``blocks``.
    """

    by: By
    device: int
    stack: int
    blocks: np.ndarray
    live_bytes: int
    periods: int
    growth: Growth | None
    score: float
    use: Use
    unused_bytes: int | None
    used: np.ndarray

    @property
    def certainty(self) -> str:
        """How certain it is that the memory grows: ``certain``, ``likely`` or ``possible``."""
        if self.growth is None:
            return "possible"
        return "certain" if self.growth.is_exact else "likely"


def growing_lines(recording: RecordingData, used: Touches | None = None) -> list[GrowingLine]:
    """Return the lines whose live memory grows; see `gpuviz.analysis.leaks.leaks`.

    Args:
        recording: The recording.
        used: What `gpuviz.analysis.touches.touches` returns for it, if that is known.
    """
    blocks = lifetimes(recording) if used is None else used.blocks
    if not len(blocks):
        return []
    found = _Search(recording, blocks, used).lines()
    return sorted(found, key=lambda line: (_ORDER[line.use], -line.live_bytes))


class _Search:
    """Looks for growth in the blocks of a recording, of one line and device after another."""

    def __init__(self, recording: RecordingData, blocks: Lifetimes, used: Touches | None) -> None:
        self._recording, self._blocks = recording, blocks
        self._use = LaterUse(recording, blocks, used)
        self._end = blocks.end_or_never
        self._line = self._lines_of(blocks.stack)

    def lines(self) -> Iterator[GrowingLine]:
        """Yield the growing lines, each once."""
        known = set[int]()
        marks = iteration_ends(self._recording, self._blocks, self._line)
        for line, grown, at in self._growing(marks):
            known.add(line)
            yield self._growing_line("iteration", line, marks, grown, at)
        cells = _cell_ends(self._recording)
        for line, grown, at in self._growing(cells, own=True):
            if line not in known:
                known.add(line)
                yield self._growing_line("cell", line, cells, grown, at)
        if len(marks) <= FEWEST:
            rounds = round_ends(self._recording, self._blocks)
            for line, grown, at in self._growing(rounds):
                if line not in known:
                    known.add(line)
                    yield self._growing_line("iteration", line, rounds, grown, at)
        yield from self._by_succession(known, is_loop=len(marks) > FEWEST)

    def _lines_of(self, stacks: np.ndarray) -> np.ndarray:
        """Return a number for each block, equal for those of a line on a device."""
        rows, first = numbered(stacks)
        numbers: dict[Any, int] = {}
        of_stack = []
        for stack in stacks[first].tolist():
            frame = self._recording.call_stacks.user_frame(stack)
            # A cell that runs again has another number, and perhaps other lines above this one.
            is_cell = frame is not None and frame.cell and frame.source
            site = self._recording.call_stacks.call_site(stack)[0]
            key = (frame.name, frame.source) if frame is not None and is_cell else site
            of_stack.append(numbers.setdefault(key, len(numbers)))
        lines = np.array(of_stack, np.int64)[rows]
        found: np.ndarray = numbered(lines * 64 + self._blocks.device)[0].astype(np.int64)
        return found

    def _growing(
        self, marks: np.ndarray, *, own: bool = False
    ) -> Iterator[tuple[int, Growth, np.ndarray]]:
        """Yield the lines whose levels grow from mark to mark, with the growth and their marks.

        Args:
            marks: Times in ns, ascending.
            own: Whether only those marks count for a line before which it allocated since the mark
                before.
        """
        if len(marks) <= FEWEST:
            return
        chosen = np.arange(len(marks))
        if len(marks) > _MOST_MARKS and not own:
            chosen = np.linspace(0, len(marks) - 1, _MOST_MARKS).round().astype(np.int64)
        marks, width = marks[chosen], len(chosen)
        first = np.searchsorted(marks, self._blocks.begin)
        after = np.searchsorted(marks, self._end)
        kept = np.flatnonzero(first < np.minimum(after, width))
        lines, place = np.unique(self._line[kept], return_inverse=True)
        if not lines.size:
            return
        shape = (len(lines), width + 1)
        sizes, counts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        # Rounding hides the growth of an array that is replaced by a larger one.
        requested = self._blocks.requested[kept]
        requested = np.where(requested > 0, requested, self._blocks.size[kept])
        for level, values in ((sizes, requested), (counts, 1)):
            np.add.at(level, (place, first[kept]), values)
            np.subtract.at(level, (place, after[kept]), values)
            np.cumsum(level, axis=1, out=level)
        is_own = np.ones((len(lines), width), bool)
        if own:
            position = np.searchsorted(lines, self._line)
            position = np.minimum(position, len(lines) - 1)
            ours = (lines[position] == self._line) & (first < width)
            is_own[:] = False
            is_own[position[ours], first[ours]] = True
        for row in np.flatnonzero(sizes[:, width - 1] > sizes[:, 0]).tolist():
            at = np.flatnonzero(is_own[row])
            if len(at) <= FEWEST:
                continue
            numbers = np.arange(len(at)) if own else chosen
            grown = growth(sizes[row, at], counts[row, at], numbers)
            if grown is not None:
                yield int(lines[row]), grown, at if own else np.arange(chosen[-1] + 1)

    def _growing_line(
        self, by: By, line: int, marks: np.ndarray, grown: Growth, at: np.ndarray
    ) -> GrowingLine:
        own = marks[at]
        last = own[-1]
        of_line = self._line == line
        live = np.flatnonzero(of_line & (self._blocks.begin <= last) & (self._end > last))
        return self._made(by, of_line, live, len(own), grown, self._use.of(live, own))

    def _made(  # noqa: PLR0913, PLR0917 - the parts of a line
        self,
        by: By,
        of_line: np.ndarray,
        live: np.ndarray,
        periods: int,
        grown: Growth | None,
        use: tuple[Use, int | None, np.ndarray],
    ) -> GrowingLine:
        freed = int((of_line & (self._blocks.end >= 0)).sum())
        latest = int(live[-1])
        return GrowingLine(
            by,
            int(self._blocks.device[latest]),
            int(self._blocks.stack[latest]),
            live,
            int(self._blocks.size[live].sum()),
            periods,
            grown,
            1 - (freed + 1) / (int(of_line.sum()) + 2),
            *use,
        )

    def _by_succession(self, known: set[int], *, is_loop: bool) -> Iterator[GrowingLine]:
        """Yield the lines outside of loops that free hardly any of their blocks.

        Args:
            known: Lines to leave out.
            is_loop: Whether iterations are known, so that what does not grow with them is known not
                to.
        """
        blocks = self._blocks
        if is_loop:
            return
        is_new = blocks.alloc >= self._recording.manifest.initial_events
        allocated = np.bincount(self._line, weights=is_new)
        freed = np.bincount(self._line, weights=is_new & (blocks.end >= 0))
        score = 1 - (freed + 1) / (allocated + 2)
        middle = self._middle()
        for line in np.flatnonzero(
            (allocated >= _FEWEST_ALLOCATIONS) & (score >= _LEAST_SCORE)
        ).tolist():
            if line in known:
                continue
            of_line = self._line == line
            live = np.flatnonzero(of_line & is_new & (blocks.end < 0))
            late = int((blocks.begin[live] > middle).sum())
            if late < len(live) - late:
                continue
            use = self._use.of(live, np.append(blocks.begin[live], blocks.begin[live][-1]))
            yield self._made("recording", of_line & is_new, live, 0, None, use)

    def _middle(self) -> int:
        """Return when half of the recorded operations were done; pauses do not count."""
        tables = self._recording.tables
        initial = self._recording.manifest.initial_events
        times = [
            plain(tables["memory_events"]["time"])[initial:],
            plain(tables["api_calls"]["time"]),
        ]
        done = np.concatenate(times)
        return int(np.median(done)) if done.size else 0


def _cell_ends(recording: RecordingData) -> np.ndarray:
    """Return when notebook cells ended, in ns."""
    ranges = recording.tables["ranges"]
    is_cell = codes(ranges["kind"], _RANGES) == _RANGES.index("cell")
    ends = plain(ranges["end"])[is_cell]
    # A running cell has not ended; the arrays that it holds may be its own.
    return np.sort(ends[ends >= 0])
