"""R59: a graph of autograd is kept after the backward pass that used it."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import phases_of, stacks_of, values_of_stacks
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R59",
        "a graph that is kept after its backward pass",
        "as R51, but a backward pass has used the activations, and has freed at most 5 % as many "
        "bytes of those that were made meanwhile, and autograd does not record it; the saving "
        "frees each after the last work of a backward pass that is known to use it",
        "no `retain_graph=True`: `detach()` what another backward pass needs too, or delete the "
        "loss",
    ),
)

_LEAST_GRAPHS = 2


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find graphs that a backward pass has used and not freed.

    Trigger: graphs end, at least twice, long after a backward pass that has used their activations
    and has freed next to none of them, as with ``retain_graph=True``; see
    `gpuviz.advice.arrays.training_blocks.TrainingBlocks.retained_graphs`. A pass that autograd
    records, with ``create_graph=True``, keeps what it uses: see R82.

    Saving: the decrease of the peak if each array were freed after its last known use in a backward
    pass; those that no backward pass is known to use, after the last of their graph. The program
    may keep all of these arrays itself: ``possible``.
    """
    if device.training is None:
        return
    blocks, graph = device.training.retained_graphs
    is_asked_for = np.isin(graph, graph[_are_used_by_recorded(device)[blocks]])
    blocks, graph = blocks[~is_asked_for], graph[~is_asked_for]
    numbers, graph = np.unique(graph, return_inverse=True)
    if len(numbers) < _LEAST_GRAPHS:
        return
    used = device.after_known_use[blocks]
    last = np.zeros(len(numbers), np.int64)
    np.maximum.at(last, graph, used)
    end = np.where(device.training.is_used_backward[blocks], used, last[graph])
    change = Change(blocks, device.begin[blocks], np.minimum(end, device.end[blocks]))
    yield _finding(device, change, len(numbers))


def _are_used_by_recorded(device: DeviceBlocks) -> np.ndarray:
    """Return whether a backward pass that autograd records uses each block."""
    used, tables = device.used, device.recording.tables
    stacks, place = stacks_of(tables, used.call), device.place[used.block]
    is_recorded = values_of_stacks(tables, "differentiable", stacks) == 1
    is_recorded &= (phases_of(tables, stacks) == BACKWARD) & (place >= 0)
    found = np.zeros(len(device.size), bool)
    found[place[is_recorded]] = True
    return found


def _finding(device: DeviceBlocks, change: Change, graphs: int) -> Finding:
    chosen = device.at_peak[change.blocks] & (change.end <= device.peak_place)
    at_peak = change.blocks[chosen] if chosen.any() else change.blocks
    size = format_bytes(int(device.size[at_peak].sum()))
    return Finding(
        rule="R59",
        title=f"{size} of the peak are activations of a graph that is kept after its backward "
        "pass.",
        reason=(
            f"{format_counted(graphs, 'time', 'times')} {_backward_line(device, at_peak)} used a "
            "graph and did not free it. It was freed later, when the program released the loss."
        ),
        change=(
            "Call `backward()` without `retain_graph=True`: it frees each array after its use. If "
            "another backward pass needs a part of the graph, `detach()` that part in the first "
            "loss, unless the first one needs its gradients. Deleting the loss (`del`) after its "
            "backward pass frees the graph too, but only then."
        ),
        certainty="possible",
        device=device.device,
        lines=device.lines.lines_of(at_peak),
        evidence=device.lines.evidence(at_peak),
        lifetimes=change,
    )


def _backward_line(device: DeviceBlocks, blocks: np.ndarray) -> str:
    """Return the line that ran the last backward pass which used some blocks, for a sentence."""
    calls = device.used.call[np.isin(device.place[device.used.block], blocks)]
    stacks = stacks_of(device.recording.tables, calls)
    stacks = stacks[phases_of(device.recording.tables, stacks) == BACKWARD]
    frame = device.recording.call_stacks.user_frame(int(stacks[-1])) if len(stacks) else None
    return "a backward pass" if frame is None else named(frame.site, frame.source)
