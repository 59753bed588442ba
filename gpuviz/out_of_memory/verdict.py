"""Rules that decide why a request for memory failed."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal[
    "too_large",
    "capped",
    "refused",
    "pending_frees",
    "cached_elsewhere",
    "cached_beside",
    "rounded",
    "fragmented",
    "other_memory",
    "full",
    "unknown",
]

CONTEXT_ALLOWANCE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRequest:
    """A request that failed, and the memory at that moment, in bytes.

    Cached memory is free blocks in segments. A run is a sequence of adjacent blocks of one segment
    that are free or wait for another stream (pending frees).

    Attributes:
        size: n, the size of the block, rounded.
        requested: The bytes that the program requested; 0 if unknown.
        segment_size: S, the size of the segment requested from the device; at least n.
        mapped_size: M, the pages that expandable segments map for n bytes; 0 without them, then
            M = S.
        device_total: T, the memory of the device; 0 if unknown.
        limit: L, what the allocator may reserve; None if nothing limits it.
        limits_are_known: Whether ``limit`` is known. In files of killed programs it is not.
        splits_are_limited: Whether a setting keeps the request from large cached blocks.
        reserved: V, the size of the allocator's segments.
        room: D, the free memory of the device; 0 if unknown.
        room_is_known: Whether it is known.
        own_block: The largest cached block in the request's pool and stream.
        own_run: The largest run there.
        pending_segments: Segments of default pools with pending frees and no block in use.
        any_run: The largest run in any pool and stream.
        idle_segments: Segments of any pool and stream with no block in use.
        cached: F, all cached blocks.
        pending: P, all pending frees.
        cached_beside: B, segments that another recorded allocator of the process does not use.
        reclaimable_other_memory: X, memory outside the allocator, without what CUDA contexts need.
    """

    size: int
    segment_size: int
    requested: int = 0
    mapped_size: int = 0
    device_total: int = 0
    limit: int | None = None
    limits_are_known: bool = True
    splits_are_limited: bool = False
    reserved: int = 0
    room: int = 0
    room_is_known: bool = True
    own_block: int = 0
    own_run: int = 0
    pending_segments: int = 0
    any_run: int = 0
    idle_segments: int = 0
    cached: int = 0
    pending: int = 0
    cached_beside: int = 0
    reclaimable_other_memory: int = 0


def verdict(request: FailedRequest) -> Verdict:
    """Return the first remedy, in this order, with which the request would have succeeded.

    Each remedy includes those before it. By torch's rules a request of n bytes is served from a
    cached block of at least n bytes in its own pool and stream, else from a new segment of S bytes,
    or from M bytes of newly mapped pages.

    ====================  ========================================================================
    ``too_large``         None: the device is smaller than what the program requested.
    ``capped``            Lift the limits: ``D >= M``, or its own pool and stream have a cached
                          block of n; and ``V + S > L``, or ``max_split_size_mb`` is set, or limits
                          are unknown.
    ``refused``           The same, but no limit of the allocator is known.
    ``pending_frees``     Wait for other streams: its own pool and stream have a run of n, or
                          ``D + pending_segments >= M``.
    ``cached_elsewhere``  Share pools and streams: any of them has a run of n, or
                          ``D + idle_segments >= M``.
    ``cached_beside``     Release what another library caches: ``D + idle_segments + B >= M``.
    ``rounded``           Round less: ``D`` is at least what the program requested.
    ``fragmented``        Compact the cached memory: ``F + P + D + B >= n``.
    ``other_memory``      Reclaim memory outside the allocators: ``F + P + D + B + X >= n``.
    ``full``              None of these: the memory is in use.
    ``unknown``           None of these as far as known, but D is unknown.
    ====================  ========================================================================
    """
    free = request.cached + request.pending + request.room + request.cached_beside
    released = request.idle_segments + request.cached_beside
    last: Verdict = "full" if request.room_is_known else "unknown"
    rules: tuple[tuple[Verdict, bool], ...] = (
        ("too_large", 0 < request.device_total < (request.requested or request.size)),
        ("capped", _is_capped(request) and _fits(request, request.own_block, 0)),
        ("refused", _fits(request, request.own_block, 0)),
        ("pending_frees", _fits(request, request.own_run, request.pending_segments)),
        ("cached_elsewhere", _fits(request, request.any_run, request.idle_segments)),
        ("cached_beside", request.cached_beside > 0 and _fits(request, 0, released)),
        ("rounded", request.room >= (request.requested or request.size)),
        ("fragmented", free >= request.size),
        ("other_memory", free + request.reclaimable_other_memory >= request.size),
    )
    return next((name for name, applies in rules if applies), last)


def _fits(request: FailedRequest, largest: int, released: int) -> bool:
    needed = request.mapped_size or request.segment_size
    return largest >= request.size or request.room + released >= needed


def _is_capped(request: FailedRequest) -> bool:
    if not request.limits_are_known:
        return True
    over_limit = (
        request.limit is not None and request.reserved + request.segment_size > request.limit
    )
    return over_limit or request.splits_are_limited


def reclaimable_other_memory(other_memory: int, other_processes: int | None) -> int:
    """Return how much of the memory outside the allocator could be released, in bytes.

    Of this process's own share only the part above 1 GiB counts: its CUDA context and the libraries
    in it take several hundred MiB, which cannot be released.

    Args:
        other_memory: Memory of the device that is in use outside the allocator.
        other_processes: The part of it used by other processes, from NVML; None if unknown.
    """
    others = min(other_processes or 0, other_memory)
    return others + max(0, other_memory - others - CONTEXT_ALLOWANCE)
