"""Changes of one circumstance with which a failed request would have succeeded."""

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from gpuviz.analysis.allocator_settings import EXPANDABLE
from gpuviz.data.columns import plain
from gpuviz.out_of_memory.cached_memory import Obstacle
from gpuviz.out_of_memory.failure_replay import FailureReplay
from gpuviz.out_of_memory.moment import Moment
from gpuviz.out_of_memory.unused_arrays import longest_unused

if TYPE_CHECKING:
    from gpuviz.out_of_memory.failures import OutOfMemory

_EVENTS = "memory_events"
_SPLITS = ("max_split_size_mb", "max_non_split_rounding_mb")
_MOST_PLACES = 3
_MOST_TRIED = 4
# Of the request, what a smaller one has at least and at most, in units of a small segment.
_LEAST_PIECE, _MOST_PIECE, _PIECE = 0.25, 0.9, 2 << 20
# Of the request's bytes.
_MOST_PINNED = 0.25
ROUNDING = "roundup_power2_divisions"
# By torch's rules requests above 1 MiB share segments of 20 MiB; from 10 MiB on, each has its own.
_SHARED_SEGMENT, OWN_SEGMENT = 1 << 20, 10 << 20


class Trials:
    """What is tried with a failed request, one circumstance at a time.

    Args:
        failed: The failure.
        moment: Its place in the recording.
    """

    def __init__(self, failed: "OutOfMemory", moment: Moment) -> None:
        self._failed, self._moment = failed, moment
        self._replay = FailureReplay(failed, moment)

    @property
    def reproduce_the_failure(self) -> bool:
        """Whether the same request fails in a replay with the same settings and memory."""
        return self._replay.reproduces_the_failure

    @property
    def has_late_frees(self) -> bool:
        """Whether frees waited for other streams; other settings may complete them elsewhere."""
        return self._replay.has_late_frees

    def without_limit(self) -> bool:
        """Return whether the request succeeds if only the device limits the allocator."""
        return self._replay.limit is not None and self._replay.succeeds(
            capacity=self._replay.room, is_limited=False
        )

    def with_free_splits(self) -> bool:
        """Return whether it succeeds without a limit on the blocks that are split."""
        items = [item for item in self._replay.settings if not item.startswith(_SPLITS)]
        return items != self._replay.settings and self._replay.succeeds(settings=items)

    def with_expandable_segments(self) -> bool:
        """Return whether it succeeds with expandable segments from the start."""
        if any(item.replace(" ", "") == f"{EXPANDABLE}:True" for item in self._replay.settings):
            return False
        items = [item for item in self._replay.settings if not item.startswith(EXPANDABLE)]
        return self._replay.succeeds(settings=[*items, f"{EXPANDABLE}:True"])

    def after_empty_cache(self) -> bool:
        """Return whether it succeeds after a call of ``empty_cache`` outside private pools."""
        row = {"action": "empty_cache", "stream": 0, "pool": 0}
        return self._replay.succeeds(before=(row,))

    def after_release_beside(self) -> bool:
        """Return whether it succeeds once the other allocator has released what it does not use."""
        released = self._failed.cached_beside
        return released > 0 and self._replay.succeeds(capacity=self._replay.capacity(released))

    def places(self) -> Iterator[str]:
        """Yield the names of other pools and streams in which it succeeds, and can be made."""
        failed = self._failed
        own = (failed.pool, failed.stream)
        others = [
            each
            for each in failed.free
            if (each.pool, each.stream) != own and not each.is_destroyed
        ]
        for each in sorted(others, key=lambda each: -each.largest)[:_MOST_PLACES]:
            if self._replay.succeeds(change={"pool": each.pool, "stream": each.stream}):
                yield each.name

    def without_obstacle(self) -> bool:
        """Return whether it succeeds after the blocks between free memory are freed."""
        return self._without(self._failed.obstacle)

    def without_pins(self) -> bool:
        """Return whether it succeeds after the few blocks that keep segments in use are freed."""
        return self._without(few_pins(self._failed))

    def with_less_rounding(self) -> bool:
        """Return whether it succeeds without a setting that rounds sizes up."""
        items = [item for item in self._replay.settings if not item.startswith(ROUNDING)]
        return items != self._replay.settings and self._replay.succeeds(settings=items)

    def with_own_segment(self) -> bool:
        """Return whether a request that is large enough for a segment of its own succeeds."""
        change = {"size": OWN_SEGMENT, "requested_size": OWN_SEGMENT}
        is_between = _SHARED_SEGMENT < self._failed.size < OWN_SEGMENT
        return is_between and self._replay.succeeds(change=change)

    def without_unused(self) -> Obstacle | None:
        """Return the live arrays, unused for longest, without which it succeeds; None without."""
        if not self._replay.reproduces_the_failure:
            return None
        failed, moment = self._failed, self._moment
        needed = failed.size - max(failed.request.own_block, failed.request.room)
        found = longest_unused(moment.recording, moment.row, needed, of_torch=failed.of_torch)
        return next((each for each in islice(found, _MOST_TRIED) if self._after_frees(each)), None)

    def largest(self) -> int:
        """Return the bytes of a smaller request that succeeds; 0 if there is none worth making."""
        request = self._failed.request
        room = self._replay.capacity() - self._failed.reserved
        least, most = (int(share * self._failed.size) for share in (_LEAST_PIECE, _MOST_PIECE))
        sizes = {min(each, most) // _PIECE * _PIECE for each in (request.own_block, room)}
        for size in sorted(sizes, reverse=True):
            change = {"size": size, "requested_size": size}
            if size >= max(least, 1) and self._replay.succeeds(change=change):
                return size
        return 0

    def _without(self, found: Obstacle | None) -> bool:
        """Return whether it succeeds after fewer live bytes than those of the request are freed."""
        is_less = found is not None and 0 < found.bytes < self._failed.size
        return is_less and found is not None and self._after_frees(found)

    def _after_frees(self, found: Obstacle) -> bool:
        """Return whether it succeeds after some live blocks are freed."""
        failed = self._failed
        places = found.places or ((failed.pool, failed.stream),) * len(found.addresses)
        used = self._used_by_streams
        rows = [
            {
                "action": action,
                "address": address,
                "size": size,
                "requested_size": size,
                "pool": pool,
                "stream": stream,
            }
            for (address, size), (pool, stream) in zip(found.addresses, places, strict=True)
            for action in ("free_requested", "free_completed")
        ]
        at_once = self._replay.succeeds(before=rows)
        # Other streams may still use them, until the request waits for all streams.
        late = [
            row for row in rows if row["address"] not in used or row["action"] == "free_requested"
        ]
        return at_once and (late == rows or self._replay.succeeds(before=late))

    @cached_property
    def _used_by_streams(self) -> set[int]:
        """The addresses of blocks that other streams have used."""
        is_use = self._replay.is_own(("record_stream",))
        addresses: list[int] = plain(self._moment.recording.tables[_EVENTS]["address"])[
            : self._moment.row
        ][is_use].tolist()
        return set(addresses)


def few_pins(failed: "OutOfMemory") -> Obstacle | None:
    """Return a failure's pins if they are few bytes, and fewer than those between free memory."""
    pins, obstacle = failed.pins, failed.obstacle
    if pins is None or pins.bytes > _MOST_PINNED * failed.size:
        return None
    return pins if obstacle is None or pins.bytes < obstacle.bytes else None
