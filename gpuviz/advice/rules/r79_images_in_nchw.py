"""R79: a network whose images have the layout that convolutions on Tensor Cores convert."""

import re
from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.kernels.matrix_kernels import kernels_named
from gpuviz.advice.precision.precision import differentiates_gradients
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import have_frame, phases_of, stacks_of
from gpuviz.data.columns import distinct
from gpuviz.quantities import format_duration, format_share

RULES = (
    Rule(
        "R79",
        "images in NCHW",
        "layers `Conv2d` of PyTorch launch most of the convolutions, and compute on Tensor Cores "
        "for at least half of their time; conversions between NCHW and NHWC, and depthwise "
        "convolutions and batch normalizations of NCHW, take so long that NHWC saves at least 3 % "
        "of the time of all kernels; no gradient is differentiated, nothing is normalized by "
        "groups or instances, and cuDNN takes no kernel for NCHW without Tensor Cores, as for few "
        "channels in float32; of their time, the saving is all, three quarters, and 40 % to 60 %, "
        "as measured on an H200",
        "`memory_format=torch.channels_last` for the model and its inputs",
    ),
)

_CONVOLUTION = re.compile(r"fprop|dgrad|wgrad|implicit_\w*gemm|convolve|conv2d|conv_depthwise2d")
# Functions of PyTorch whose kernels for CUDA need NCHW, and convert to it.
_NEED_NCHW = frozenset({"group_norm", "instance_norm"})
_FUNCTIONS = re.compile(r"[/\\]torch[/\\]nn[/\\]functional\.py$")
_ON_TENSOR_CORES = re.compile(r"tf32|bf16|f16|fp16|tensorop|s1688|s16816|hmma|884|nvjet")
# What cuDNN takes in float32 for few channels: with 64 in and 3 out, its kernel for NHWC took 12
# times as long on an H200 (`convolve_common_engine_float_NHWC`), more than all conversions.
_FEW_CHANNELS = re.compile(r"_nchwkcrs_nchw_\w*ffma")
_CONVERSION = re.compile(r"nchwToNhwc|nhwcToNchw")
_DEPTHWISE = re.compile(r"conv_depthwise2d_\w+<")
# What PyTorch launches beside a convolution: for its bias, and conversions of types.
_ELEMENTWISE = re.compile(r"at::native::(\w*elementwise_kernel|reduce_kernel)<")
# Of their time, what kernels for NHWC take instead of them: measured for steps of a ResNet-50 and a
# MobileNet on an H200. PyTorch's own batch normalization is that of bfloat16, cuDNN's of float32.
_SHARES = (
    (_CONVERSION, 0.0),
    (_DEPTHWISE, 0.25),
    (re.compile(r"batch_norm_(backward|collect_statistics|transform_input)_kernel<"), 0.4),
    (re.compile(r"bn_(bw|fw_tr)_1C11"), 0.6),
)
_LEAST_SHARE = 0.03
_LEAST_OF_CONVOLUTIONS = 0.5
_MOST_OF_FEW_CHANNELS = 0.01
_LAYER = "Conv2d."


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find networks that convolutions on Tensor Cores get images from in NCHW.

    Trigger: layers ``Conv2d`` launch most of the convolutions of the forward passes: those of one
    and three dimensions have no such layout. At least half of the time of their kernels, without
    depthwise convolutions, biases and conversions, is on Tensor Cores, by their names: others
    prefer NCHW, as float32 with few channels does. No layer
    normalizes groups of channels or instances, which would convert to NCHW. Without conversions,
    and with other kernels for depthwise convolutions and batch normalizations, all kernels would
    take 3 % less time. A gradient that is differentiated has other kernels, which were not
    measured.

    Saving: the recording's `Schedule`, replayed with less time for these kernels: none for
    conversions, a quarter for depthwise convolutions, and 40 % of PyTorch's, 60 % of cuDNN's batch
    normalizations, as they take on an H200. An operation of the program that needs NCHW would
    convert it again: ``possible``.
    """
    for device in distinct(schedule.device).tolist():
        shorter = _in_nhwc(schedule, device)
        work = np.flatnonzero(shorter < schedule.duration)
        of_device = (schedule.device == device) & (schedule.kind == KERNEL)
        less = int((schedule.duration - shorter).sum())
        if less < max(_LEAST_SHARE * int(schedule.duration[of_device].sum()), 1):
            continue
        if _uses_layers(schedule, device) and not differentiates_gradients(schedule):
            yield _finding(schedule, device, work, shorter)


def _in_nhwc(schedule: Schedule, device: int) -> np.ndarray:
    """Return the durations of all work if the images of a device were in NHWC, in ns."""
    shorter = schedule.duration.copy()
    for pattern, share in _SHARES:
        work = kernels_named(schedule, device, pattern)
        # PyTorch has no other kernels for depthwise convolutions of one dimension.
        if pattern is not _DEPTHWISE or _are_of_layers(schedule, work):
            shorter[work] = (schedule.duration[work] * share).astype(np.int64)
    return shorter


def _uses_layers(schedule: Schedule, device: int) -> bool:
    """Return whether layers ``Conv2d`` of a device compute on Tensor Cores, and have NCHW only."""
    convolutions = kernels_named(schedule, device, _CONVOLUTION)
    if not _are_of_layers(schedule, convolutions):
        return False
    work = _of_layers(schedule, np.flatnonzero(schedule.device == device))
    patterns = (_DEPTHWISE, _CONVERSION, _ELEMENTWISE)
    others = [kernels_named(schedule, device, each) for each in patterns]
    dense = np.setdiff1d(work, np.concatenate(others))
    few = np.intersect1d(dense, kernels_named(schedule, device, _FEW_CHANNELS))
    if _time(schedule, few) > _MOST_OF_FEW_CHANNELS * _time(schedule, dense):
        return False
    fast = np.intersect1d(dense, kernels_named(schedule, device, _ON_TENSOR_CORES))
    return _are_most(schedule, fast, dense) and not _needs_nchw(schedule)


def _needs_nchw(schedule: Schedule) -> bool:
    """Return whether the program calls functions that would convert NHWC to NCHW."""
    frames = schedule.recording.tables["frames"]
    names, files = frames["name"].to_pylist(), frames["filename"].to_pylist()
    called = [file for name, file in zip(names, files, strict=True) if name in _NEED_NCHW]
    return any(map(_FUNCTIONS.search, called))


def _are_of_layers(schedule: Schedule, work: np.ndarray) -> bool:
    """Return whether layers ``Conv2d`` launch most of the forward passes' part of some work."""
    stacks = stacks_of(schedule.recording.tables, schedule.call[work])
    is_forward = phases_of(schedule.recording.tables, stacks) != BACKWARD
    return _are_most(schedule, _of_layers(schedule, work[is_forward]), work[is_forward])


def _of_layers(schedule: Schedule, work: np.ndarray) -> np.ndarray:
    """Return the part of some work that layers ``Conv2d`` launch."""
    recording = schedule.recording
    stacks = stacks_of(recording.tables, schedule.call[work])
    found: np.ndarray = work[
        have_frame(recording, stacks, lambda frame: frame.name.startswith(_LAYER))
    ]
    return found


def _are_most(schedule: Schedule, some: np.ndarray, work: np.ndarray) -> bool:
    """Return whether some of some work take at least half of its time."""
    return _time(schedule, some) >= max(_LEAST_OF_CONVOLUTIONS * _time(schedule, work), 1)


def _time(schedule: Schedule, work: np.ndarray) -> int:
    return int(schedule.duration[work].sum())


def _finding(schedule: Schedule, device: int, work: np.ndarray, shorter: np.ndarray) -> Finding:
    conversions = kernels_named(schedule, device, _CONVERSION)
    spent, converting = (int(schedule.duration[each].sum()) for each in (work, conversions))
    of_kernels = (schedule.device == device) & (schedule.kind == KERNEL)
    share = spent / int(schedule.duration[of_kernels].sum())
    change = ScheduleChange(duration=shorter)
    stacks = stacks_of(schedule.recording.tables, schedule.call[work])
    return Finding(
        rule="R79",
        title=(
            "Images are in NCHW, while convolutions on Tensor Cores need NHWC: kernels that NHWC "
            f"saves or shortens take {format_duration(spent)}, {format_share(share)} of the time "
            "of kernels."
        ),
        reason=_reason(converting, spent),
        change=(
            "Keep the model and its inputs in that layout: "
            "`model.to(memory_format=torch.channels_last)` and "
            "`x.to(memory_format=torch.channels_last)`. Shapes stay the same; `.view()` of such "
            "arrays may have to become `.reshape()`."
        ),
        certainty="possible",
        device=device,
        lines=longest_lines(schedule.recording, stacks, schedule.duration[work]),
        evidence=schedule.evidence(work),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )


def _reason(converting_ns: int, spent_ns: int) -> str:
    converting = format_duration(converting_ns)
    parts = [
        f"Conversions before and after convolutions take {converting}." if converting_ns else "",
        "Batch normalizations and depthwise convolutions have faster kernels for NHWC: on an H200, "
        "these take at most 60 % and 25 % of the time."
        if converting_ns < spent_ns
        else "",
    ]
    return " ".join(filter(None, parts))
