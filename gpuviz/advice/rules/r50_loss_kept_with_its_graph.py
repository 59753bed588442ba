"""R50: losses or outputs are kept with the graphs of autograd that lead to them."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import BACKWARD, TrainingBlocks
from gpuviz.advice.arrays.without_graph import ends_without_graph
from gpuviz.advice.finding import Finding
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.analysis.main_loop import host_spans
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R50",
        "a loss that is kept with its graph",
        "the activations of forward passes that autograd recorded stay from iteration to "
        "iteration, in at least two modules or lines; nothing uses them again, but for the last "
        "outputs, and no backward pass frees them; the saving frees each as in R51, without "
        "gradients; if a backward pass may use some, or the recording frees none, it keeps the "
        "graphs of one iteration and the one before it",
        "evaluate under `torch.no_grad()`; keep `loss.item()` or `loss.detach()`",
    ),
)


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find forward passes whose activations stay because something keeps their losses.

    Trigger: lines of forward passes that autograd recorded grow with the iterations (see
    `gpuviz.analysis.growing_lines.growing_lines`), nothing uses what they keep but a tenth of its
    bytes, such as outputs that are joined at last, and no backward pass frees it. Of a single line,
    the arrays may be results that are meant to stay; see
    `gpuviz.advice.arrays.training_blocks.TrainingBlocks.kept_graphs`.

    Saving: the decrease of the peak if each array were freed after its use, as without gradients
    (see `gpuviz.advice.arrays.without_graph`), if no backward pass uses any of these lines' arrays.
    Otherwise the passes may need their gradients. Then it is the decrease if the arrays of each
    iteration were freed when the next one has allocated its last, as when a variable gets the next
    loss; so too if the recording frees none, since they may be used later: ``possible``.
    """
    if device.training is None or not len(device.training.kept_graphs):
        return
    blocks = device.training.kept_graphs
    # The first array of an iteration may be allocated before its first launch.
    _, ends = host_spans(device.recording)
    iteration = np.searchsorted(ends, device.used.blocks.begin[device.number[blocks]])
    if device.is_freed[blocks].any() and not _may_need_gradients(device, device.training):
        is_unknown = device.last_known[blocks] != device.used.last[device.number[blocks]]
        end, _ = ends_without_graph(
            device, blocks, device.after_use[blocks], device.last_known[blocks], is_unknown
        )
    else:
        end = _after_next(device, blocks, iteration)
    change = Change(blocks, device.begin[blocks], end)
    yield _finding(device, change, len(np.unique(iteration)))


def _may_need_gradients(device: DeviceBlocks, training: TrainingBlocks) -> bool:
    """Return whether a backward pass may use what the lines of the graphs make."""
    stacks = device.stack[training.kept_graphs]
    if np.isin(device.stack[training.is_used_backward], stacks).any():
        return True
    # Work that names no arrays may use any.
    tables = device.recording.tables
    hidden = phases_of(tables, stacks_of(tables, device.used.opaque))
    return bool((hidden == BACKWARD).any())


def _after_next(device: DeviceBlocks, blocks: np.ndarray, iteration: np.ndarray) -> np.ndarray:
    """Return the places where the blocks of the next iteration have been allocated.

    Args:
        device: All blocks.
        blocks: Those of graphs, in the order of their allocations.
        iteration: The number of each one's iteration.
    """
    numbers, first = np.unique(iteration, return_index=True)
    last = device.begin[blocks[np.append(first[1:], len(blocks)) - 1]] + 1
    following = np.searchsorted(numbers, iteration) + 1
    is_last = following == len(numbers)
    end = np.where(is_last, device.end[blocks], last[np.minimum(following, len(numbers) - 1)])
    # A line that a loop repeats without another one is one run: it frees graphs in between.
    made = device.after_times(device.made_until[blocks])
    line, use = device.after_known_line[blocks], device.after_known_use[blocks]
    known = np.where(line <= made, use, line)
    found: np.ndarray = np.minimum(np.maximum(end, known), device.end[blocks])
    return found


def _finding(device: DeviceBlocks, change: Change, iterations: int) -> Finding:
    size = format_bytes(int(device.size[change.blocks].sum()))
    is_open = not device.is_freed[change.blocks].any()
    end = " The recording ends with them: a backward pass may follow." if is_open else ""
    passes = format_counted(iterations, "forward pass", "forward passes")
    return Finding(
        rule="R50",
        title=f"{size} of activations stay from {passes}, whose losses or outputs are kept with "
        "their graphs.",
        reason=(
            f"Autograd keeps what a backward pass would need as long as the result exists: "
            f"{format_counted(len(change.blocks), 'array')}, which no backward pass uses.{end}"
        ),
        change=(
            "Run what needs no gradients under `torch.no_grad()`, and keep `loss.item()` or "
            "`loss.detach()` instead of the loss, in sums and lists too. While the program runs, "
            "`gpuviz.leaks()` names what keeps them."
        ),
        certainty="possible" if is_open else "likely",
        device=device.device,
        lines=device.lines.lines_of(change.blocks),
        evidence=device.lines.evidence(change.blocks),
        lifetimes=change,
    )
