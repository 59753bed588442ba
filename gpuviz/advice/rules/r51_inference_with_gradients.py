"""R51: autograd keeps activations of forward passes that no backward pass follows."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import FORWARD, OTHER
from gpuviz.advice.arrays.without_graph import ends_without_graph
from gpuviz.advice.finding import Certainty, Finding
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R51",
        "inference with gradients enabled",
        "at least twice, activations that autograd recorded in at least three modules or lines are "
        "freed at once, without a backward pass that uses or frees them, and long after their last "
        "use; the saving frees each after the line that last uses it; if work that names no arrays "
        "may use it, after the last line that is known to, and when the next array but one is "
        "allocated; so too the graph of the same lines that the recording ends with, but what is "
        "used after its pass stays",
        "`torch.inference_mode()` or `torch.no_grad()`",
    ),
)

_LEAST_PASSES = 2


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find forward passes whose graphs end without a backward pass.

    Trigger: graphs that autograd recorded end, at least twice, without a backward pass; see
    `gpuviz.advice.arrays.training_blocks.TrainingBlocks.ended_graphs`. Without gradients, each of
    their arrays would have been freed in the forward pass. Graphs that stay from iteration to
    iteration are R50's.

    Saving: the decrease of the peak if each array were freed after the line that last uses it.
    Kernels of libraries may not name the arrays that they use. Then it is freed when the array
    after the next one of its graph is allocated, as in a chain of modules, but not before the last
    line that is known to use it: ``possible``. What the program keeps and uses itself stays.
    Inputs that are freed with a graph are freed when their line has made the next one. The graph
    that the recording ends with counts if it is one of the same lines. What is used after its
    forward pass is held by a variable, and stays as long as recorded.
    """
    if device.training is None:
        return
    blocks, passes = device.training.ended_graphs
    if passes < _LEAST_PASSES:
        return
    blocks = np.append(blocks, device.training.last_graph)
    blocks = blocks[np.argsort(device.begin[blocks], kind="stable")]
    is_unknown = device.last_known[blocks] != device.used.last[device.number[blocks]]
    end, is_unknown = ends_without_graph(
        device, blocks, device.after_use[blocks], device.last_known[blocks], is_unknown
    )
    end = np.where(_are_outputs(device, blocks), device.end[blocks], end)
    inputs, replaced = _replaced_inputs(device, device.training.ended_inputs)
    blocks, end = np.append(blocks, inputs), np.append(end, replaced)
    change = Change(blocks, device.begin[blocks], end)
    yield _finding(device, change, passes, "possible" if is_unknown.any() else "likely")


def _are_outputs(device: DeviceBlocks, blocks: np.ndarray) -> np.ndarray:
    """Return which blocks of a forward pass are last used after it: a variable holds them."""
    assert device.training is not None  # noqa: S101 - it has graphs
    last = device.last_known[blocks]
    tables = device.recording.tables
    used_in = phases_of(tables, stacks_of(tables, last))
    of_pass = device.training.phase[blocks] == FORWARD
    found: np.ndarray = of_pass & (last >= 0) & (used_in == OTHER)
    return found


def _replaced_inputs(device: DeviceBlocks, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which inputs would be freed when their line makes the next one, and the places."""
    known = np.flatnonzero(device.stack != 0)
    order = known[np.lexsort((device.begin[known], device.stack[known]))]
    following = np.full(len(device.stack), np.iinfo(np.int64).max)
    is_same = device.stack[order[1:]] == device.stack[order[:-1]]
    # Its variable keeps the array until it gets the new one.
    following[order[:-1][is_same]] = device.begin[order[1:][is_same]] + 1
    end = np.maximum(device.after_known_line[blocks], following[blocks])
    is_sooner = end < device.end[blocks]
    return blocks[is_sooner], end[is_sooner]


def _finding(device: DeviceBlocks, change: Change, passes: int, certainty: Certainty) -> Finding:
    at_peak = change.blocks[device.at_peak[change.blocks]]
    # What the program keeps itself, such as outputs in a list, would stay.
    freed = change.blocks[device.at_peak[change.blocks] & (change.end <= device.peak_place)]
    at_peak = freed if len(freed) else at_peak
    size = format_bytes(int(device.size[at_peak].sum()))
    return Finding(
        rule="R51",
        title=f"{size} of the peak are activations that autograd keeps, and no backward pass "
        "follows.",
        reason=(
            f"{format_counted(passes, 'time', 'times')} the output of a forward pass was released "
            "with its graph, and all that was saved for a backward pass with it: "
            f"{format_counted(len(change.blocks), 'array')}."
        ),
        change=(
            "Run forward passes that need no gradients under `torch.inference_mode()` or "
            "`torch.no_grad()`: each array is then freed after its last use."
        ),
        certainty=certainty,
        device=device.device,
        lines=device.lines.lines_of(at_peak),
        evidence=device.lines.evidence(at_peak),
        lifetimes=change,
    )
