"""Text of a verdict: the reason, the numbers and the remedies, in sentences."""

from typing import TYPE_CHECKING

from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuviz.out_of_memory.failures import OutOfMemory

TITLES = {
    "too_large": "Larger than the device",
    "capped": "Blocked by a limit",
    "refused": "Refused by the device",
    "pending_frees": "Waiting for pending frees",
    "cached_elsewhere": "Cached in another pool or stream",
    "fragmented": "Fragmented",
    "other_memory": "Used outside the allocator",
    "full": "Full",
}


def summary(failed: "OutOfMemory") -> str:
    """Return the verdict and its reason in one sentence."""
    return f"{TITLES[failed.verdict]}: {_REASONS[failed.verdict](failed)}"


def explanation(failed: "OutOfMemory") -> tuple[str, ...]:
    """Return the verdict, the state of memory, and what would help, in sentences."""
    return (summary(failed), *_numbers(failed), *remedies(failed))


def remedies(failed: "OutOfMemory") -> tuple[str, ...]:
    """Return what would help, in sentences."""
    return (*_REMEDIES[failed.verdict], *_obstacle(failed))


def _obstacle(failed: "OutOfMemory") -> list[str]:
    found = failed.obstacle
    if found is None or not 0 < found.bytes < failed.size:
        return []
    what = format_counted(found.blocks, "live block")
    return [
        (
            f"Freeing {what} ({format_bytes(found.bytes)}) between free blocks of this pool and "
            "stream would make room for the request."
        ),
    ]


def _numbers(failed: "OutOfMemory") -> list[str]:
    found = [
        (
            f"The program had allocated {format_bytes(failed.allocated)} in "
            f"{format_counted(failed.allocated_blocks, 'block')}. The allocator had reserved "
            f"{format_bytes(failed.reserved)}: {format_bytes(failed.request.cached)} were free and "
            f"{format_bytes(failed.pending)} waited for other streams."
        ),
    ]
    if failed.device_free is not None and failed.device_total:
        found.append(
            f"{format_bytes(failed.device_free)} of the device's "
            f"{format_bytes(failed.device_total)} were free.",
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
        f"the request for {format_bytes(failed.size)} exceeds the device's total memory of "
        f"{format_bytes(failed.device_total)}."
    )


def _capped(failed: "OutOfMemory") -> str:
    if failed.request.own_block >= failed.size:
        return (
            f"a cached block of {format_bytes(failed.request.own_block)} was large enough, but the "
            "setting max_split_size_mb reserves it for larger requests."
        )
    free = f"the device had {format_bytes(failed.device_free or 0)} free"
    if failed.limit is None:
        return f"{free}, enough for a segment of {format_bytes(failed.segment_size)}."
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
        f"the {format_bytes(failed.segment_size)} requested."
    )


def _pending_frees(failed: "OutOfMemory") -> str:
    return (
        f"{format_bytes(failed.pending)} have been freed but wait for work on other streams; they "
        f"would have been enough for the {format_bytes(failed.size)} requested."
    )


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
        f"{best.name} has {format_bytes(best.free)} free (largest block "
        f"{format_bytes(best.largest)}), but the request for {format_bytes(failed.size)} in "
        f"{failed.pool_and_stream} cannot use it."
    )


def _fragmented(failed: "OutOfMemory") -> str:
    largest = max((each.largest for each in failed.free), default=0)
    spare = failed.request.cached + failed.pending
    return (
        f"{format_bytes(spare)} are free in segments and {format_bytes(failed.device_free or 0)} "
        f"on the device, together enough for the {format_bytes(failed.size)} requested, but the "
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


_REASONS: "dict[str, Callable[[OutOfMemory], str]]" = {
    "too_large": _too_large,
    "capped": _capped,
    "refused": _refused,
    "pending_frees": _pending_frees,
    "cached_elsewhere": _cached_elsewhere,
    "fragmented": _fragmented,
    "other_memory": _used_by_others,
    "full": _full,
}
_REMEDIES = {
    "too_large": ("Process smaller pieces, or use a smaller data type.",),
    "capped": (
        (
            "Lift the limit: gpuviz.set_per_process_memory_fraction(1.0), the limit of CuPy's "
            "memory pool, or the setting max_split_size_mb, whichever is set."
        ),
    ),
    "refused": (
        (
            "Something outside the allocator limits it (MPS, MIG, a limit of the driver), or "
            "memory was freed just after the failure: try again."
        ),
    ),
    "pending_frees": (
        (
            "Synchronize the other streams before this line, or end the graph capture or private "
            "pool that delays the frees."
        ),
        "Free memory on the stream that used it last, so that no free has to wait.",
    ),
    "cached_elsewhere": (
        (
            "Allocate on the stream or in the pool that has the free memory, and order streams "
            "with events."
        ),
        (
            "gpuviz.empty_cache() outside a private pool releases unused segments; a MemPool "
            "releases its memory when it is deleted."
        ),
    ),
    "fragmented": (
        (
            'Call gpuviz.set_allocator_settings("expandable_segments:True") at the start of the '
            "program, so that free memory of a stream becomes contiguous."
        ),
        (
            "Allocate large arrays first, or keep and reuse them; free the small arrays between "
            "them."
        ),
    ),
    "other_memory": (
        (
            "nvidia-smi lists the processes on the GPU. In this process the memory may belong to "
            "arrays made before the recording, CuPy's own pool, another library's allocator, or "
            "plans and workspaces of libraries."
        ),
    ),
    "full": (
        (
            "Free arrays that are no longer needed (the table of lines shows where they were "
            "allocated), process smaller pieces, or write results into existing arrays (out=...)."
        ),
    ),
}
