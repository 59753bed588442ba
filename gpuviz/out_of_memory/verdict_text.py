"""Text of a verdict: the reason and the numbers, in sentences."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpuviz.analysis.pools import cache_of
from gpuviz.out_of_memory.cached_memory import FreeMemory
from gpuviz.out_of_memory.remedies import remedies
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from gpuviz.out_of_memory.failures import OutOfMemory


TITLES = {
    "too_large": "Larger than the device",
    "capped": "Blocked by a limit",
    "refused": "Refused by the device",
    "pending_frees": "Waiting for pending frees",
    "cached_elsewhere": "Cached in another pool or stream",
    "cached_beside": "Cached by another library",
    "rounded": "Rounded up",
    "fragmented": "Fragmented",
    "other_memory": "Used outside the allocator",
    "full": "Full",
    "unknown": "Unknown",
}


def summary(failed: "OutOfMemory") -> str:
    """Return the verdict and its reason in one sentence."""
    return f"{TITLES[failed.verdict]}: {_REASONS[failed.verdict](failed)}"


def explanation(failed: "OutOfMemory") -> tuple[str, ...]:
    """Return the verdict, the state of memory, and what would help, in sentences."""
    return (summary(failed), *_numbers(failed), *remedies(failed))


def _numbers(failed: "OutOfMemory") -> list[str]:
    in_blocks = format_counted(failed.allocated_blocks, "block")
    text = f"The program had allocated {format_bytes(failed.allocated)} in {in_blocks}."
    if failed.free or not failed.allocated:
        text += (
            f" The allocator had reserved {format_bytes(failed.reserved)}: "
            f"{format_bytes(failed.request.cached)} were free and {format_bytes(failed.pending)} "
            "waited for other streams."
        )
    found = [text]
    if failed.device_free is not None and failed.device_total:
        found.append(
            f"{format_bytes(failed.device_free)} of the device's "
            f"{format_bytes(failed.device_total)} were free.",
        )
    if failed.beside:
        found.append(
            f"{beside(failed)} held {format_bytes(failed.beside)}, of which "
            f"{format_bytes(failed.cached_beside)} were in segments that it did not use."
        )
    if failed.other_memory:
        found.append(f"{_other_memory(failed)} This includes the CUDA context.")
    return found


def _other_memory(failed: "OutOfMemory") -> str:
    used = format_bytes(failed.other_memory or 0)
    text = f"{used} of the device were in use outside this allocator"
    if failed.other_processes is None:
        return f"{text}; the processes are unknown."
    return f"{text}, {format_bytes(failed.other_processes)} of it by other processes."


def _too_large(failed: "OutOfMemory") -> str:
    return (
        f"the request for {format_bytes(failed.requested)} exceeds the device's total memory of "
        f"{format_bytes(failed.device_total)}."
    )


def _capped(failed: "OutOfMemory") -> str:
    request = failed.request
    may_not_split = request.splits_are_limited or not request.limits_are_known
    if may_not_split and request.own_block >= failed.size:
        return (
            f"a cached block of {format_bytes(failed.request.own_block)} was large enough, but the "
            "setting max_split_size_mb reserves it for larger requests."
        )
    free = f"the device had {format_bytes(failed.device_free or 0)} free"
    if failed.limit is None:
        reserved = format_bytes(failed.reserved)
        return (
            f"{free}, enough for a segment of {format_bytes(failed.segment_size)}, but something "
            f"keeps the allocator from reserving that much more than {reserved}."
        )
    return (
        f"{free}, but the allocator is limited to {format_bytes(failed.limit)}, had reserved "
        f"{format_bytes(failed.reserved)} and needed {format_bytes(failed.segment_size)} more."
    )


def _refused(failed: "OutOfMemory") -> str:
    if failed.request.own_block >= failed.size:
        return (
            f"a cached block of {format_bytes(failed.request.own_block)} was large enough for the "
            f"{format_bytes(failed.size)} requested, but was not used."
        )
    return (
        f"it had {format_bytes(failed.device_free or 0)} free just after the failure, enough for "
        f"the {format_bytes(failed.request.mapped_size or failed.segment_size)} requested."
    )


def _pending_frees(failed: "OutOfMemory") -> str:
    return (
        f"{format_bytes(failed.pending)} have been freed but wait for work on other streams; they "
        f"would have been enough for the {format_bytes(failed.size)} requested."
    )


def place_name(free: FreeMemory) -> str:
    """Return the name of a pool and stream, with a mark if the stream is destroyed."""
    return f"{free.name} (destroyed)" if free.is_destroyed else free.name


def _cached_elsewhere(failed: "OutOfMemory") -> str:
    own = (failed.pool, failed.stream)
    others = [each for each in failed.free if (each.pool, each.stream) != own]
    best = max(others, key=lambda each: each.largest, default=None)
    if best is None or not best.free:
        return (
            f"{format_bytes(failed.request.idle_segments)} are cached in unused segments, which "
            "cannot be released while a private pool or a graph capture is active."
        )
    return (
        f"{place_name(best)} has {format_bytes(best.free)} free (largest block "
        f"{format_bytes(best.largest)}), but the request for {format_bytes(failed.size)} in "
        f"{failed.pool_and_stream} cannot use it."
    )


def beside(failed: "OutOfMemory") -> str:
    """Return the name of the other recorded allocator of the process."""
    return cache_of(failed.moment.recording.manifest, of_torch=not failed.of_torch)[0]


def _cached_beside(failed: "OutOfMemory") -> str:
    return (
        f"{beside(failed)} caches {format_bytes(failed.cached_beside)} in segments that it does "
        f"not use; with them there would have been enough for the {format_bytes(failed.size)} "
        "requested."
    )


def _rounded(failed: "OutOfMemory") -> str:
    free = f"the device has {format_bytes(failed.request.room)} free"
    if failed.request.room >= failed.size:
        segment = failed.request.mapped_size or failed.segment_size
        return (
            f"{free}, enough for the {format_bytes(failed.size)} requested, but the allocator "
            f"requests {format_bytes(segment)} for it, a segment that later requests share."
        )
    return (
        f"{free}, enough for the {format_bytes(failed.requested)} requested, but the allocator "
        f"rounds it up to {format_bytes(failed.size)}."
    )


def _fragmented(failed: "OutOfMemory") -> str:
    largest = max((each.largest for each in failed.free), default=0)
    spare = failed.request.cached + failed.pending
    on_device = ""
    if failed.device_free is not None:
        on_device = f" and {format_bytes(failed.device_free)} on the device"
    return (
        f"{format_bytes(spare)} are free in segments{on_device}, together enough for the "
        f"{format_bytes(failed.size)} requested, but the "
        f"largest free block has {format_bytes(largest)}."
    )


def _used_by_others(failed: "OutOfMemory") -> str:
    who = "other processes, libraries and other allocators"
    if failed.other_processes is not None:
        who = f"others ({format_bytes(failed.other_processes)} of it by other processes)"
    return (
        f"{format_bytes(failed.other_memory or 0)} of the device are used by {who}; this allocator "
        f"had reserved {format_bytes(failed.reserved)}, and {format_bytes(failed.size)} more were "
        "requested."
    )


def _full(failed: "OutOfMemory") -> str:
    blocks = format_counted(failed.allocated_blocks, "live block")
    return (
        f"{format_bytes(failed.allocated)} are in use in {blocks}; all free memory together, "
        f"{format_bytes(failed.request.cached + failed.request.room)}, is less than the "
        f"{format_bytes(failed.size)} requested."
    )


def _unknown(failed: "OutOfMemory") -> str:
    return (
        f"{format_bytes(failed.allocated)} were in use, {format_bytes(failed.size)} more were "
        "requested, and the recording does not contain the free memory of the device."
    )


_REASONS: "dict[str, Callable[[OutOfMemory], str]]" = {
    "too_large": _too_large,
    "capped": _capped,
    "refused": _refused,
    "pending_frees": _pending_frees,
    "cached_elsewhere": _cached_elsewhere,
    "cached_beside": _cached_beside,
    "rounded": _rounded,
    "fragmented": _fragmented,
    "other_memory": _used_by_others,
    "full": _full,
    "unknown": _unknown,
}
