"""R11: a setting of the allocator would reserve less memory, or prevent failed requests."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuviz.advice.finding import Finding, named
from gpuviz.advice.reserved.reserved_memory import LEAST_SHARE, Outcome, ReservedMemory
from gpuviz.advice.rule import Rule
from gpuviz.analysis.allocator_settings import (
    CUPY,
    EXPANDABLE,
    are_valid,
    known_settings,
    line_to_use,
)
from gpuviz.data.manifest import TORCH_ALLOCATOR
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R11",
        "a setting of the allocator",
        "under another setting (one added to the program's, or one removed), the peak of reserved "
        "bytes is at least 5 % lower, or no request fails; for programs of CuPy, also than that of"
        " CuPy's own pool",
        "the line to paste; if it helps, an allocation of the largest arrays at the start",
    ),
)

_FRACTION = "per_process_memory_fraction"
_ADDED = (f"{EXPANDABLE}:True", "max_split_size_mb:128")
# Smaller blocks stay whole, which costs memory: only to prevent a failure.
_ADDED_IF_FAILED = ("max_split_size_mb:32",)


@dataclass(frozen=True, slots=True)
class _Choice:
    settings: str
    condition: str
    # The program's own one, if none remains without it.
    removed: str = ""


def find(memory: ReservedMemory) -> Iterator[Finding]:
    """Find the setting under which the same requests need the least reserved memory.

    Trigger: replayed under another setting, no request fails, and the peak of reserved bytes is at
    least 5 % lower, or requests failed in the recording. Only if it may matter; see
    `ReservedMemory.is_crowded`. For a CuPy program, the peak must also be 5 % lower than that of
    CuPy's own pool, which it uses without gpuviz. An order of
    allocations that begins with the largest is named as an alternative if it helps, too.
    """
    if not memory.is_crowded:
        return
    outcomes = [(memory.replayed(each.settings), each) for each in _choices(memory)]
    helpful = [each for each in outcomes if memory.is_relevant(each[0], LEAST_SHARE)]
    if not helpful:
        return
    best, choice = min(helpful, key=lambda each: each[0].reserved)
    if memory.failures or not _uses_cupy(memory) or _is_less_than_cupys(memory, best):
        yield _finding(memory, best, choice)


def _is_less_than_cupys(memory: ReservedMemory, outcome: Outcome) -> bool:
    pool = memory.replayed(CUPY)
    return pool.failures > 0 or outcome.reserved <= (1 - LEAST_SHARE) * pool.reserved


def _uses_cupy(memory: ReservedMemory) -> bool:
    """Return whether the program would use CuPy's pool if it were not recorded."""
    manifest = memory.recording.manifest
    return bool(manifest.cupy) and manifest.allocator == "caching"


def _choices(memory: ReservedMemory) -> Iterator[_Choice]:
    """Yield settings to try: each with one change of the program's own."""
    if memory.own == CUPY:
        yield _Choice("", "With gpuviz's allocator")
        yield _Choice(f"{EXPANDABLE}:True", f"With gpuviz's allocator and `{EXPANDABLE}:True`")
        return
    if _uses_cupy(memory):
        yield _Choice(CUPY, "With CuPy's own pool")
    items = known_settings(memory.recording.manifest)
    for item in items:
        if not item.startswith(_FRACTION):
            others = ",".join(each for each in items if each != item)
            yield _Choice(others, f"Without `{item}`", "" if others else item)
    has = {each.partition(":")[0].strip() for each in items}
    for added in (*_ADDED, *(_ADDED_IF_FAILED if memory.failures else ())):
        if added.partition(":")[0] not in has and are_valid([*items, added]):
            yield _Choice(",".join([*items, added]), f"With `{added}`")


def _finding(memory: ReservedMemory, best: Outcome, choice: _Choice) -> Finding:
    line = memory.request.line
    then, size = memory.request.memory, format_bytes(memory.request.bytes)
    reserved = f"of {format_bytes(then.reserved)} reserved bytes"
    state = f"{format_bytes(then.free)} {reserved} were free, but no free block could serve it."
    if then.rounding > then.free:
        state = f"{format_bytes(then.rounding)} {reserved} were added by rounding sizes up."
    reason = (
        f"When {named(line.site, line.source)} requested {size}, {state} "
        "The recorded allocations and frees were repeated under both settings."
    )
    if memory.failures:
        reason += f" The program would reserve at most {format_bytes(best.reserved)}."
    elif _uses_cupy(memory):
        reason += (
            " CuPy's own pool, which the program uses without gpuviz, would reserve "
            f"{format_bytes(memory.replayed(CUPY).reserved)}."
        )
    return Finding(
        rule="R11",
        title=f"{choice.condition} {memory.effect(best)}.",
        reason=reason,
        change=_change(memory, choice),
        # Other addresses can change which of two equal blocks is taken.
        certainty="likely",
        device=memory.device,
        saved_reserved_bytes=memory.saved(best),
        lines=(line,),
        evidence=memory.request.evidence,
    )


def _change(memory: ReservedMemory, choice: _Choice) -> str:
    return _line(memory, choice) + _other_order(memory)


def _other_order(memory: ReservedMemory) -> str:
    """Return what another order of allocations would achieve, if it helps."""
    ordered = memory.replayed(memory.own or "", "largest_first")
    if not memory.is_relevant(ordered, LEAST_SHARE):
        return ""
    if _uses_cupy(memory):
        pool = memory.replayed(CUPY, "largest_first").reserved
        if pool > (1 - LEAST_SHARE) * memory.replayed(CUPY).reserved:
            return ""
    return (
        " Or, with the allocator as it is, allocate the arrays of that time once at the start, "
        f"largest first, and delete them: then {memory.effect(ordered)}."
    )


def _line(memory: ReservedMemory, choice: _Choice) -> str:
    if choice.removed:
        return f"Remove `{choice.removed}` from the allocator's settings."
    manifest = memory.recording.manifest
    line = line_to_use(manifest, choice.settings)
    if choice.settings == CUPY:
        return 'Keep CuPy\'s own pool: `gpuviz.record(allocator="observe")`.'
    if manifest.allocator_name == TORCH_ALLOCATOR:
        return f"Set the environment variable `{line}`."
    if _uses_cupy(memory):
        return (
            f"Call `{line}` before the first allocation, and `cupy.cuda.set_allocator"
            "(gpuviz.malloc)` where the program is not recorded."
        )
    return f"Call `{line}` before the first allocation."
