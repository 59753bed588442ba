"""R53: temporaries of an optimizer's step at the peak, and gradients that nothing needs there."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.training import BACKWARD, GRADIENT, OPTIMIZER, TEMPORARY, TrainingBlocks
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.data.codes import PHASES
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = (
    Rule(
        "R53",
        "memory of an optimizer's step",
        "the peak is in a step of an optimizer, with temporary arrays of that step; or gradients "
        "stay allocated at the peak, between the step that read them and the backward pass that "
        "writes the next ones",
        "`fused=True` or `foreach=False`; `optimizer.zero_grad(set_to_none=True)` directly after "
        "`optimizer.step()`",
    ),
)


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find what optimizers allocate for a step, and gradients that wait for the next one.

    Trigger of the first: temporary arrays that an optimizer allocated are allocated at the peak.
    The saving is that without any temporary array of an optimizer, as with ``fused=True``.

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
        blocks = np.flatnonzero(is_temporary)
        yield _temporaries(device, Change(blocks, device.begin[blocks], device.begin[blocks]))
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


def _temporaries(device: DeviceBlocks, change: Change) -> Finding:
    at_peak = change.blocks[device.at_peak[change.blocks]]
    size = format_bytes(int(device.size[at_peak].sum()))
    return Finding(
        rule="R53",
        title=f"{size} of the peak are temporary arrays of the optimizer's step.",
        reason=(
            f"{named(*device.lines.peak_line)} reaches the peak with "
            f"{format_counted(len(at_peak), 'array')} that the step frees again. By default "
            "PyTorch's optimizers compute intermediate values of all parameters at once."
        ),
        change=(
            "Create the optimizer with `fused=True`, which needs no such arrays, or with "
            "`foreach=False`, which needs them for one parameter at a time but launches more "
            "kernels. The saving is that of `fused=True`."
        ),
        certainty="likely",
        device=device.device,
        lines=device.lines.lines_of(at_peak),
        evidence=device.lines.evidence(at_peak),
        lifetimes=change,
    )


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
