"""R52: activations are most of the peak, and could be computed again in the backward pass."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import ACTIVATION, BACKWARD, FORWARD, TrainingBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.model_calls import recomputed_modules
from gpuviz.analysis.launches import calls_of, durations, phases_of, stacks_of
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_duration, format_share

RULES = (
    Rule(
        "R52",
        "activations that checkpointing saves",
        "at least half of the peak are activations that a backward pass frees, in numbered modules "
        "of one list or sequence that a backward pass does not compute again already, or in one "
        "module that each step calls several times; checkpointing them in the best of a few "
        "groupings, or each call, lowers the peak by at least a fifth; "
        "the cost is the time of their forward kernels, once more",
        "`torch.utils.checkpoint` for these modules",
        is_trade=True,
    ),
)

_KINDS = DICTIONARIES["activities", "kind"]
_LEAST_OF_PEAK = 0.5
_LEAST_SAVED = 0.2
_FEWEST_MODULES = 2
_LEAST_OF_MODULE = 0.5
# The part of a module's path up to a number, such as `layers.3` of `layers.3.mlp.up`.
_BATCH_NORM = re.compile(r"batch_?norm|\bbn_fw_tr", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:^|.*?\.)\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class _Modules:
    """Numbered modules of one list or sequence, in the order of the forward pass.

    Or the calls of one module in a step.

    Attributes:
        paths: Their paths.
        of_block: For each block, the position of the module that allocated it; -1 if none did.
        are_calls: Whether they are the calls of one module.
    """

    paths: list[str]
    of_block: np.ndarray
    are_calls: bool = False


@dataclass(frozen=True, slots=True)
class _Groups:
    """Modules in groups that are checkpointed.

    Attributes:
        modules: The modules.
        length: How many are in a group.
        change: The lifetimes of activations.
        saved: By how many bytes that lowers the peak.
    """

    modules: _Modules
    length: int
    change: Change
    saved: int


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find modules whose activations are worth being computed again.

    Trigger: activations that a backward pass frees are at least half of the peak. Modules of which
    the same path ends in different numbers are of one list or sequence; of several, the one with
    most bytes counts. A module of which any part runs again in the backward pass is checkpointed
    already: of the others, the longest run counts. Instead of a list, it may be a module with half
    of these bytes that each step calls several times, as one that advances a state: it begins again
    where what it allocated first is allocated again, and each call allocates the same.

    Saving: the decrease of the peak if the activations of a group of these modules, without its
    output, were freed when its forward pass ends, and allocated again before its first gradient.
    Groups of one module, of the square root of their number, and of powers of two are tried, but
    single calls of a module. The
    cost is the time of the group's kernels in the forward passes, once more. It is a trade:
    ``possible``.
    """
    training = device.training
    if training is None:
        return
    is_kept = (training.category == ACTIVATION) & (training.phase == FORWARD)
    is_kept &= (training.freed_in == BACKWARD) & ~device.is_shared
    at_peak = int(device.size[is_kept & device.at_peak].sum())
    if at_peak < _LEAST_OF_PEAK * device.peak.bytes:
        return
    tried = []
    for find_modules in (_numbered_modules, _called_module):
        modules = find_modules(device, training, is_kept & device.at_peak)
        if len(modules.paths) < _FEWEST_MODULES:
            continue
        for length in [1] if modules.are_calls else _lengths(len(modules.paths)):
            change = _checkpointed(device, training, modules, is_kept, length)
            tried.append(_Groups(modules, length, change, device.replay.saving(change)))
    best = max(tried, key=lambda groups: (groups.saved, -groups.length), default=None)
    if best is not None and best.saved >= _LEAST_SAVED * device.peak.bytes:
        yield _finding(device, best, at_peak)


def _lengths(count: int) -> list[int]:
    """Return numbers of modules that are checkpointed together."""
    powers = [1 << power for power in range(count.bit_length()) if 2 << power <= count]
    return sorted({1, round(count**0.5), *powers})


def _numbered_modules(
    device: DeviceBlocks, training: TrainingBlocks, chosen: np.ndarray
) -> _Modules:
    """Return the modules of the list or sequence in which most of the chosen bytes are."""
    paths = [found[0] if (found := _NUMBERED.match(module)) else "" for module in training.modules]
    sums: dict[str, int] = {}
    for row in np.flatnonzero(chosen).tolist():
        if paths[row]:
            of_list = paths[row].rpartition(".")[0]
            sums[of_list] = sums.get(of_list, 0) + int(device.size[row])
    largest = max(sums, key=lambda each: sums[each], default=None)
    positions: dict[str, int] = {}
    order = np.flatnonzero(training.phase == FORWARD)
    for row in order[np.argsort(device.begin[order], kind="stable")].tolist():
        if paths[row] and paths[row].rpartition(".")[0] == largest:
            positions.setdefault(paths[row], len(positions))
    run = _longest_run(list(positions), recomputed_modules(device.recording))
    places = {path: place for place, path in enumerate(run)}
    of_block = np.array([places.get(path, -1) for path in paths], np.int64)
    return _Modules(run, of_block)


def _called_module(device: DeviceBlocks, training: TrainingBlocks, chosen: np.ndarray) -> _Modules:
    """Return the calls of the outermost module with half of the chosen bytes that is called again.

    The calls are numbered in each step. No paths if there is no such module.
    """
    sums: dict[str, int] = {}
    for row in np.flatnonzero(chosen).tolist():
        for path in _with_parents(training.modules[row]):
            sums[path] = sums.get(path, 0) + int(device.size[row])
    least = int(device.size[chosen].sum()) * _LEAST_OF_MODULE
    recomputed = recomputed_modules(device.recording)
    forward = np.flatnonzero(training.phase == FORWARD)
    forward = forward[np.lexsort((device.begin[forward], training.step[forward]))]
    names, of_block = set(training.modules), np.full(len(device.size), -1, np.int64)
    for path in sorted(sums, key=lambda each: each.count(".")):
        if sums[path] < least or any(f"{each}.".startswith(f"{path}.") for each in recomputed):
            continue
        inside = {each for each in names if f"{each}.".startswith(f"{path}.")}
        is_within = [training.modules[row] in inside for row in forward.tolist()]
        rows = forward[np.array(is_within, bool)]
        number = _calls_in_steps(training.step, device.stack, rows)
        if number is not None:
            of_block[rows] = number
            return _Modules([path] * (int(number.max()) + 1), of_block, are_calls=True)
    return _Modules([], of_block)


def _calls_in_steps(step: np.ndarray, stack: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Return which call of a module in its step allocated each of some blocks, from 0.

    A call begins where what was allocated first is allocated again. None if there is one call, or
    if not all of them allocate the same: then a loop within the module repeats a part of it.
    """
    step, stack = step[rows], stack[rows]
    _, first, place = np.unique(step, return_index=True, return_inverse=True)
    is_first = stack == stack[first][place]
    is_first[1:] &= (stack[1:] != stack[:-1]) | (step[1:] != step[:-1])
    begun = np.cumsum(is_first)
    number: np.ndarray = begun - begun[first][place]
    calls = np.bincount(place, is_first)
    (of_step, _), counts = np.unique(np.stack([place, stack]), axis=1, return_counts=True)
    is_same = bool((counts % calls[of_step] == 0).all())
    return number if is_same and number.max(initial=0) > 0 else None


def _with_parents(path: str) -> list[str]:
    """Return the path of a module and those of the modules that it is in."""
    parts = path.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))] if path else []


def _longest_run(paths: list[str], recomputed: frozenset[str]) -> list[str]:
    """Return the longest run of modules of which no part is computed again."""
    best: list[str] = []
    run: list[str] = []
    for path in paths:
        is_recomputed = any(f"{each}.".startswith(f"{path}.") for each in recomputed)
        run = [] if is_recomputed else [*run, path]
        best = max(best, run, key=len)
    return best


def _checkpointed(
    device: DeviceBlocks,
    training: TrainingBlocks,
    modules: _Modules,
    is_kept: np.ndarray,
    length: int,
) -> Change:
    """Return the lifetimes of activations if groups of modules were checkpointed.

    A group's output stays, because it is the input of the next one. That of a call may be another
    array than those that are kept.
    """
    group = np.where(modules.of_block >= 0, modules.of_block // length, -1)
    keys = group * (int(training.step.max()) + 1) + training.step
    kept = np.flatnonzero(is_kept & (group >= 0))
    kept = kept[np.lexsort((device.begin[kept], keys[kept]))]
    runs, first = np.unique(keys[kept], return_index=True)
    ends = np.append(first[1:], len(kept)) - 1
    run = np.searchsorted(runs, keys[kept])
    # The first gradient of a group, and the first free of what it saved.
    again = np.minimum.reduceat(device.end[kept], first) if len(kept) else first
    gradients = np.flatnonzero((training.phase == BACKWARD) & np.isin(keys, runs))
    np.minimum.at(again, np.searchsorted(runs, keys[gradients]), device.begin[gradients])
    is_output = np.zeros(len(kept), bool)
    is_output[ends] = not modules.are_calls or _are_last(device, training, keys, kept[ends])
    freed = kept[~is_output]
    done = device.begin[kept[ends]][run][~is_output] + 1
    before = again[run][~is_output] - 1
    worth = before > done
    freed, done, before = freed[worth], done[worth], before[worth]
    return Change(
        np.concatenate([freed, freed]),
        np.concatenate([device.begin[freed], before]),
        np.concatenate([done, device.end[freed]]),
    )


def _are_last(
    device: DeviceBlocks,
    training: TrainingBlocks,
    keys: np.ndarray,
    blocks: np.ndarray,
) -> np.ndarray:
    """Return whether each of some blocks is the last one of its key in the forward pass."""
    forward = np.flatnonzero((training.phase == FORWARD) & np.isin(keys, keys[blocks]))
    known, number = np.unique(keys[forward], return_inverse=True)
    latest = np.zeros(len(known), np.int64)
    np.maximum.at(latest, number, device.begin[forward])
    are_last: np.ndarray = device.begin[blocks] >= latest[np.searchsorted(known, keys[blocks])]
    return are_last


def _finding(device: DeviceBlocks, groups: _Groups, at_peak: int) -> Finding:
    modules, length = groups.modules, groups.length
    again_ns, steps = _forward_ns(device, modules), _steps(device)
    step_ns = device.schedule.working_ns // steps
    cost = format_duration(again_ns // steps)
    first, last = modules.paths[0], modules.paths[-1]
    named = f"`{first}` to `{last}`"
    kept = "each of these modules" if length == 1 else f"groups of {length} of these modules"
    if modules.are_calls:
        named = f"each of the {len(modules.paths)} calls of `{first}` in a step"
        kept = "these calls"
    blocks = np.unique(groups.change.blocks)
    share = format_share(at_peak / device.peak.bytes)
    return Finding(
        rule="R52",
        title=(
            f"{format_bytes(at_peak)}, {share} of the peak, are activations; checkpointing {named} "
            f"saves {format_bytes(groups.saved)} and takes {cost} more in each step."
        ),
        reason=(
            f"Only the outputs of {kept} would stay until the backward pass, which computes "
            f"the rest again. Their forward kernels take {cost} of a step of "
            f"{format_duration(step_ns)}."
        ),
        change=(
            "Call them through `torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False)`"
            if length == 1
            else "Call the sequence through `torch.utils.checkpoint.checkpoint_sequential` with "
            f"{-(-len(modules.paths) // length)} segments"
        )
        + f", if memory is worth the time.{_normalization(device)}",
        certainty="possible",
        device=device.device,
        lines=device.lines.lines_of(blocks[device.at_peak[blocks]]),
        evidence=device.lines.evidence(blocks),
        lifetimes=groups.change,
    )


def _normalization(device: DeviceBlocks) -> str:
    """Return what a second forward pass does to batch normalization, if there is any.

    Source: https://github.com/pytorch/pytorch/issues/96136
    """
    tables = device.recording.tables
    names = distinct(plain(tables["activities"]["name"]))
    if not are_named(tables, names, _BATCH_NORM.search).any():
        return ""
    return (
        " Batch normalization then updates its running statistics twice in each step, unless its "
        "momentum is adapted."
    )


def _steps(device: DeviceBlocks) -> int:
    training = device.training
    assert training is not None  # noqa: S101 - see find
    return max(int(training.step.max(initial=0)), 1)


def _forward_ns(device: DeviceBlocks, modules: _Modules) -> int:
    """Return how long the kernels of the modules took in all forward passes."""
    recording = device.recording
    activities = recording.tables["activities"]
    chosen = codes(activities["kind"], _KINDS) == _KINDS.index("kernel")
    chosen &= plain(activities["device"]) == device.device
    calls = calls_of(recording.tables, plain(activities["correlation"])[chosen])
    stacks = stacks_of(recording.tables, calls)
    is_forward = phases_of(recording.tables, stacks) == FORWARD
    module = recording.call_stacks.module
    known, rows = np.unique(stacks, return_inverse=True)
    within = tuple(f"{path}." for path in modules.paths)
    is_of = np.array([f"{module(stack)}.".startswith(within) for stack in known.tolist()], bool)
    return int(durations(activities)[chosen][is_forward & is_of[rows.ravel()]].sum())
