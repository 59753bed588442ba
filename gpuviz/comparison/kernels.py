"""Kernels of two recordings: new, gone, launched more or less often, slower, faster."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Any

import numpy as np

from gpuviz.analysis.launches import durations, text_numbers
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

# Of a normal distribution, two-sided: an interval that holds the median in 99 % of cases.
_Z = 2.576
# With fewer launches, even the shortest and the longest do not enclose the median that surely.
_LEAST_LAUNCHES = 8
# Smaller changes come from clocks and neighbours, which differ between runs.
_LEAST_CHANGE = 0.05


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Times of one kernel on the GPU, in ns; ``low`` to ``high`` is the median's interval."""

    count: int = 0
    total: int = 0
    median: int | None = None
    low: int | None = None
    high: int | None = None


def kernel_times(recording: RecordingData) -> dict[str, KernelTimes]:
    """Return the times of the kernels by name, with a 99 % interval of the median.

    The interval is between two of the measured times, so that outliers do not count and nothing is
    assumed about their distribution; it is unknown below eight launches.
    """
    activities = recording.tables["activities"]
    known = DICTIONARIES["activities", "kind"]
    chosen = np.flatnonzero(codes(activities["kind"], known) == known.index("kernel"))
    rows = activities.select(["time", "end", "name"]).take(chosen)
    if not rows.num_rows:
        return {}
    ids = plain(rows["name"])
    numbers, lengths = text_numbers(recording.tables, ids), durations(rows, recording.bounds)
    order = np.lexsort((lengths, numbers))
    numbers, lengths = numbers[order], lengths[order]
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    names = texts(recording.tables, ids[order[firsts]])
    parts = np.split(lengths, firsts[1:])
    return {name: _times(part) for name, part in zip(names, parts, strict=True)}


def changed_kernels(
    before: dict[str, KernelTimes], after: dict[str, KernelTimes]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each kernel that differs by more than noise, with the reason."""
    nothing = KernelTimes()
    for name in before.keys() | after.keys():
        ours, theirs = before.get(name, nothing), after.get(name, nothing)
        status = _status(ours, theirs)
        if status:
            yield {
                "name": name,
                "status": status,
                **_columns("before", ours),
                **_columns("after", theirs),
                "change_ns": theirs.total - ours.total,
            }


def _columns(side: str, times: KernelTimes) -> dict[str, int | None]:
    return {
        f"{side}_count": times.count,
        f"{side}_ns": times.total,
        f"{side}_median_ns": times.median,
        f"{side}_low_ns": times.low,
        f"{side}_high_ns": times.high,
    }


def _times(lengths: np.ndarray) -> KernelTimes:
    """Return the times of a kernel from its sorted durations."""
    count, total = len(lengths), int(lengths.sum())
    median = int(lengths[(count - 1) // 2] + lengths[count // 2]) // 2
    if count < _LEAST_LAUNCHES:
        return KernelTimes(count, total, median)
    half = _Z * sqrt(count) / 2
    low, high = max(0, floor(count / 2 - half)), min(count - 1, ceil(count / 2 + half))
    return KernelTimes(count, total, median, int(lengths[low]), int(lengths[high]))


def _status(before: KernelTimes, after: KernelTimes) -> str:
    if not before.count:
        return "new"
    if not after.count:
        return "gone"
    speed = _speed(before, after)
    more = {True: "more launches", False: "fewer launches"}[after.count > before.count]
    return ", ".join(filter(None, (speed, more if after.count != before.count else "")))


def _speed(before: KernelTimes, after: KernelTimes) -> str:
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return ""
    assert before.median is not None and after.median is not None  # noqa: S101, PT018
    if abs(after.median - before.median) < _LEAST_CHANGE * before.median:
        return ""
    if after.low > before.high:
        return "slower"
    return "faster" if after.high < before.low else ""
