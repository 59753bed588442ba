"""R61: backward passes compute gradients that nothing uses."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.calls_left_out import without_calls
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.advice.training.unused_gradients import UnusedGradients
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_bytes, format_counted, format_duration

RULES = (
    Rule(
        "R61",
        "gradients that nothing uses",
        "in at least three backward passes, gradients are computed that an optimizer gets with a "
        "learning rate of 0, or that no optimizer gets and nothing else reads; the saving leaves "
        "out the work that only leads to them, their memory and their optimizer states, and frees "
        "activations that only this work uses as without gradients",
        "`requires_grad_(False)` for these parameters or inputs, or `torch.no_grad()` around the "
        "frozen part",
    ),
)


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find gradients that no step of an optimizer, and nothing else, uses.

    Trigger: see `gpuviz.advice.training.unused_gradients.UnusedGradients`.

    Saving: the decrease of the peak without these gradients, the states that the optimizer has for
    them, and the temporary arrays of backward passes after the last needed one, and with the
    activations that only this work uses freed as in R51. The recording's `Schedule`, replayed
    without this work and its calls, and with the optimizer's kernels shorter by the share of these
    gradients. Kernels of libraries may not name the arrays that they use: ``likely``.
    """
    if device.training is None:
        return
    gradients = UnusedGradients(device, device.training)
    if not len(gradients.partly):
        return
    change = gradients.change()
    schedule, needless = device.schedule, gradients.needless_calls
    work = np.flatnonzero((schedule.call >= 0) & (schedule.device == device.device))
    work = work[needless[schedule.call[work]]]
    if not len(work):
        return
    faster = _without(device, gradients, work)
    yield _finding(device, gradients, change, faster, work)


def _without(device: DeviceBlocks, gradients: UnusedGradients, work: np.ndarray) -> ScheduleChange:
    """Return the schedule without some work, and with shorter steps of optimizers."""
    schedule, needless = device.schedule, gradients.needless_calls
    duration = schedule.duration.copy()
    calls, share = gradients.stepping
    left = np.ones(len(schedule.called))
    left[calls] = 1 - share
    kernels = np.flatnonzero((schedule.kind == KERNEL) & (schedule.call >= 0))
    duration[kernels] = (duration[kernels] * left[schedule.call[kernels]]).astype(np.int64)
    duration[work] = 0
    return without_calls(device, duration, needless)


def _finding(
    device: DeviceBlocks,
    gradients: UnusedGradients,
    change: Change,
    faster: ScheduleChange,
    work: np.ndarray,
) -> Finding:
    schedule, blocks = device.schedule, gradients.partly
    spent = format_duration(int(schedule.duration[work].sum()))
    is_frozen = bool(gradients.is_frozen[blocks].all())
    why = (
        "The optimizer gets them with a learning rate of 0"
        if is_frozen
        else "No optimizer gets them, and nothing else reads them"
    )
    freed = change.blocks[device.at_peak[change.blocks] & (change.end <= device.peak_place)]
    return Finding(
        rule="R61",
        title=f"{format_counted(gradients.passes, 'backward pass', 'backward passes')} spend "
        f"{spent} of the GPU's work on gradients that nothing uses.",
        reason=(
            f"{why}: {format_counted(len(blocks), 'array')}, {format_bytes(gradients.bytes_each)} "
            f"in each pass.{_kept(int(device.size[freed].sum()))}"
        ),
        change=(
            "Call `requires_grad_(False)` on the parameters, the module or the input that these "
            "lines use, and give the optimizer the others only; or run a frozen part that comes "
            "first under `torch.no_grad()`. "
            + (
                "A learning rate of 0 freezes values, but autograd does all of its work."
                if is_frozen
                else "If another loss trains them, as in a GAN: detach their output where it "
                "enters this loss (`x.detach()`), do so around this forward pass only if the other "
                "loss has its own, or name what is trained: `backward(inputs=...)`."
            )
        ),
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_alone(faster),
        lines=longest_lines(
            device.recording,
            stacks_of(device.recording.tables, schedule.call[work]),
            schedule.duration[work],
        ),
        evidence=schedule.evidence(work),
        lifetimes=change,
        schedule=faster,
    )


def _kept(size: int) -> str:
    if not size:
        return ""
    return f" {format_bytes(size)} of the peak are theirs, or what autograd keeps to compute them."
