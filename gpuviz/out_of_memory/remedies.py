"""What would have let a failed request succeed, in sentences."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuviz.advice.finding import named
from gpuviz.analysis.allocator_settings import EXPANDABLE, known_settings, line_to_use
from gpuviz.analysis.pools import cache_of
from gpuviz.data.manifest import TORCH_ALLOCATOR, Manifest
from gpuviz.out_of_memory.cached_memory import Obstacle
from gpuviz.out_of_memory.request import manifest_of
from gpuviz.out_of_memory.trials import OWN_SEGMENT, ROUNDING, Trials
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from gpuviz.out_of_memory.failures import OutOfMemory


_SUCCEEDS = "the request would have succeeded"
# Calls of the allocator take more or less time with other settings.
_SUCCEEDS_IF_IN_TIME = (
    "the request would probably have succeeded, unless other streams' frees complete later"
)
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


def _certain(failed: "OutOfMemory") -> Iterator[str]:
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


def _checked(failed: "OutOfMemory", trials: Trials) -> Iterator[str]:
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


def _manifest(failed: "OutOfMemory") -> Manifest:
    return manifest_of(failed.moment.recording, failed.pool)


def _settings(failed: "OutOfMemory", trials: Trials, module: str) -> Iterator[str]:
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


def _freeing(failed: "OutOfMemory", trials: Trials) -> Iterator[str]:
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


def _live(blocks: Obstacle) -> str:
    return f"{format_counted(blocks.blocks, 'live block')} ({format_bytes(blocks.bytes)})"
