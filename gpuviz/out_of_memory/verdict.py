"""Why a request for memory failed: the rules, and nothing else."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal[
    "too_large",
    "capped",
    "refused",
    "pending_frees",
    "stranded",
    "fragmented",
    "outside",
    "full",
]

CONTEXT_ALLOWANCE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a request met, in bytes. All but the first five speak of the moment of its failure.

    Cached memory is that of free blocks. Runs are neighbouring blocks of one segment; blocks that
    wait for another stream (pending frees) count as free in them.

    Attributes:
        size: n, of the block that was wanted, rounded.
        segment_size: S, of the segment that the device was asked for; at least n.
        device_total: T, of the device; 0 where unknown.
        limit: L, what the allocator may reserve; None where nothing limits it.
        limits_are_known: Whether ``limit`` was asked for. Files of killed programs do not tell.
        splits_are_limited: Whether a setting keeps requests from large cached blocks.
        reserved: V, of the allocator's segments.
        room: D, what the device had free; 0 where unknown.
        own_block: The largest cached block of the request's own pool and stream.
        own_run: The largest run there.
        pending_segments: Segments of default pools with pending frees and nothing that is in use.
        any_run: The largest run of any pool and stream.
        idle_segments: Segments of any pool and stream with nothing that is in use.
        cached: F, all cached blocks.
        pending: P, all pending frees.
        foreign: X, what others than the allocator hold beyond what a CUDA context needs.
    """

    size: int
    segment_size: int
    device_total: int = 0
    limit: int | None = None
    limits_are_known: bool = True
    splits_are_limited: bool = False
    reserved: int = 0
    room: int = 0
    own_block: int = 0
    own_run: int = 0
    pending_segments: int = 0
    any_run: int = 0
    idle_segments: int = 0
    cached: int = 0
    pending: int = 0
    foreign: int = 0


def verdict(met: Circumstances) -> Verdict:
    """Return the first remedy, in this order, after which the same request would have been served.

    Each remedy comes on top of those before it. In torch's rules a request of n bytes is served by
    a cached block of at least n of its own pool and stream, else by a new segment of S bytes.

    ===============  =============================================================================
    ``too_large``    None: ``n > T``, the device is too small for it.
    ``capped``       Lift the limits: ``D >= S``, or a cached block of its own pool and stream has
                     n. ``V + S > L``, or ``max_split_size_mb`` kept it away, or limits are unknown.
    ``refused``      The same, but nothing is known that limited the allocator.
    ``pending_frees``  Wait for other streams: a run of its own pool and stream has n, or
                     ``D + pending_segments >= S``.
    ``stranded``     Let pools and streams share: a run of any of them has n, or
                     ``D + idle_segments >= S``.
    ``fragmented``   Move what is cached together: ``F + P + D >= n``.
    ``outside``      Take back what others hold: ``F + P + D + X >= n``.
    ``full``         None of these: what the allocator handed out is in use.
    ===============  =============================================================================

    D is what the device still has, F what is cached in segments, P what waits for other streams
    and X what is neither the allocator's nor a CUDA context's (`foreign`).
    """
    rules: tuple[tuple[Verdict, bool], ...] = (
        ("too_large", 0 < met.device_total < met.size),
        ("capped", _is_capped(met) and _fits(met, met.own_block, 0)),
        ("refused", _fits(met, met.own_block, 0)),
        ("pending_frees", _fits(met, met.own_run, met.pending_segments)),
        ("stranded", _fits(met, met.any_run, met.idle_segments)),
        ("fragmented", met.cached + met.pending + met.room >= met.size),
        ("outside", met.cached + met.pending + met.room + met.foreign >= met.size),
    )
    return next((name for name, applies in rules if applies), "full")


def _fits(met: Circumstances, largest: int, given_back: int) -> bool:
    return largest >= met.size or met.room + given_back >= met.segment_size


def _is_capped(met: Circumstances) -> bool:
    if not met.limits_are_known:
        return True
    over_limit = met.limit is not None and met.reserved + met.segment_size > met.limit
    return over_limit or met.splits_are_limited


def foreign(outside: int, other_processes: int | None) -> int:
    """Return what others hold that could be given back, in bytes.

    Args:
        outside: What of the device is used and not the allocator's.
        other_processes: What other processes use of it, as NVML tells; None where it does not.

    What is left to this process outside the allocator counts beyond 1 GiB: a CUDA context with its
    libraries takes some hundred MiB, which nobody can take back.
    """
    others = min(other_processes or 0, outside)
    return others + max(0, outside - others - CONTEXT_ALLOWANCE)
