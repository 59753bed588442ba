"""What following findings about time saves on a GPU, against what they predict."""

import time
from functools import cache

import cupy as cp
import cupyx
import numpy as np
import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.gpu.shown_findings import show

SPIN = cp.RawKernel(
    r"""
extern "C" __global__ void spin(long long cycles, float* x) {
    long long began = clock64();
    while (clock64() - began < cycles) {}
    x[0] += 1;
}
""",
    "spin",
)
HALF_A_MILLISECOND = 990_000  # cycles at the highest clock of an H100; more time at a lower one
STEPS = 50
COPIED = 4 << 20


def work_on_host(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def waits_needlessly(*, waits=True):
    x = cp.zeros(1, cp.float32)
    for _ in range(STEPS):
        SPIN((1,), (1,), (HALF_A_MILLISECOND, x))
        if waits:
            cp.cuda.Device().synchronize()
        work_on_host(300e-6)


def uses_the_default_stream(*, default=True):
    host = cupyx.empty_pinned(COPIED, np.float32)
    x, y = cp.zeros(1, cp.float32), cp.zeros(COPIED, cp.float32)
    computing = cp.cuda.Stream(non_blocking=not default)
    copying = cp.cuda.Stream.null if default else cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    for _ in range(STEPS):
        with computing:
            SPIN((1,), (1,), (HALF_A_MILLISECOND, x))
        y.get(stream=copying, out=host, blocking=False)
    cp.cuda.Device().synchronize()


def waits_for_needless_events(*, waits=True):
    host = cupyx.empty_pinned(COPIED, np.float32)
    x, y = cp.zeros(1, cp.float32), cp.zeros(COPIED, cp.float32)
    computing, copying = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    cp.cuda.Device().synchronize()
    for _ in range(STEPS):
        with computing:
            SPIN((1,), (1,), (HALF_A_MILLISECOND, x))
        if waits:
            copying.wait_event(computing.record())
        y.get(stream=copying, out=host, blocking=False)
        if waits:
            computing.wait_event(copying.record())
    cp.cuda.Device().synchronize()


# For each rule: a program that has it, and what makes it follow the advice.
PROGRAMS = {
    "R22": (waits_needlessly, {"waits": False}),
    "R23": (uses_the_default_stream, {"default": False}),
    "R24": (waits_for_needless_events, {"waits": False}),
}


@cache
def recorded(rule, *, followed=False):
    """Return the recording of a program whose kernels are compiled."""
    program, change = PROGRAMS[rule]
    options = change if followed else {}
    program(**options)
    with gpuviz.record() as recorder:
        program(**options)
        cp.cuda.Device().synchronize()
    return recorder.recording


def span_ns(recording):
    """Return the time from the first to the last activity, as if it had not been recorded."""
    activities = recording.compensated().table("activities")
    return int(activities["end"].to_numpy().max() - activities["time"].to_numpy().min())


@pytest.fixture(scope="module", autouse=True)
def shown(pytestconfig):
    yield
    show(pytestconfig, "findings_about_time", {rule: recorded(rule) for rule in PROGRAMS})


def found(rule, *, followed=False):
    """Return the findings of a rule, also after others that save the same time."""
    recording = recorded(rule, followed=followed)
    return [each for each in findings(recording, small=True) if each.rule == rule]


@pytest.mark.parametrize("rule", PROGRAMS)
def test_following_a_finding_saves_what_it_predicts(rule):
    (finding,) = found(rule)
    measured = span_ns(recorded(rule)) - span_ns(recorded(rule, followed=True))

    assert finding.saved_ns == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize("rule", PROGRAMS)
def test_there_is_nothing_left_to_follow(rule):
    assert found(rule, followed=True) == []
