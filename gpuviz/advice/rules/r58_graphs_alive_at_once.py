"""R58: the graphs of several forward passes are alive until one backward pass."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import (
    ACTIVATION,
    BACKWARD,
    FORWARD,
    GRADIENT,
    OPTIMIZER,
    TrainingBlocks,
)
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.model_calls import ModelCalls, are_in_models, caller, model_calls
from gpuviz.advice.training.added_losses import SCALAR_BYTES, added_losses
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R58",
        "several graphs are alive at once",
        "a model is called at least twice before a backward pass, which frees the activations of "
        "all these calls; after the next call has begun, only the backward pass uses those of the "
        "one before, but for scalars such as its loss, and no work of a loss gets arrays that it "
        "does not name, as of `torch.cat`; or, without modules, the rounds of a loop only add up "
        "their losses; the saving frees the activations of each "
        "call before the largest when the next one begins, leaves out those of later calls, and "
        "allocates the gradients at the first of these frees",
        "`backward()` after each forward pass: the gradients add up",
    ),
)

_LEAST_CALLS = 2
_MANY_ROUNDS = 4
# A call with as large a share of the most activations counts as the largest, if it comes later.
_ABOUT_LARGEST = 0.9


@dataclass(frozen=True, eq=False, slots=True)
class _Together:
    """Calls of a model before one backward pass.

    Attributes:
        calls: Their positions in `ModelCalls`, ascending.
        blocks: The activations of each that a backward pass frees.
        made: All activations of each.
    """

    calls: list[int]
    blocks: list[np.ndarray]
    made: list[np.ndarray]


@dataclass(frozen=True, slots=True)
class _Words:
    """The sentences of a finding, with fields for what it is about."""

    what: str
    reason: str
    change: str


_OF_MODULES = _Words(
    "{} forward passes, which all wait for",
    "{model} calls the model {count} times before {backward}. Once the next call has begun, only "
    "the backward pass uses the activations of the one before.",
    "Call `backward()` for the loss of each forward pass before the next one: gradients add up. "
    "Run passes that need no gradients under `torch.no_grad()`. Only a loss that compares several "
    "passes, as in contrastive learning, needs them together.",
)
_OF_ROUNDS = _Words(
    "{} rounds of a loop, whose losses wait for",
    "{count} rounds of a loop add up their losses before {backward}. Once the next round has "
    "begun, only the backward pass uses the activations of the one before.",
    "Call `backward()` for the loss of each round, scaled as the sum is, within the loop: "
    "gradients add up. Add `loss.detach()` to the sum that is only reported.",
)


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find forward passes whose graphs wait for the same backward pass.

    Trigger: a model, the outermost module that is called, is called at least twice before a
    backward pass, and that frees activations of all these calls. Modules that are called within
    another one do not count. Calls are of one model if their activations are of the same modules.
    Nothing but a backward pass uses the activations of a call after the next one has begun, other
    than scalars: what a recurrent network hands on, or a loss compares, is needed, unless a line
    does so in only one of many rounds. Neither may
    forward work outside of models use arrays that it does not name.

    Without modules, the rounds of a loop that adds up losses count; see `added_losses`.

    Saving: the decrease of the peak if the activations of each call before the largest were freed
    before the next one begins, and those of the calls after it allocated only once the largest's
    are freed; and if the gradients were allocated at the first of these frees, by the first
    backward pass. A loss may need several passes together in a way that is not seen: ``possible``.
    """
    training = device.training
    if training is None:
        return
    calls = model_calls(device.recording)
    if not len(calls.begin):
        yield from _without_modules(device, training)
        return
    together = list(_together(device, training, calls))
    is_needed = _is_used_again(device, calls, together)
    hidden = _hidden_uses(device)
    found = [
        each
        for each in together
        if not is_needed[np.concatenate(each.made)].any()
        and not _is_within(hidden, *_window(device, calls, each))
    ]
    if not found:
        return
    change = _one_by_one(device, training, calls, found)
    largest = _largest_at_peak(device, found)
    if largest is not None:
        yield _finding(device, largest, change, _OF_MODULES)


def _without_modules(device: DeviceBlocks, training: TrainingBlocks) -> Iterator[Finding]:
    """Yield the finding about the rounds of a loop that adds up losses."""
    losses = added_losses(device, training)
    counts = np.cumsum([0, *(len(each.begin) for each in losses)]).tolist()
    found = [
        _Together([*range(*calls)], each.blocks, each.made)
        for each, calls in zip(losses, pairwise(counts), strict=True)
    ]
    largest = _largest_at_peak(device, found)
    if largest is None:
        return
    begin = np.array([begin for each in losses for begin in each.begin])
    stack = np.array([device.stack[made[0]] for each in losses for made in each.made])
    calls = ModelCalls(begin, stack, np.zeros_like(begin))
    change = _one_by_one(device, training, calls, found)
    yield _finding(device, largest, change, _OF_ROUNDS)


def _largest_at_peak(device: DeviceBlocks, found: list[_Together]) -> _Together | None:
    at_peak = [each for each in found if _count_at_peak(device, each) >= _LEAST_CALLS]
    sizes = [int(device.size[np.concatenate(each.blocks)].sum()) for each in at_peak]
    return at_peak[int(np.argmax(sizes))] if at_peak else None


def _count_at_peak(device: DeviceBlocks, together: _Together) -> int:
    return sum(bool(device.at_peak[blocks].any()) for blocks in together.blocks)


def _together(
    device: DeviceBlocks, training: TrainingBlocks, calls: ModelCalls
) -> Iterator[_Together]:
    """Yield the calls of each model before each backward pass, with what that pass frees."""
    is_made = (training.category == ACTIVATION) & (training.phase == FORWARD)
    made = np.flatnonzero(is_made & training.is_differentiable)
    made = made[np.argsort(device.begin[made], kind="stable")]
    times = device.used.blocks.begin[device.number[made]]
    first = np.searchsorted(times, calls.begin)
    graphs = [made[slice(*bounds)] for bounds in pairwise([*first.tolist(), len(made)])]
    is_kept = (training.freed_in == BACKWARD) & ~device.is_shared
    groups: dict[tuple[int, frozenset[str]], list[int]] = defaultdict(list)
    for call, graph in enumerate(graphs):
        modules = frozenset(training.modules[block] for block in graph[is_kept[graph]]) - {""}
        groups[int(calls.backward[call]), modules].append(call)
    for (_, modules), members in groups.items():
        if len(members) >= _LEAST_CALLS and modules:
            of_calls = [graphs[call] for call in members]
            yield _Together(members, [graph[is_kept[graph]] for graph in of_calls], of_calls)


def _is_used_again(
    device: DeviceBlocks, calls: ModelCalls, together: list[_Together]
) -> np.ndarray:
    """Return whether forward work uses each activation once the next call has begun.

    What a line does in only one of many rounds is left out: PyTorch's kernels get structures of
    which only a part is set, and the rest may hold addresses of earlier work.
    """
    used, tables = device.used, device.recording.tables
    never = np.iinfo(np.int64).max
    next_begin = np.full(len(device.size), never)
    of_round = np.zeros(len(device.size), np.int64)
    for number, each in enumerate(together):
        of_round[np.concatenate(each.made)] = number
        for made, following in zip(each.made[:-1], each.calls[1:], strict=True):
            next_begin[made[device.size[made] > SCALAR_BYTES]] = calls.begin[following]
    place = device.place[used.block]
    late = np.flatnonzero(place >= 0)
    late = late[plain(tables["api_calls"]["time"])[used.call[late]] >= next_begin[place[late]]]
    phases = phases_of(tables, stacks_of(tables, used.call[late]))
    late = late[~np.isin(phases, (BACKWARD, OPTIMIZER))]
    if len(together) >= _MANY_ROUNDS:
        lines = line_numbers(device.recording, stacks_of(tables, used.call[late]))
        rounds = numbered(lines, of_round[place[late]])[1]
        late = late[np.bincount(lines[rounds])[lines] > 1] if len(late) else late
    found = np.zeros(len(device.size), bool)
    found[place[late]] = True
    return found


def _hidden_uses(device: DeviceBlocks) -> np.ndarray:
    """Return when losses were computed by work that may use arrays without naming them, in ns."""
    opaque, tables = device.used.opaque, device.recording.tables
    stacks = stacks_of(tables, opaque)
    is_of_loss = phases_of(tables, stacks) == FORWARD
    is_of_loss &= ~are_in_models(device.recording, stacks)
    return np.sort(plain(tables["api_calls"]["time"])[opaque[is_of_loss]])


def _window(device: DeviceBlocks, calls: ModelCalls, together: _Together) -> tuple[int, int]:
    """Return the time from the begin of the second call to the first free, in ns."""
    blocks = device.number[np.concatenate(together.blocks)]
    return int(calls.begin[together.calls[1]]), int(device.used.blocks.end[blocks].min())


def _is_within(times: np.ndarray, begin: int, end: int) -> bool:
    first, after = np.searchsorted(times, (begin, end))
    return bool(first < after)


def _one_by_one(
    device: DeviceBlocks, training: TrainingBlocks, calls: ModelCalls, found: list[_Together]
) -> Change:
    """Return the lifetimes of activations and gradients with a backward pass after each call.

    The largest call's activations are freed when they were, and stand for those of the calls after
    it, which they no longer wait for.
    """
    begin, end = device.begin.copy(), device.end.copy()
    times = device.used.blocks.begin[device.number]
    in_order = np.lexsort((device.begin, times))
    # The place before the first allocation of each call.
    first = np.searchsorted(times[in_order], calls.begin)
    before = np.append(device.begin[in_order], 0)[first] - 1
    gradients = np.flatnonzero((training.category == GRADIENT) & (training.phase == BACKWARD))
    gradients = gradients[np.argsort(device.begin[gradients], kind="stable")]
    for each in found:
        sizes = np.array([device.size[blocks].sum() for blocks in each.blocks])
        largest = int(np.flatnonzero(sizes >= _ABOUT_LARGEST * sizes.max())[-1])
        places = before[each.calls[1:]].tolist()
        for blocks, place in zip(each.blocks[:largest], places, strict=False):
            end[blocks] = np.minimum(end[blocks], place)
        for blocks in each.blocks[largest + 1 :]:
            end[blocks] = begin[blocks]
        freed = max(int(device.end[blocks].max(initial=0)) for blocks in each.blocks)
        ours = gradients[slice(*np.searchsorted(device.begin[gradients], (places[0], freed)))]
        begin[ours] = np.minimum(begin[ours], places[0])
    changed = np.flatnonzero((begin != device.begin) | (end != device.end))
    return Change(changed, begin[changed], end[changed])


def _finding(device: DeviceBlocks, together: _Together, change: Change, words: _Words) -> Finding:
    blocks = np.concatenate(together.blocks)
    at_peak = blocks[device.at_peak[blocks]]
    stacks, training = device.recording.call_stacks, device.training
    assert training is not None  # noqa: S101 - see find
    called = caller(device.recording, int(device.stack[together.blocks[0][0]]))
    freeing = stacks.user_frame(int(training.freed_by[at_peak[0]]))
    size = format_bytes(int(device.size[at_peak].sum()))
    count = len(together.calls)
    model = named(called.site, called.source) if called is not None else "the model"
    backward = named(freeing.site, freeing.source) if freeing is not None else "a backward pass"
    return Finding(
        rule="R58",
        title=f"{size} of the peak are activations of {words.what.format(count)} one backward "
        "pass.",
        reason=words.reason.format(model=model, count=count, backward=backward),
        change=words.change,
        certainty="possible",
        device=device.device,
        lines=device.lines.lines_of(at_peak),
        evidence=device.lines.evidence(at_peak),
        lifetimes=change,
    )
