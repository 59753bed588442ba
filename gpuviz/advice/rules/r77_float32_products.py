"""R77: matrix products of a model in float32, without Tensor Cores."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.kernels.matrix_kernels import (
    IN_FLOAT32,
    WITH_TF32,
    Products,
    bandwidth_of,
    has_fast_tf32,
    products,
)
from gpuviz.advice.precision.precision import decomposes, is_of_first_order
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_duration, format_share

RULES = (
    Rule(
        "R77",
        "matrix products in float32 without Tensor Cores",
        "kernels that multiply float32 with fused multiply-adds take at least 5 % of the time of "
        "all kernels, at least 30 % of it with parameters of a model of PyTorch, on a GPU of "
        "NVIDIA's data centers since the A100; no such product uses TF32, no matrix is decomposed, "
        "no gradient differentiated; the saving is six sevenths of their time, or what moving "
        "their arrays leaves of it, as measured on an H200",
        '`torch.set_float32_matmul_precision("high")`, if that is precise enough',
    ),
)

_LEAST_SHARE = 0.05
_LEAST_WITH_PARAMETERS = 0.3
# On an H200, TF32 takes 1/8 of the time for matrices of 4096 rows, 1/6 for 8192 x 1024 x 1024, and
# about 3 µs more than the arrays need for small ones.
_WITH_TF32 = 1 / 7
_LEAST_NS = 3_000


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find models whose matrix products are in float32 and use no Tensor Cores.

    Trigger: by the names of its kernels, at least 5 % of the time of all kernels of a device is
    that of such products, on a GPU that multiplies several times as fast with TF32, and at least
    30 % of it uses parameters of a model. A program that decomposes matrices, differentiates
    gradients or uses L-BFGS may need the precision, and one of which other such products use TF32
    has allowed it.

    Saving: the recording's `Schedule`, replayed with products that take a seventh of their time,
    and at least what their arrays need at the memory's bandwidth, and 3 µs more, as measured on an
    H200. Whether the precision suffices is the program's decision: ``possible``.
    """
    if not has_fast_tf32(device):
        return
    found = products(device, IN_FLOAT32)
    schedule = device.schedule
    spent = schedule.duration[found.work]
    if spent[found.uses_parameter].sum() < max(_LEAST_WITH_PARAMETERS * spent.sum(), 1):
        return
    is_kernel = (schedule.kind == KERNEL) & (schedule.device == device.device)
    share = int(spent.sum()) / max(int(schedule.duration[is_kernel].sum()), 1)
    if share < _LEAST_SHARE or products(device, WITH_TF32).uses_parameter.any():
        return
    if decomposes(schedule) or not is_of_first_order(schedule):
        return
    yield _finding(device, found, share)


def _finding(device: DeviceBlocks, found: Products, share: float) -> Finding:
    schedule, work = device.schedule, found.work
    spent = schedule.duration[work]
    change = _with_tf32(schedule, found, bandwidth_of(device))
    stacks = stacks_of(schedule.recording.tables, schedule.call[work])
    return Finding(
        rule="R77",
        title=(
            f"Matrix products in float32 take {format_duration(int(spent.sum()))}, "
            f"{format_share(share)} of the time of kernels, and use no Tensor Cores."
        ),
        reason=(
            "They multiply in full float32, PyTorch's default. With TF32, Tensor Cores round each "
            "factor to 10 bits of mantissa and add up in float32: measured on an H200, in a sixth "
            "to an eighth of the time for large matrices, and for others in the time that memory "
            "needs."
        ),
        change=(
            'Call `torch.set_float32_matmul_precision("high")` at the start, if that precision '
            "suffices, as for most networks. Under `torch.autocast` with bfloat16, products are "
            "faster still, and activations have half of the size."
        ),
        certainty="possible",
        device=device.device,
        lines=longest_lines(schedule.recording, stacks, spent),
        evidence=schedule.evidence(work),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )


def _with_tf32(schedule: Schedule, found: Products, bandwidth: int) -> ScheduleChange:
    """Return the change by which products use TF32."""
    spent, shorter = schedule.duration[found.work], schedule.duration.copy()
    moving = found.bytes / bandwidth * 1e9 if bandwidth else 0
    least = np.maximum(spent * _WITH_TF32, moving) + _LEAST_NS
    shorter[found.work] = np.minimum(spent, least).astype(np.int64)
    return ScheduleChange(duration=shorter)
