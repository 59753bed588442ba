"""Tests for NaN that autograd's anomaly detection adds to a backward pass."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.host.host_gaps import host_gaps
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import COPY, KERNEL
from gpuviz.advice.source.model_calls import is_of_autograd
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.data.codes import PHASES, CallKind
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.once import Once
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

_TO_HOST = DICTIONARIES["activities", "copy_kind"].index("device_to_host")
_BACKWARD = PHASES.index("backward")
# `isnan` is a comparison of each element with itself, and no unary one, as that with zero in the
# backward pass of `cumprod`; `any` reduces it to one value, unless there is but one element.
_COMPARES = re.compile(r"\bBinaryFunctor<.*Compare(Eq|NE)Functor|isnan")
_REDUCES = re.compile(r"or_kernel|any_kernel")
_VALUE_BYTES = 1
# Calls between the comparison and the copy of the value: its reduction, and what that needs.
_MOST_BETWEEN = 8
_BETWEEN, _COMPARES_NOW, _NO_TEST = range(3)
# A function of an extension may test its own results.
_FEWEST = 20


@dataclass(frozen=True, eq=False, slots=True)
class AnomalyTests:
    """The tests of a device's backward passes.

    Attributes:
        device: Ordinal.
        copies: The copies of their values to the host, numbers of the schedule's activities.
        calls: Mask of the CUDA calls that they make.
        work: Their activities, these copies among them.
    """

    device: int
    copies: np.ndarray
    calls: np.ndarray
    work: np.ndarray

    def without(self, schedule: Schedule) -> ScheduleChange:
        """Return the schedule if the backward passes tested nothing."""
        duration, joined = schedule.duration.copy(), np.zeros(len(schedule.duration), bool)
        duration[self.work], joined[self.work] = 0, True
        gaps = host_gaps(schedule.recording, self.device)
        return ScheduleChange(
            duration=duration,
            without_wait=self.calls,
            without_gap=self.calls & gaps.is_short,
            instant=self.calls,
            joined=joined,
        )


@Once
def anomaly_tests(schedule: Schedule) -> tuple[AnomalyTests, ...]:
    """Return the tests for NaN of each device with many, if autograd's anomaly detection was on.

    After each of its functions, torch's backward pass compares each result with itself, reduces
    the comparison to one value, and copies that to the host, which waits: all of it outside of
    Python. They are computed once for a schedule.
    """
    copies = {device: _copies(schedule, device) for device in schedule.recording.devices}
    found = (
        _of_device(schedule, device, each)
        for device, each in copies.items()
        if len(each) >= _FEWEST
    )
    return tuple(each for each in found if len(each.copies) >= _FEWEST)


def _of_device(schedule: Schedule, device: int, copies: np.ndarray) -> AnomalyTests:
    steps = _steps(schedule)
    previous = host_gaps(schedule.recording, device).previous
    follows = np.full(len(previous), -1)
    follows[previous[previous >= 0]] = np.flatnonzero(previous >= 0)
    waits = schedule.call_kinds == CallKind.SYNCHRONIZE
    mask, is_test = np.zeros(len(schedule.called), bool), np.zeros(len(copies), bool)
    for at, call in enumerate(schedule.call[copies].tolist()):
        calls = [call]
        while len(calls) <= _MOST_BETWEEN and calls[-1] >= 0 and steps[calls[-1]] == _BETWEEN:
            calls.append(int(previous[calls[-1]]))
        is_test[at] = calls[-1] >= 0 and steps[calls[-1]] == _COMPARES_NOW
        if is_test[at]:
            mask[calls] = True
            after = int(follows[call])
            mask[after] |= after >= 0 and waits[after]
    of_tests = np.append(mask, False)[schedule.call]
    return AnomalyTests(device, copies[is_test], mask, np.flatnonzero(of_tests))


def _steps(schedule: Schedule) -> np.ndarray:
    """Return what each call may be of a test: its comparison, what follows it, or nothing."""
    tables, is_kernel = schedule.recording.tables, schedule.kind == KERNEL
    names = plain(tables["activities"]["name"])[schedule.rows]
    compares, reduces = (
        is_kernel & are_named(tables, names, each.search) for each in (_COMPARES, _REDUCES)
    )
    steps = np.full(len(schedule.called), _BETWEEN)
    launching = schedule.call >= 0
    steps[schedule.call[launching & is_kernel & ~reduces]] = _NO_TEST
    steps[schedule.call[launching & compares & ~reduces]] = _COMPARES_NOW
    return steps


def _copies(schedule: Schedule, device: int) -> np.ndarray:
    """Return the copies of a value to the host that torch makes itself in a backward pass."""
    tables = schedule.recording.tables
    kinds = codes(tables["activities"]["copy_kind"], DICTIONARIES["activities", "copy_kind"])
    sizes = plain(tables["activities"]["bytes"])[schedule.rows]
    chosen = (schedule.kind == COPY) & (kinds[schedule.rows] == _TO_HOST) & (schedule.call >= 0)
    chosen &= (schedule.device == device) & (sizes == _VALUE_BYTES)
    copies = np.flatnonzero(chosen)
    stacks = stacks_of(tables, schedule.call[copies])
    known = distinct(stacks)
    known = known[phases_of(tables, known) == _BACKWARD]
    frames = schedule.recording.call_stacks.frames
    own = [stack for stack in known.tolist() if any(map(is_of_autograd, frames(stack)[:1]))]
    found: np.ndarray = copies[np.isin(stacks, np.array(own, stacks.dtype))]
    return found
