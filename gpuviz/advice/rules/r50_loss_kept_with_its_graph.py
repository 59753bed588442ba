"""R50: losses or outputs are kept with the graphs of autograd that lead to them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.main_loop import host_spans
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RULES = (
    Rule(
        "R50",
        "a loss that is kept with its graph",
        "the activations of forward passes that autograd recorded stay from iteration to "
        "iteration, in at least two modules or lines; nothing uses them again, but for the last "
        "outputs, and no backward pass frees them; the saving keeps the graphs of one iteration "
        "and the one before it",
        "keep `loss.item()` or `loss.detach()`; evaluate under `torch.no_grad()`",
    ),
)


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find forward passes whose activations stay because something keeps their losses.

    Trigger: lines of forward passes that autograd recorded grow with the iterations (see
    `gpuviz.analysis.growing_lines.growing_lines`), nothing uses what they keep but a tenth of its
    bytes, such as outputs that are joined at last, and no backward pass frees it. Of a single line,
    the arrays may be results that are meant to stay; see
    `gpuviz.advice.training.TrainingBlocks.kept_graphs`.

    Saving: the decrease of the peak if the arrays of each iteration were freed when the next one
    has allocated its last, as when a variable gets the next loss. Those that the recording does
    not free may be used later: ``possible``.
    """
    if device.training is None or not len(device.training.kept_graphs):
        return
    change, iterations = _without_graphs(device, device.training.kept_graphs)
    yield _finding(device, change, iterations)


def _without_graphs(device: DeviceBlocks, blocks: "NDArray[Any]") -> tuple[Change, int]:
    """Return the change that frees each iteration's blocks after the next one's, and their number.

    Args:
        device: All blocks.
        blocks: Those of graphs, in the order of their allocations.
    """
    starts, _ = host_spans(device.recording)
    times = device.used.blocks.begin[device.number[blocks]]
    iteration = np.searchsorted(starts, times, side="right")
    numbers, first = np.unique(iteration, return_index=True)
    # The place after the last allocation of each iteration.
    last = device.begin[blocks[np.append(first[1:], len(blocks)) - 1]] + 1
    following = np.searchsorted(numbers, iteration) + 1
    is_last = following == len(numbers)
    end = np.where(is_last, device.end[blocks], last[np.minimum(following, len(numbers) - 1)])
    end = np.minimum(np.maximum(end, device.after_known_line[blocks]), device.end[blocks])
    return Change(blocks, device.begin[blocks], end), len(numbers)


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
            "Keep `loss.item()` or `loss.detach()` instead of the loss, in sums and lists too, and "
            "run what needs no gradients under `torch.no_grad()`. While the program runs, "
            "`gpuviz.leaks()` names what keeps them."
        ),
        certainty="possible" if is_open else "likely",
        device=device.device,
        lines=device.lines.lines_of(change.blocks),
        evidence=device.lines.evidence(change.blocks),
        lifetimes=change,
    )
