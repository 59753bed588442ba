"""Text of a verdict: the reason, the numbers and the remedies, in sentences."""

from typing import TYPE_CHECKING

from gpuviz.advice.finding import named
from gpuviz.analysis.allocator_settings import EXPANDABLE, known_settings, line_to_use
from gpuviz.analysis.pools import cache_of
from gpuviz.data.manifest import TORCH_ALLOCATOR
from gpuviz.out_of_memory.request import manifest_of
from gpuviz.out_of_memory.trials import OWN_SEGMENT, ROUNDING, Trials
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuviz.data.manifest import Manifest
    from gpuviz.out_of_memory.cached_memory import FreeMemory, Obstacle
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

_SUCCEEDS = "the request would have succeeded"
# Calls of the allocator take more or less time with other settings.
_SUCCEEDS_IF_IN_TIME = (
    "the request would probably have succeeded, unless other streams' frees complete later"
)


def summary(failed: "OutOfMemory") -> str:
    """Return the verdict and its reason in one sentence."""
    return f"{TITLES[failed.verdict]}: {_REASONS[failed.verdict](failed)}"


def explanation(failed: "OutOfMemory") -> tuple[str, ...]:
    """Return the verdict, the state of memory, and what would help, in sentences."""
    return (summary(failed), *_numbers(failed), *remedies(failed))


def remedies(failed: "OutOfMemory") -> tuple[str, ...]:
    """Return what would help, in sentences: only what lets the request succeed in a replay.

    What follows from the verdict needs no replay.
    """
    trials = Trials(failed, failed.moment)
    found = [*_certain(failed), *_checked(failed, trials)]
    if not found and failed.verdict not in _GENERAL and not trials.reproduce_the_failure:
        found.append(
            "Which settings would have helped is unknown: a replay of the recording does not end "
            "in this failure."
        )
    return (*found, *_GENERAL.get(failed.verdict, _GENERAL["full"]))


def _certain(failed: "OutOfMemory") -> "Iterator[str]":
    """Yield the remedies that follow from the verdict's own numbers."""
    if failed.verdict != "pending_frees":
        return
    request = failed.request
    needed = request.mapped_size or request.segment_size
    if request.room + request.pending_segments >= needed:
        yield (
            "End the graph capture or leave the private pool before this line: the allocator then "
            "waits for the frees, and the request would have succeeded. While it lasts, the frees "
            "stay pending even if the other streams are synchronized."
        )
    else:
        yield (
            "Leave the private pool before this line, synchronize the other streams and allocate "
            "anything outside it, which completes the frees; the request would then have succeeded "
            "in the pool."
        )


def _checked(failed: "OutOfMemory", trials: Trials) -> "Iterator[str]":
    """Yield the remedies with which the request succeeds in a replay."""
    is_torch = _manifest(failed).allocator_name == TORCH_ALLOCATOR
    module = "torch.cuda" if is_torch else "gpuviz"
    yield from _settings(failed, trials, module)
    if trials.after_empty_cache():
        yield (
            f"After {module}.empty_cache() outside a private pool the request would have succeeded."
        )
    if trials.after_release_beside():
        _, release = cache_of(failed.moment.recording.manifest, of_torch=not failed.of_torch)
        yield f"After {release} the request would have succeeded."
    for name in trials.places():
        yield f"In {name} the request would have succeeded; order streams with events."
    yield from _freeing(failed, trials)
    largest = trials.largest()
    if largest:
        yield (
            f"A request for {format_bytes(largest)} would have succeeded: process smaller pieces, "
            "one after the other."
        )


def _manifest(failed: "OutOfMemory") -> "Manifest":
    return manifest_of(failed.moment.recording, failed.pool)


def _settings(failed: "OutOfMemory", trials: Trials, module: str) -> "Iterator[str]":
    """Yield the limits, settings and sizes without or with which it succeeds."""
    manifest = _manifest(failed)
    lifted = f"{module}.set_per_process_memory_fraction(1.0)"
    if manifest.allocator == "observe" and module == "gpuviz":
        lifted = "a higher limit of the memory pool"
    succeeds = _SUCCEEDS_IF_IN_TIME if trials.has_late_frees else _SUCCEEDS
    over_limit = failed.limit is not None and failed.reserved + failed.segment_size > failed.limit
    if failed.verdict == "capped" and over_limit:
        yield f"With {lifted} before this line {_SUCCEEDS}."
    elif trials.without_limit():
        yield f"With {lifted} {succeeds}."
    if trials.with_free_splits():
        yield f"Without the setting max_split_size_mb {succeeds}."
    if trials.with_less_rounding():
        yield f"Without the setting {ROUNDING} {succeeds}."
    if trials.with_own_segment():
        yield (
            f"With {format_bytes(OWN_SEGMENT)} or more, in a segment of its own size, {_SUCCEEDS}: "
            "allocate several such arrays at once, and use parts of it."
        )
    if trials.with_expandable_segments():
        kept = [each for each in known_settings(manifest) if not each.startswith(EXPANDABLE)]
        how = line_to_use(manifest, ",".join([*kept, f"{EXPANDABLE}:True"]))
        yield f"With {how} at the start of the program {succeeds}."


def _freeing(failed: "OutOfMemory", trials: Trials) -> "Iterator[str]":
    if trials.without_obstacle() and failed.obstacle is not None:
        yield (
            f"Freeing {_live(failed.obstacle)} between free blocks of this pool and stream makes "
            "room: the request would have succeeded."
        )
    if trials.without_pins() and failed.pins is not None:
        yield (
            f"Freeing {_live(failed.pins)} empties segments that the allocator then releases: the "
            "request would have succeeded."
        )
    unused = trials.without_unused()
    if unused is not None:
        site, source = failed.moment.recording.call_stacks.call_site(unused.stacks[0][0])
        of = f" from {named(site, source)}"
        if len(unused.stacks) > 1:
            of = f", most of it{of},"
        was, them = ("was", "it") if unused.blocks == 1 else ("were", "them")
        yield (
            f"{_live(unused)}{of} {was} unused for the longest time: without {them} the request "
            "would have succeeded."
        )


def _live(blocks: "Obstacle") -> str:
    return f"{format_counted(blocks.blocks, 'live block')} ({format_bytes(blocks.bytes)})"


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


def place_name(free: "FreeMemory") -> str:
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
# What helps whatever the allocator does, or cannot be tried.
_GENERAL = {
    "too_large": ("Process smaller pieces, or use a smaller data type.",),
    "refused": (
        (
            "Something outside the allocator limits it (MPS, MIG, a limit of the driver), or "
            "memory was freed just after the failure: try again."
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
