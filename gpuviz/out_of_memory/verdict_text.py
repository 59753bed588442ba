"""A verdict on a failed request, its numbers and its remedies, in sentences."""

from typing import TYPE_CHECKING

from gpuviz.quantities import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuviz.out_of_memory.failures import OutOfMemory

TITLES = {
    "too_large": "Larger than the device",
    "capped": "Held back by a limit",
    "refused": "Refused by the device",
    "pending_frees": "Held by pending frees",
    "stranded": "Stranded in another pool or stream",
    "fragmented": "Fragmented",
    "outside": "Taken by others",
    "full": "Full",
}


def summary(failed: "OutOfMemory") -> str:
    """Return the verdict with its numbers, in one sentence."""
    return f"{TITLES[failed.verdict]}: {_REASONS[failed.verdict](failed)}"


def explanation(failed: "OutOfMemory") -> tuple[str, ...]:
    """Return the verdict, what the request met, and what would help."""
    return (summary(failed), *_numbers(failed), *remedies(failed))


def remedies(failed: "OutOfMemory") -> tuple[str, ...]:
    """Return what would help, in sentences."""
    return (*_REMEDIES[failed.verdict], *_obstacle(failed))


def _obstacle(failed: "OutOfMemory") -> list[str]:
    found = failed.obstacle
    if found is None or not 0 < found.bytes < failed.size:
        return []
    what = "1 live block" if found.blocks == 1 else f"{format_count(found.blocks)} live blocks"
    return [
        (
            f"Freeing {what} of this pool and stream with {format_bytes(found.bytes)}, between "
            "free ones, would make room for it."
        ),
    ]


def _numbers(failed: "OutOfMemory") -> list[str]:
    blocks = "block" if failed.allocated_blocks == 1 else "blocks"
    found = [
        (
            f"The program held {format_bytes(failed.allocated)} in "
            f"{format_count(failed.allocated_blocks)} {blocks}; the allocator had "
            f"reserved {format_bytes(failed.reserved)}, of which "
            f"{format_bytes(failed.met.cached)} were free "
            f"and {format_bytes(failed.pending)} waited for other streams."
        ),
    ]
    if failed.device_free is not None and failed.device_total:
        found.append(
            f"The device had {format_bytes(failed.device_free)} of "
            f"{format_bytes(failed.device_total)} left.",
        )
    if failed.outside:
        found.append(f"{_outside(failed)} This includes CUDA's own context.")
    return found


def _outside(failed: "OutOfMemory") -> str:
    text = f"{format_bytes(failed.outside or 0)} of the device were used outside this allocator"
    if failed.other_processes is None:
        return f"{text}; by which process is not known."
    return f"{text}, {format_bytes(failed.other_processes)} of it by other processes."


def _too_large(failed: "OutOfMemory") -> str:
    return (
        f"the request for {format_bytes(failed.size)} is more than the whole device has, "
        f"{format_bytes(failed.device_total)}."
    )


def _capped(failed: "OutOfMemory") -> str:
    if failed.met.own_block >= failed.size:
        return (
            f"a cached block of {format_bytes(failed.met.own_block)} was large enough, but the "
            "setting max_split_size_mb keeps it for larger requests."
        )
    free = f"the device had {format_bytes(failed.device_free or 0)} left"
    if failed.limit is None:
        return f"{free}, enough for a segment of {format_bytes(failed.segment_size)}."
    return (
        f"{free}, but the allocator may hold {format_bytes(failed.limit)} and had "
        f"{format_bytes(failed.reserved)}; {format_bytes(failed.segment_size)} more were needed."
    )


def _refused(failed: "OutOfMemory") -> str:
    if failed.met.own_block >= failed.size:
        return (
            f"a cached block of {format_bytes(failed.met.own_block)} was large enough for the "
            f"{format_bytes(failed.size)} asked for, and was not used."
        )
    return (
        f"it had {format_bytes(failed.device_free or 0)} left just after, enough for the "
        f"{format_bytes(failed.segment_size)} wanted."
    )


def _pending_frees(failed: "OutOfMemory") -> str:
    return (
        f"{format_bytes(failed.pending)} are freed but wait for work on other streams, which "
        f"would have been enough for the {format_bytes(failed.size)} asked for."
    )


def _stranded(failed: "OutOfMemory") -> str:
    own = (failed.pool, failed.stream)
    others = [each for each in failed.free if (each.pool, each.stream) != own]
    best = max(others, key=lambda each: each.largest, default=None)
    if best is None or not best.free:
        return (
            f"{format_bytes(failed.met.idle_segments)} are cached in segments that nothing uses, "
            "which could not be given back while a private pool or a capture was open."
        )
    return (
        f"{best.name} has {format_bytes(best.free)} free, in one piece "
        f"{format_bytes(best.largest)}, where the request for {format_bytes(failed.size)} in "
        f"{failed.place} may not take it."
    )


def _fragmented(failed: "OutOfMemory") -> str:
    largest = max((each.largest for each in failed.free), default=0)
    spare = failed.met.cached + failed.pending
    return (
        f"{format_bytes(spare)} are free in segments and {format_bytes(failed.device_free or 0)} "
        f"on the device, together enough for the {format_bytes(failed.size)} asked for, but the "
        f"largest free block has {format_bytes(largest)}."
    )


def _taken(failed: "OutOfMemory") -> str:
    who = "other processes, libraries and other allocators"
    if failed.other_processes is not None:
        who = f"others ({format_bytes(failed.other_processes)} of it by other processes)"
    return (
        f"{format_bytes(failed.outside or 0)} of the device are used by {who}; this allocator had "
        f"{format_bytes(failed.reserved)}, and {format_bytes(failed.size)} more were asked for."
    )


def _full(failed: "OutOfMemory") -> str:
    blocks = "block" if failed.allocated_blocks == 1 else "blocks"
    return (
        f"{format_bytes(failed.allocated)} are in use in {format_count(failed.allocated_blocks)} "
        f"live {blocks}; even with all free memory put together, "
        f"{format_bytes(failed.met.cached + failed.met.room)}, the {format_bytes(failed.size)} "
        "asked for do not fit."
    )


_REASONS: "dict[str, Callable[[OutOfMemory], str]]" = {
    "too_large": _too_large,
    "capped": _capped,
    "refused": _refused,
    "pending_frees": _pending_frees,
    "stranded": _stranded,
    "fragmented": _fragmented,
    "outside": _taken,
    "full": _full,
}
_REMEDIES = {
    "too_large": ("Work in smaller pieces, or with a smaller type of numbers.",),
    "capped": (
        (
            "Lift the limit: gpuviz.set_per_process_memory_fraction(1.0), the limit of CuPy's "
            "memory pool, or the setting max_split_size_mb, whichever is set."
        ),
    ),
    "refused": (
        (
            "Something outside the allocator limits it (MPS, MIG, a limit of the driver), or "
            "memory came free just after: try again."
        ),
    ),
    "pending_frees": (
        (
            "Synchronize the other streams before this line, or end the capture or the private "
            "pool that keeps the frees waiting."
        ),
        "Free on the stream that used the memory last, so that nothing has to wait.",
    ),
    "stranded": (
        (
            "Allocate on the stream, or in the pool, that has the free memory, and order streams "
            "by events."
        ),
        (
            "gpuviz.empty_cache() outside a private pool gives unused segments back; a MemPool "
            "gives its memory back when it is deleted."
        ),
    ),
    "fragmented": (
        (
            'gpuviz.set_allocator_settings("expandable_segments:True") at the start of the '
            "program lets free memory of a stream come together."
        ),
        (
            "Allocate the large arrays first, or keep and reuse them; free the small ones "
            "between them."
        ),
    ),
    "outside": (
        (
            "nvidia-smi lists the processes on the GPU. In this process it may be arrays made "
            "before the recording, CuPy's own pool, another library's allocator, or the plans "
            "and workspaces of libraries."
        ),
    ),
    "full": (
        (
            "Free what is not needed any more (the table of lines says where it was allocated), "
            "work in smaller pieces, or write results into arrays that exist (out=...)."
        ),
    ),
}
