"""R53: temporaries of an optimizer's step at the peak, and gradients that nothing needs there."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import (
    BACKWARD,
    GRADIENT,
    OPTIMIZER,
    TEMPORARY,
    TrainingBlocks,
)
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.optimizers import OptimizerStep, optimizer_step
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.data.codes import PHASES
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R53",
        "memory of an optimizer's step",
        "the peak is in a step of an optimizer, with temporary arrays of that step; or gradients "
        "stay allocated at the peak, between the step that read them and the backward pass that "
        "writes the next ones; the saving of the first is without these arrays where PyTorch has a "
        "fused form for CUDA (Adam, AdamW, SGD), and with those of one parameter at a time "
        "elsewhere",
        "`fused=True` or, where PyTorch has none for CUDA, `foreach=False`; "
        "`optimizer.zero_grad(set_to_none=True)` directly after `optimizer.step()`",
    ),
)

# Adagrad's step at once has an array for it, which one parameter after the other does without.
_ONLY_AT_ONCE = "numerator = torch._foreach_mul("


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find what optimizers allocate for a step, and gradients that wait for the next one.

    Trigger of the first: temporary arrays that an optimizer allocated are allocated at the peak.
    The saving is that without any temporary array of optimizers of its class, as with
    ``fused=True``. Of PyTorch's other optimizers, the arrays of a parameter are then allocated
    where those of the previous one were, and freed when the next ones are, as with
    ``foreach=False``; if they are so already, nothing is to be changed.

    Trigger of the second: gradients are used in a step of an optimizer, then not until a backward
    pass, and are allocated meanwhile at the peak, which is not in a step. The saving is the
    decrease of the peak if they were freed after the step and allocated by the backward pass, as
    with ``set_to_none=True``. Gradients that a backward pass adds to without a step before it are
    needed.
    """
    training = device.training
    if training is None:
        return
    is_temporary = (training.category == TEMPORARY) & (training.phase == OPTIMIZER)
    if (is_temporary & device.at_peak).any():
        yield from _temporaries(device, np.flatnonzero(is_temporary))
    if device.recording.call_stacks.phase(device.lines.peak_stack) == PHASES[OPTIMIZER]:
        return  # the step needs them
    yield _gradients(device, _without_idle_gradients(device, training))


def _without_idle_gradients(device: DeviceBlocks, training: TrainingBlocks) -> Change:
    """Return the lifetimes of gradients that end after each step and begin with a backward pass."""
    used = device.used
    place = device.place[used.block]
    is_ours = (place >= 0) & (training.category[place] == GRADIENT) & ~device.is_shared[place]
    rows = np.flatnonzero(is_ours)
    rows = rows[np.lexsort((used.call[rows], place[rows]))]
    block, call = place[rows], used.call[rows]
    tables = device.recording.tables
    phase = phases_of(tables, stacks_of(tables, call))
    begin, end = device.before_lines(call), device.after_lines(call)
    is_same = np.append(block[1:] == block[:-1], False)
    following = np.minimum(np.arange(len(rows)) + 1, max(len(rows) - 1, 0))
    is_idle = is_same & (phase == OPTIMIZER) & (phase[following] == BACKWARD)
    is_last = ~is_same & (phase == OPTIMIZER) & device.is_freed[block]
    # Each part of a lifetime begins with an allocation or a backward pass, and ends with a step.
    blocks = np.concatenate([block[is_idle], np.unique(block)])
    stops = np.concatenate([block[is_idle | is_last], block[~is_same & ~is_last]])
    begins = np.concatenate([begin[following][is_idle], device.begin[np.unique(block)]])
    ends = np.concatenate([end[is_idle | is_last], device.end[block[~is_same & ~is_last]]])
    starts, order = np.lexsort((begins, blocks)), np.lexsort((ends, stops))
    first, last = begins[starts], ends[order]
    blocks = blocks[starts]
    return Change(blocks, first, np.clip(last, first, device.end[blocks]))


def _temporaries(device: DeviceBlocks, blocks: np.ndarray) -> Iterator[Finding]:
    """Yield the finding about temporary arrays of the optimizer that reaches the peak with most."""
    at_peak = blocks[device.at_peak[blocks]]
    steps = {
        stack: optimizer_step(device.recording, stack)
        for stack in np.unique(device.stack[blocks]).tolist()
    }
    step = steps[int(device.stack[at_peak[np.argmax(device.size[at_peak])]])]
    alike = [stack for stack, each in steps.items() if each.name == step.name]
    blocks = blocks[np.isin(device.stack[blocks], alike)]
    if step.has_fused or not step.name:
        change = Change(blocks, device.begin[blocks], device.begin[blocks])
    elif step.is_at_once:
        change = _in_turn(device, blocks)
    else:
        return
    at_peak = blocks[device.at_peak[blocks]]
    size = format_bytes(int(device.size[at_peak].sum()))
    at_once = (
        " By default PyTorch's optimizers compute intermediate values of all parameters at once."
        if step.is_at_once
        else ""
    )
    yield Finding(
        rule="R53",
        title=f"{size} of the peak are temporary arrays of the optimizer's step.",
        reason=(
            f"{named(*device.lines.peak_line)} reaches the peak with "
            f"{format_counted(len(at_peak), 'array')} that the step frees again.{at_once}"
        ),
        change=_advice(step),
        certainty="likely" if step.name else "possible",
        device=device.device,
        lines=device.lines.lines_of(at_peak),
        evidence=device.lines.evidence(at_peak),
        lifetimes=change,
    )


def _advice(step: OptimizerStep) -> str:
    fused = "Create the optimizer with `fused=True`, which needs no such arrays"
    in_turn = (
        "`foreach=False`, which needs them for one parameter at a time but launches more kernels"
    )
    if not step.name:
        return (
            "Look for an option of the optimizer to update one parameter at a time, or in place. "
            "The saving is that without these arrays."
        )
    if not step.has_fused:
        return f"Create the optimizer with {in_turn}. PyTorch has no fused {step.name} for CUDA."
    if step.is_in_turn:
        return f"{fused}."
    return f"{fused}, or with {in_turn}. The saving is that of `fused=True`."


def _in_turn(device: DeviceBlocks, blocks: np.ndarray) -> Change:
    """Return the lifetimes of temporary arrays if a step computed one parameter after the other.

    A step at once has a list of arrays for each intermediate value. In turn, the arrays of a
    parameter are made where the first list has that of this parameter, and each is freed when the
    variable gets that of the next one. Lists of other lengths stay.
    """
    assert device.training is not None  # noqa: S101 - the blocks are an optimizer's
    blocks = blocks[np.argsort(device.begin[blocks], kind="stable")]
    stack, step = device.stack, device.training.step[blocks]
    order = np.argsort(step, kind="stable")
    ends = np.flatnonzero(np.diff(step[order])) + 1
    parts = [(np.zeros(0, np.int64),) * 3]
    for of_step in np.split(blocks[order], ends):
        _, first = np.unique(stack[of_step], return_index=True)
        lists = [of_step[stack[of_step] == stack[made]] for made in of_step[np.sort(first)]]
        begin = device.begin[lists[0]]
        for each in lists:
            innermost = device.recording.call_stacks.frames(int(stack[each[0]]))[0]
            if each is not lists[0] and innermost.source.startswith(_ONLY_AT_ONCE):
                parts.append((each, device.begin[each], device.begin[each]))
            elif len(each) == len(begin):
                end = np.append(begin[1:] + 1, device.end[each[-1]])
                parts.append((each, begin, end))
    return Change(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _gradients(device: DeviceBlocks, change: Change) -> Finding:
    blocks = np.unique(change.blocks)
    at_peak = blocks[device.at_peak[blocks]]
    size = format_bytes(int(device.size[at_peak].sum()))
    return Finding(
        rule="R53",
        title=f"{size} of gradients stay allocated at the peak after the optimizer has used them.",
        reason=(
            "Between the optimizer's step and the next backward pass nothing needs them. The peak "
            f"is reached by {named(*device.lines.peak_line)}."
        ),
        change=(
            "Call `optimizer.zero_grad(set_to_none=True)`, the default, directly after "
            "`optimizer.step()`: the next backward pass allocates them anew."
        ),
        certainty="likely",
        device=device.device,
        lines=device.lines.lines_of(at_peak),
        evidence=device.lines.evidence(at_peak),
        lifetimes=change,
    )
