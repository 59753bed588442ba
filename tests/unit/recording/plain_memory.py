"""One device's memory after events, in plain Python: slow, but simple enough to be correct.

Only segments and live blocks are stored; free memory is the gaps between them.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

HIGHEST_END = 1 << 62
ALLOCATED, PENDING = 1, 2
NEEDS_SIZE = {"alloc", "segment_alloc", "segment_map"}


@dataclass(slots=True)
class PlainSegment:
    """A segment; an expandable one is a run of mapped pages."""

    start: int
    end: int
    stream: int
    pool: int
    expandable: bool


@dataclass(slots=True)
class PlainBlock:
    """A live block."""

    start: int
    end: int
    requested: int
    stream: int
    pool: int
    stack: int
    state: int = ALLOCATED


class PlainMemory:
    """The memory of one device."""

    def __init__(self) -> None:
        self.segments: list[PlainSegment] = []
        self.live: list[PlainBlock] = []
        self.anomalies = 0
        self.seen_segment = self.seen_outside = False

    def apply(self, row: dict[str, Any]) -> None:
        """Apply an event; conflicting blocks must have been freed unnoticed."""
        action = row["action"]
        too_high = action != "oom" and row["address"] + row["size"] > HIGHEST_END
        adds_nothing = action in NEEDS_SIZE and row["size"] == 0
        if too_high or adds_nothing:
            self.anomalies += 1
        elif hasattr(self, f"_{action}"):
            getattr(self, f"_{action}")(row)

    def _alloc(self, row: dict[str, Any]) -> None:
        start, end = row["address"], row["address"] + row["size"]
        self._evict_blocks(start, end)
        if not any(s.start <= start and end <= s.end for s in self.segments):
            self._evict_segments(start, end)
            self.seen_outside = True
        requested = min(row["requested_size"], row["size"])
        self.anomalies += requested != row["requested_size"]
        block = PlainBlock(start, end, requested, row["stream"], row["pool"], row["stack"])
        self.live.append(block)

    def _free_requested(self, row: dict[str, Any]) -> None:
        found = [b for b in self.live if b.start == row["address"] and b.state == ALLOCATED]
        self.anomalies += not found
        for block in found:
            block.state = PENDING

    def _free_completed(self, row: dict[str, Any]) -> None:
        found = [b for b in self.live if b.start == row["address"]]
        self.anomalies += not found or found[0].state == ALLOCATED
        self.live = [b for b in self.live if b not in found]

    def _segment_alloc(self, row: dict[str, Any]) -> None:
        self._add_segment(row, expandable=False)

    def _segment_map(self, row: dict[str, Any]) -> None:
        self._add_segment(row, expandable=True)
        runs: list[PlainSegment] = []
        for segment in sorted(self.segments, key=lambda s: s.start):
            last = runs[-1] if runs else None
            if (
                last is not None
                and last.expandable
                and (last.end, last.pool, True) == (segment.start, segment.pool, segment.expandable)
            ):
                last.end = segment.end
            else:
                runs.append(segment)
        self.segments = runs

    def _segment_free(self, row: dict[str, Any]) -> None:
        found = [s for s in self.segments if s.start == row["address"] and not s.expandable]
        self.anomalies += not found or found[0].end - found[0].start != row["size"]
        for segment in found:
            self._remove(segment, segment.start, segment.end)

    def _segment_unmap(self, row: dict[str, Any]) -> None:
        start, end = row["address"], row["address"] + row["size"]
        runs = [s for s in self.segments if s.expandable and s.start <= start < end <= s.end]
        self.anomalies += not runs
        for run in runs:
            self._remove(run, start, end)

    def _add_segment(self, row: dict[str, Any], *, expandable: bool) -> None:
        start, end = row["address"], row["address"] + row["size"]
        self._evict_segments(start, end)
        self._evict_blocks(start, end)
        self.segments.append(PlainSegment(start, end, row["stream"], row["pool"], expandable))
        self.seen_segment = True

    def _evict_blocks(self, start: int, end: int) -> None:
        standing = [b for b in self.live if b.start >= end or b.end <= start]
        self.anomalies += len(self.live) - len(standing)
        self.live = standing

    def _evict_segments(self, start: int, end: int) -> None:
        for segment in [s for s in self.segments if s.start < end and s.end > start]:
            self.anomalies += 1
            if segment.expandable:
                self._remove(segment, max(start, segment.start), min(end, segment.end))
            else:
                self._remove(segment, segment.start, segment.end)

    def _remove(self, segment: PlainSegment, start: int, end: int) -> None:
        self._evict_blocks(start, end)
        self.segments.remove(segment)
        kind = (segment.stream, segment.pool, segment.expandable)
        for left, right in ((segment.start, start), (end, segment.end)):
            if left < right:
                self.segments.append(PlainSegment(left, right, *kind))

    def gaps(self, segment: PlainSegment) -> list[tuple[int, int]]:
        """Return the free ranges of a segment."""
        inside = sorted(
            (b.start, b.end) for b in self.live if segment.start <= b.start < segment.end
        )
        starts = [segment.start, *(end for _, end in inside)]
        ends = [*(start for start, _ in inside), segment.end]
        return [(a, b) for a, b in zip(starts, ends, strict=True) if a < b]

    def outside(self) -> list[PlainBlock]:
        """Return the live blocks outside all segments."""
        return [b for b in self.live if not any(s.start <= b.start < s.end for s in self.segments)]

    def current(self) -> Counter[tuple[str, str]]:
        """Return the current value of every statistic by (name, pool kind)."""
        totals: Counter[tuple[str, str]] = Counter()

        def add(pool: int, **values: int) -> None:
            for name, value in values.items():
                totals[name, "all"] += value
                totals[name, "large_pool" if pool % 2 else "small_pool"] += value

        for b in self.live:
            size, allocated = b.end - b.start, b.state == ALLOCATED
            add(b.pool, active=1, active_bytes=size, requested_bytes=b.requested)
            add(b.pool, allocation=int(allocated), allocated_bytes=size * allocated)
        for s in self.segments:
            add(s.pool, segment=int(not s.expandable), reserved_bytes=s.end - s.start)
            split = [] if s.expandable else [g for g in self.gaps(s) if g != (s.start, s.end)]
            add(
                s.pool,
                inactive_split=len(split),
                inactive_split_bytes=sum(end - start for start, end in split),
            )
        return totals

    def largest_free(self) -> int:
        """Return the bytes of the largest free range; -1 if unknown."""
        if self.outside() or (self.seen_outside and not self.seen_segment):
            return -1
        return self.largest_gap()

    def outside_bytes(self) -> int:
        """Return the bytes of the live blocks outside all segments."""
        return sum(b.end - b.start for b in self.outside())

    def largest_gap(self) -> int:
        """Return the bytes of the largest free range in the known segments."""
        return max((end - start for s in self.segments for start, end in self.gaps(s)), default=0)

    def levels(self) -> tuple[int, ...]:
        """Return the columns of ``memory_levels`` after time and device."""
        now = self.current()
        names = ("requested", "allocated", "active", "reserved", "inactive_split")
        return (*(now[f"{name}_bytes", "all"] for name in names), self.largest_free())

    def snapshot(self) -> list[tuple[Any, ...]]:
        """Return each segment, and each block outside one, with its blocks, by address."""
        found = [
            (s.start, s.end - s.start, s.stream, s.pool, s.expandable, self._blocks(s))
            for s in self.segments
        ]
        found += [
            (b.start, b.end - b.start, b.stream, b.pool, None, [_block(b)]) for b in self.outside()
        ]
        return sorted(found, key=lambda each: each[0])

    def _blocks(self, s: PlainSegment) -> list[tuple[int, ...]]:
        live = [_block(b) for b in self.live if s.start <= b.start < s.end]
        return sorted([*live, *((a, b - a, 0, 0, 0) for a, b in self.gaps(s))])


def _block(b: PlainBlock) -> tuple[int, ...]:
    return (b.start, b.end - b.start, b.requested, b.state, b.stack)
