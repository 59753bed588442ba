"""R71: a model of PyTorch that is trained in double precision."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.precision.precision import (
    decomposes,
    is_complex,
    is_of_first_order,
    optimizers_of,
)
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import distinct, plain
from gpuviz.data.strings import are_named
from gpuviz.quantities import format_bytes, format_share

RULES = (
    Rule(
        "R71",
        "a model in double precision",
        "at least 90 % of the time of PyTorch's kernels with a floating-point type is in float64, "
        "and 30 % of all kernels' are matrix products or convolutions of parameters in float64, "
        "which an optimizer of first order trains; there is no such product of another type, no "
        "decomposition of a matrix, no complex number, and no gradient of a gradient; the saving "
        "is half of the float64 arrays, and half of the time of the other kernels in float64: what "
        "products save is not predicted",
        "`model.float()` and inputs in float32, if that is precise enough",
    ),
)

_DOUBLE = re.compile(r"\bdouble\b|f64|[dz]gemm|d884")
_SINGLE = re.compile(r"\bfloat\b|f32|[sh]gemm|\bHalf\b|BFloat16|bf16|fp16|f16")
_PRODUCT = re.compile(r"gem[mv]|conv(?!er)|[dw]grad", re.IGNORECASE)
# Of arrays that have another type than float64, such as indices and masks.
_WITH_OTHERS = re.compile(r"\b(float|Half|BFloat16|long|bool|unsigned char)\b")
_LEAST_DOUBLE = 0.9
_LEAST_PRODUCTS = 0.3
_TWICE = 2
# Shorter kernels take time for other things than their elements.
_SHORTEST_NS = 5_000
_PARAMETER, _WORKSPACE = map(CATEGORIES.index, ("parameter", "workspace"))
_OF_TYPE_OF_PARAMETERS = tuple(map(CATEGORIES.index, ("gradient", "optimizer_state")))


@dataclass(frozen=True, eq=False, slots=True)
class _Kernels:
    """The kernels of a device, numbers of the schedule's activities.

    Attributes:
        double: Those in float64 that use no other type of elements.
        product: The matrix products and convolutions among all in float64.
        share: The share of the products in the time of all kernels.
    """

    double: np.ndarray
    product: np.ndarray
    share: float


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find models that are trained in double precision, as NumPy's default type makes them.

    Trigger: an optimizer of first order trains parameters that matrix products or convolutions use
    in float64, by the names of these kernels; they take at least 30 % of all kernels' time, and
    float64 90 % of the time of kernels whose name has a floating-point type. A program that
    decomposes matrices, computes with complex numbers, differentiates gradients or uses L-BFGS may
    need the precision.

    Saving: the decrease of the peak if the arrays that kernels use as float64, gradients and the
    optimizer's states had half of their size; and half of the time of the kernels in float64 that
    are no products, by the recording's `Schedule`. What products take in single precision depends
    on the GPU and on TF32: it is at least this. Whether single precision is enough is the
    program's decision: ``possible``.
    """
    training = device.training
    if training is None:
        return
    kernels = _kernels(device.schedule, device.device)
    if kernels is None or _may_need_it(device.schedule):
        return
    used, schedule = device.used, device.schedule
    place, seen = device.place[used.block], used.activity >= 0
    number = np.where(seen, schedule.number[np.maximum(used.activity, 0)], -1)
    of_device = seen & (place >= 0)
    multiplied = distinct(place[of_device & np.isin(number, kernels.product)])
    parameters = multiplied[training.category[multiplied] == _PARAMETER]
    if not len(parameters):
        return
    chosen = np.isin(training.category, _OF_TYPE_OF_PARAMETERS)
    chosen[place[of_device & np.isin(number, kernels.double)]] = True
    chosen &= (training.category != _WORKSPACE) & ~device.is_initial
    yield _finding(device, kernels, np.flatnonzero(chosen), parameters)


def _kernels(schedule: Schedule, device: int) -> _Kernels | None:
    """Return the kernels of a device that computes almost only in float64, and many products."""
    work = np.flatnonzero((schedule.kind == KERNEL) & (schedule.device == device))
    tables, spent = schedule.recording.tables, schedule.duration[work]
    names = plain(tables["activities"]["name"])[schedule.rows[work]]
    double, single, product, other = (
        are_named(tables, names, each.search) for each in (_DOUBLE, _SINGLE, _PRODUCT, _WITH_OTHERS)
    )
    products, of_double = double & product & ~single, int(spent[double & ~single].sum())
    of_single = int(spent[single & ~double].sum())
    if not products.any() or (single & ~double & product).any():
        return None
    share = int(spent[products].sum()) / max(int(spent.sum()), 1)
    if share < _LEAST_PRODUCTS or of_double < _LEAST_DOUBLE * (of_double + of_single):
        return None
    return _Kernels(work[double & (products | ~other)], work[products], share)


def _may_need_it(schedule: Schedule) -> bool:
    """Return whether a program may need double precision, or trains nothing."""
    if not optimizers_of(schedule) or not is_of_first_order(schedule):
        return True
    return decomposes(schedule) or is_complex(schedule)


def _finding(
    device: DeviceBlocks,
    kernels: _Kernels,
    blocks: np.ndarray,
    parameters: np.ndarray,
) -> Finding:
    schedule, duration = device.schedule, device.schedule.duration
    others = np.setdiff1d(kernels.double, kernels.product)
    others = others[duration[others] >= _SHORTEST_NS]
    shorter = duration.copy()
    shorter[others] //= _TWICE
    change = ScheduleChange(duration=shorter)
    lines = device.lines.lines_of(parameters)
    at_peak = blocks[device.at_peak[blocks]]
    size = format_bytes(device.replay.most_at_once(blocks))
    return Finding(
        rule="R71",
        title=(
            "A model is trained in double precision: matrix products in float64 take "
            f"{format_share(kernels.share)} of the time of all kernels, and up to {size} of arrays "
            "are float64."
        ),
        reason=(
            f"{text_of(lines[0])} makes the parameters. Almost nothing is computed in a smaller "
            "type. In float32, the arrays have half of the size, and other kernels than matrix "
            "products move half of the bytes. The time saved is theirs alone, and so the least: "
            "what the products save depends on the GPU, and is most of their time with TF32."
        ),
        change=(
            "Train in single precision, if that suffices: `model.float()`, and inputs in float32. "
            "Arrays of NumPy are float64 by default, and so is what `torch.from_numpy` makes of "
            "them: add `.float()`. "
            '`torch.set_float32_matmul_precision("high")` allows TF32.'
        ),
        certainty="possible",
        device=device.device,
        lines=lines,
        evidence=device.lines.evidence(at_peak if len(at_peak) else blocks),
        lifetimes=Change(
            blocks, device.begin[blocks], device.end[blocks], device.size[blocks] // _TWICE
        ),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )
