"""FFTs of lengths with a large prime factor, which cuFFT computes by Bluestein's algorithm."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from math import prod

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.kernels.matrix_kernels import is_hopper, kernels_named
from gpuviz.advice.replay.trace import KINDS
from gpuviz.advice.source.conditions import statement_text
from gpuviz.analysis.grouping import components
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named, texts

# As cuFFT names its kernels: `multi_bluestein_fft<125u, EPT<5u>, 32u, 0u, ..., float, ...>`, of
# which the first number is the factor of the length that the kernel computes.
BLUESTEIN = re.compile(r"\b(?:\w+_)?bluestein_(?:\w+_)?fft<(?P<factor>\d+)u?\b(?P<rest>.*)")
_FILLS = re.compile(r"fill", re.IGNORECASE)
# The functions of NumPy, CuPy, PyTorch and JAX; those that transform back begin with an i.
_FUNCTION = re.compile(r"(?<![a-z_])(?P<inverse>i?)[rh]?fft[2n]?(?=\(|$)")
_MEMSET = KINDS.index("memset")
# The bytes of a complex number.
_SINGLE, _DOUBLE = 8, 16
# One kernel computes lengths of this many bytes: 16,384 complex numbers in single precision on an
# H200, and half as many where a block has less shared memory.
_OF_ONE_KERNEL, _OF_HOPPER = 64 << 10, 128 << 10
# Shorter kernels take time for other things than their bytes.
_LONG_NS = 10_000
# Bluestein's algorithm transforms forward and back, each in two kernels or more.
_WAYS, _LEAST_STEPS, _MOST_STEPS = 2, 2, 6


@dataclass(frozen=True, eq=False, slots=True)
class BluesteinTransforms:
    """FFTs of lines that share their lengths, in columns, one row for each kernel.

    Attributes:
        work: The kernels, as a `Schedule` numbers them.
        duration: How long each would take, in ns, as a part of an FFT of a fast length.
        count: The number of FFTs.
        is_padded: Whether one line pads what it transforms with zeros, and one transforms back.
    """

    work: np.ndarray
    duration: np.ndarray
    count: int
    is_padded: bool


@dataclass(frozen=True, slots=True)
class _Transform:
    """One FFT.

    Attributes:
        work: Its kernels.
        length: The length that Bluestein's algorithm pads to, at least twice that of the FFT.
        share: Which part of their time an FFT of a fast length takes, at most.
    """

    work: np.ndarray
    length: int
    share: float


def bluestein_transforms(device: DeviceBlocks) -> Iterator[BluesteinTransforms]:
    """Yield the FFTs of a device that cuFFT computes by Bluestein's algorithm, by their lengths.

    It multiplies the array by a chirp, pads it to at least twice its length, and convolves it by an
    FFT and its inverse, each in k kernels that move all of the padded array. These 2k kernels move
    8k - 2 times the bytes of the array or more, and an FFT of about the same length as fast as
    others twice as many in each of its kernels: one if it fits into the shared memory of a block,
    else at most k. Short kernels take as long as their launch, whatever they move.
    """
    transforms = list(_transforms(device))
    if not transforms:
        return
    schedule = device.schedule
    firsts = np.array([each.work[0] for each in transforms])
    stacks = stacks_of(device.recording.tables, schedule.call[firsts])
    _, line = np.unique(line_numbers(device.recording, stacks), return_inverse=True)
    _, length = np.unique([each.length for each in transforms], return_inverse=True)
    line, length = line.ravel(), length.ravel()
    lines = int(line.max()) + 1
    groups = components(lines + int(length.max()) + 1, line, lines + length)[line]
    directions = {each: _directions(device.recording, each) for each in np.unique(stacks).tolist()}
    back = np.array([True in directions[each] for each in stacks.tolist()])
    forward = np.array([False in directions[each] for each in stacks.tolist()])
    padded = np.isin(firsts, _pads(device)) & forward
    for group in np.unique(groups).tolist():
        rows = np.flatnonzero(groups == group)
        own = [transforms[row] for row in rows.tolist()]
        work = np.concatenate([each.work for each in own])
        share = np.concatenate([np.full(len(each.work), each.share) for each in own])
        yield BluesteinTransforms(
            work=work,
            duration=(schedule.duration[work] * share).astype(np.int64),
            count=len(own),
            is_padded=bool(back[rows].any() and padded[rows].any()),
        )


def _transforms(device: DeviceBlocks) -> Iterator[_Transform]:
    """Yield the FFTs whose kernels follow each other, with no other work of the stream between."""
    schedule, tables = device.schedule, device.recording.tables
    work = kernels_named(schedule, device.device, BLUESTEIN)
    if not len(work):
        return
    names = texts(tables, plain(tables["activities"]["name"])[schedule.rows[work]])
    matches = dict(zip(work.tolist(), map(BLUESTEIN.search, names), strict=True))
    limit = _OF_HOPPER if is_hopper(device) else _OF_ONE_KERNEL
    for run in _runs(device, work):
        found = [match for each in run.tolist() if (match := matches[each])]
        factors = [int(match["factor"]) for match in found]
        width = _DOUBLE if "double" in found[0]["rest"] else _SINGLE
        begin = 0
        for steps in _steps(factors):
            length = prod(factors[begin : begin + steps])
            own = run[begin : begin + _WAYS * steps]
            fits = length // 2 * width <= limit
            is_long = schedule.duration[own].mean() >= _LONG_NS
            share = _share(steps, 1 if fits else steps, by_bytes=bool(is_long))
            yield _Transform(own, length, share)
            begin += _WAYS * steps


def _directions(recording: RecordingData, stack: int) -> set[bool]:
    """Return whether the FFT of a call stack is an inverse one; both if the line has both."""
    inner = takewhile(lambda each: each.is_installed, recording.call_stacks.frames(stack))
    found = [match for each in inner if (match := _FUNCTION.fullmatch(each.name))]
    found = found[-1:] or list(_FUNCTION.finditer(statement_text(recording, stack)))
    return {bool(each["inverse"]) for each in found}


def _share(steps: int, fast_steps: int, *, by_bytes: bool) -> float:
    """Return which part of the time of an FFT one of a fast length takes, at most.

    Args:
        steps: The kernels of each of the two FFTs of Bluestein's algorithm.
        fast_steps: Those of an FFT of a fast length, at most.
        by_bytes: Whether kernels take as long as what they move, and not as long as each other.
    """
    return fast_steps / (4 * steps - 1) if by_bytes else fast_steps / (2 * steps)


def _runs(device: DeviceBlocks, work: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the kernels of one call stack that nothing else on their stream comes between."""
    schedule = device.schedule
    order = np.lexsort((schedule.begin, schedule.stream, schedule.device))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    work = work[np.argsort(place[work])]
    stacks = stacks_of(device.recording.tables, schedule.call[work])
    ends = np.flatnonzero((np.diff(place[work]) != 1) | (np.diff(stacks.astype(np.int64)) != 0))
    yield from np.split(work, ends + 1)


def _steps(factors: list[int]) -> list[int]:
    """Return how many kernels compute each of the two FFTs, of one FFT after the other.

    Both have the same factors. Empty if kernels are left over.

    Args:
        factors: Those of kernels that follow each other.
    """
    for least in range(_LEAST_STEPS, _MOST_STEPS + 1):
        found, begin = list[int](), 0
        while begin < len(factors):
            fitting = (
                steps
                for steps in range(least, _MOST_STEPS + 1)
                if factors[begin : begin + steps] == factors[begin + steps : begin + _WAYS * steps]
            )
            steps = next(fitting, 0)
            if not steps:
                break
            found.append(steps)
            begin += _WAYS * steps
        if begin == len(factors):
            return found
    return []


def _pads(device: DeviceBlocks) -> np.ndarray:
    """Return the kernels that read what their own line has filled, before it is transformed."""
    used, schedule, tables = device.used, device.schedule, device.recording.tables
    seen = np.flatnonzero(used.activity >= 0)
    work = schedule.number[used.activity[seen]]
    names = plain(tables["activities"]["name"])[used.activity[seen]]
    fills = (schedule.kind[work] == _MEMSET) | are_named(tables, names, _FILLS.search)
    fills &= used.mode[seen] != READ
    reads = are_named(tables, names, BLUESTEIN.search) & (used.mode[seen] == READ)
    lines = line_numbers(device.recording, stacks_of(tables, used.call[seen])).astype(np.int64)
    key = used.block[seen].astype(np.int64) << 32 | lines
    found: np.ndarray = work[reads & np.isin(key, key[fills])]
    return found
