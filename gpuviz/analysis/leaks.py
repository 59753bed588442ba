"""Lines of a program whose memory grows with its iterations, or with the runs of a cell."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.growth import FEWEST, Growth, growth
from gpuviz.analysis.lifetimes import Lifetimes, lifetimes
from gpuviz.analysis.main_loop import host_spans
from gpuviz.analysis.periods import repeats
from gpuviz.analysis.processes import processes
from gpuviz.analysis.touches import Touches, touches
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

By = Literal["iteration", "cell", "recording"]
Use = Literal["unused", "partly", "used", "unknown"]

_RANGES = DICTIONARIES["ranges", "kind"]
# Ends of iterations that are compared; of more, so many that are equally far from each other.
_MOST_MARKS = 128
# A block that was not used for fewer iterations may be used by the next one.
LEAST_AGE = 3
# Allocations of a line outside of iterations of which one can tell whether they are freed.
_FEWEST_ALLOCATIONS = 10
_LEAST_SCORE = 0.9
# A line with more lines of the program in its period is one of a loop.
_FEWEST_LINES = 2
# Of the iterations, those that free at most as much after their last launch as is usual.
_USUAL = 0.75
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
    blocks: "NDArray[Any]"
    live_bytes: int
    periods: int
    growth: Growth | None
    score: float
    use: Use
    unused_bytes: int | None
    used: "NDArray[Any]"

    @property
    def certainty(self) -> str:
        """How certain it is that the memory grows: ``certain``, ``likely`` or ``possible``."""
        if self.growth is None:
            return "possible"
        return "certain" if self.growth.is_exact else "likely"


def leaks(
    recording: "RecordingData",
    device: int | None = None,
    holders: "Mapping[tuple[int, int], str] | None" = None,
) -> "pa.Table":
    """Return one row for each line of the program whose live memory grows.

    A line's live bytes, as requested, are compared at the ends of the iterations of the main loop
    (see `gpuviz.analysis.iterations.iterations`; without streams, of the lines that allocate in a
    repeating order), else at the ends of the notebook cells in which it allocated; lines of cells
    are the same if their text is. See `gpuviz.analysis.growth.growth` for what counts as growth. A
    cache that has filled up, a warm-up and a double buffer do not.

    A line that runs in neither is listed by the rule of succession (Laplace), as in Scalene's leak
    score: of n blocks that it allocated, f were freed, so that the next is freed with probability
    (f + 1) / (n + 2). Its ``score`` is 1 minus that. It is listed from ten allocations and a score
    of 0.9 on, if it grew as much in the second half of the recorded operations as in the first.

    Columns: ``site``, ``source``, ``stack`` as in `Recording.sites`; ``device``; ``by``
    (``iteration``, ``cell`` or ``recording``); ``periods`` (how many iterations, or runs of cells);
    ``growth_bytes`` an iteration or run, with ``growth_low_bytes`` and ``growth_high_bytes``, its
    95 % confidence interval (the same if each adds the same blocks); ``live_bytes`` and
    ``live_count`` at the end of the last one; ``score``; ``certainty`` that it grows; ``use`` of
    the blocks that are older than three iterations or runs: ``unused`` if none of them was used
    after the iteration that follows its own, ``used`` if all were, ``partly``, or ``unknown``; and
    ``unused_bytes`` of those that were not; and ``kept_by``, what keeps most of the live bytes,
    empty if unknown. Other values that are unknown are null: kernels whose arrays are unknown, such
    as those of graphs, may use any block. Unused memory comes first, then most bytes.

    Args:
        recording: The recording.
        device: Ordinal; all devices if None.
        holders: What keeps the blocks alive that are live at the end, by device and address.

    Raises:
        ValueError: The recording has no such device.
    """
    devices = recording.devices if device is None else (recording.device_or_first(device),)
    parts = [each.recording for each in processes(recording)] or [recording]
    lines = ((part, each) for part in parts for each in growing_lines(part))
    found = [
        _row(recording, line) | {"kept_by": _kept_by(lifetimes(part), line, holders or {})}
        for part, line in lines
        if line.device in devices
    ]
    whole = pa.int64()
    kinds = {
        "site": pa.utf8(),
        "source": pa.utf8(),
        "stack": pa.uint32(),
        "device": pa.int16(),
        "by": pa.utf8(),
        "periods": whole,
        "growth_bytes": whole,
        "growth_low_bytes": whole,
        "growth_high_bytes": whole,
        "live_bytes": whole,
        "live_count": whole,
        "score": pa.float64(),
        "certainty": pa.utf8(),
        "use": pa.utf8(),
        "unused_bytes": whole,
        "kept_by": pa.utf8(),
    }
    return pa.Table.from_pylist(found, pa.schema(kinds))


def _kept_by(
    blocks: Lifetimes, line: "GrowingLine", holders: "Mapping[tuple[int, int], str]"
) -> str:
    """Return what keeps most of a line's live bytes; empty if that is unknown."""
    sums: dict[str, int] = {}
    live = line.blocks
    for address, size in zip(
        blocks.address[live].tolist(), blocks.size[live].tolist(), strict=True
    ):
        name = holders.get((line.device, address), "")
        sums[name] = sums.get(name, 0) + size
    return max(sums, key=lambda name: sums[name], default="")


def _row(recording: "RecordingData", line: GrowingLine) -> dict[str, Any]:
    site, source = recording.call_stacks.call_site(line.stack)
    grown = line.growth
    return {
        "site": site,
        "source": source,
        "stack": line.stack,
        "device": line.device,
        "by": line.by,
        "periods": line.periods,
        "growth_bytes": None if grown is None else round(grown.slope),
        "growth_low_bytes": None if grown is None else round(grown.low),
        "growth_high_bytes": None if grown is None else round(grown.high),
        "live_bytes": line.live_bytes,
        "live_count": len(line.blocks),
        "score": line.score,
        "certainty": line.certainty,
        "use": line.use,
        "unused_bytes": line.unused_bytes,
    }


def growing_lines(recording: "RecordingData", used: Touches | None = None) -> list[GrowingLine]:
    """Return the lines whose live memory grows; see `leaks`.

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

    def __init__(self, recording: "RecordingData", blocks: Lifetimes, used: Touches | None) -> None:
        self._recording, self._blocks = recording, blocks
        self._used, self._is_use_known = used, used is not None
        self._end = np.where(blocks.end < 0, np.iinfo(np.int64).max, blocks.end)
        self._line = self._lines_of(blocks.stack)
        self._last: NDArray[Any] | None = None

    def lines(self) -> "Iterator[GrowingLine]":
        """Yield the growing lines, each once."""
        known = set[int]()
        marks = self._iterations()
        for line, grown, at in self._growing(marks):
            known.add(line)
            yield self._growing_line("iteration", line, marks, grown, at)
        cells = self._cells()
        for line, grown, at in self._growing(cells, own=True):
            if line not in known:
                known.add(line)
                yield self._growing_line("cell", line, cells, grown, at)
        yield from self._by_succession(known, is_loop=len(marks) > FEWEST)

    def _lines_of(self, stacks: "NDArray[Any]") -> "NDArray[Any]":
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
        found: NDArray[Any] = numbered(lines * 64 + self._blocks.device)[0].astype(np.int64)
        return found

    def _iterations(self) -> "NDArray[Any]":
        """Return when the iterations end, in ns."""
        starts, ends = host_spans(self._recording)
        if len(ends) <= FEWEST and not self._recording.tables["activities"].num_rows:
            return self._allocation_periods()
        return self._after_frees(starts, ends)

    def _after_frees(self, starts: "NDArray[Any]", ends: "NDArray[Any]") -> "NDArray[Any]":
        """Return when the host has freed what it frees after the last launch of each iteration.

        The next iteration begins with its first allocation, at the latest with its first launch.
        After the last iteration as many frees as usual are its own: others are of what the loop
        has kept, when its function returns.

        Args:
            starts: When the host made the first launch of each iteration, in ns.
            ends: When it returned from the last.
        """
        if not len(ends):
            return ends
        allocated, freed = (
            np.sort(each, kind="stable") for each in (self._blocks.begin, self._end)
        )
        never = np.iinfo(np.int64).max
        following = np.append(allocated, never)[np.searchsorted(allocated, ends, side="right")]
        marks: NDArray[Any] = np.maximum(
            np.minimum(following, np.append(starts[1:], never)) - 1, ends
        )
        until = np.searchsorted(freed, ends, side="right")
        usual = np.searchsorted(freed, marks[:-1], side="right") - until[:-1]
        own = int(until[-1] + (np.quantile(usual, _USUAL) if len(usual) else 0))
        last = freed[own - 1] if until[-1] < own <= len(freed) else ends[-1]
        marks[-1] = min(max(last, ends[-1]), marks[-1])
        return marks

    def _allocation_periods(self) -> "NDArray[Any]":
        """Return when the periods end in which the same lines allocate."""
        initial = self._recording.manifest.initial_events
        rows = np.flatnonzero((self._blocks.alloc >= initial) & (self._blocks.stack != 0))
        elements = numbered(self._line[rows])[0]
        found = repeats(elements.astype(np.int64), fewest=FEWEST)
        if found is None:
            return np.zeros(0, np.int64)
        usual = slice(int(found.starts[found.usual]), int(found.starts[found.usual]) + found.length)
        if len(np.unique(elements[usual])) < _FEWEST_LINES:
            return np.zeros(0, np.int64)
        # A period ends before the first allocation of the next one.
        ends: NDArray[Any] = self._blocks.begin[rows[found.starts[1:]]] - 1
        return ends

    def _cells(self) -> "NDArray[Any]":
        """Return when notebook cells ended, in ns."""
        ranges = self._recording.tables["ranges"]
        is_cell = codes(ranges["kind"], _RANGES) == _RANGES.index("cell")
        ends = plain(ranges["end"])[is_cell]
        # A running cell has not ended; the arrays that it holds may be its own.
        return np.sort(ends[ends >= 0])

    def _growing(
        self, marks: "NDArray[Any]", *, own: bool = False
    ) -> "Iterator[tuple[int, Growth, NDArray[Any]]]":
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
        self, by: By, line: int, marks: "NDArray[Any]", grown: Growth, at: "NDArray[Any]"
    ) -> GrowingLine:
        own = marks[at]
        last = own[-1]
        of_line = self._line == line
        live = np.flatnonzero(of_line & (self._blocks.begin <= last) & (self._end > last))
        return self._made(by, of_line, live, len(own), grown, self._use(live, own))

    def _made(  # noqa: PLR0913, PLR0917 - the parts of a line
        self,
        by: By,
        of_line: "NDArray[Any]",
        live: "NDArray[Any]",
        periods: int,
        grown: Growth | None,
        use: "tuple[Use, int | None, NDArray[Any]]",
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

    def _use(
        self, live: "NDArray[Any]", marks: "NDArray[Any]"
    ) -> "tuple[Use, int | None, NDArray[Any]]":
        """Return which of the old ones of some blocks were used after their own iteration.

        Use after the last mark counts too, as when all parts are joined at the end.
        """
        own = np.searchsorted(marks, self._blocks.begin[live])
        old = live[own < len(marks) - LEAST_AGE]
        own = own[own < len(marks) - LEAST_AGE]
        if not old.size or not self._knows_uses():
            return "unknown", None, old[:0]
        again = marks[np.minimum(own + 1, len(marks) - 1)]
        is_used = self._last_touch()[old] > again
        opaque = self._opaque_times()
        ends = self._end[old]
        is_open = np.searchsorted(opaque, again, side="right") < np.searchsorted(opaque, ends)
        if (is_open & ~is_used).any():
            return "unknown", None, old[:0]
        unused = int(self._blocks.size[old[~is_used]].sum())
        if not is_used.any():
            return "unused", unused, old[:0]
        return "used" if is_used.all() else "partly", unused, old[is_used]

    def _knows_uses(self) -> bool:
        if not self._is_use_known:
            self._used, self._is_use_known = touches(self._recording), True
        return self._used is not None and not self._recording.dropped

    def _last_touch(self) -> "NDArray[Any]":
        """Return when each block was last given to the GPU; -1 if never."""
        if self._last is None:
            assert self._used is not None  # noqa: S101 - see _knows_uses
            self._last = np.full(len(self._blocks), -1, np.int64)
            self._last[self._used.block] = self._call_times()[self._used.call]
        return self._last

    def _opaque_times(self) -> "NDArray[Any]":
        assert self._used is not None  # noqa: S101 - see _knows_uses
        times: NDArray[Any] = self._call_times()[self._used.opaque]
        return times

    def _call_times(self) -> "NDArray[Any]":
        return plain(self._recording.tables["api_calls"]["time"])

    def _by_succession(self, known: set[int], *, is_loop: bool) -> "Iterator[GrowingLine]":
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
            use = self._use(live, np.append(blocks.begin[live], blocks.begin[live][-1]))
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
