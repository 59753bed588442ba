"""What gpuviz finds in programs that waste memory or time on arrays, and what that saves."""

from functools import cache

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.gpu import array_programs

BYTES = [
    ("zeros_that_nothing_reads", "R01"),
    ("idle_array", "R05"),
    ("temporaries", "R08"),
    ("wide_weights", "R33"),
    ("copied_coordinates", "R34"),
    ("large_parts", "R46"),
]
TIME = [
    ("temporaries", "R08"),
    ("distances", "R08"),
    ("zeros_that_are_overwritten", "R31"),
    ("joined_in_a_loop", "R49"),
]


@cache
def recorded(name):
    """Return the recording of a program whose kernels are compiled."""
    import cupy as cp

    program = getattr(array_programs, name)
    program(cp)
    with gpuviz.record() as recorder:
        program(cp)
        cp.cuda.Device().synchronize()
    return recorder.recording


def found(name, rule):
    return [each for each in findings(recorded(name), small=True) if each.rule == rule]


def gpu_time(name):
    """Return the time from the first to the last work of the GPU, in ns, as if not recorded."""
    activities = recorded(name).compensated().table("activities")
    return max(activities["end"].to_pylist()) - min(activities["time"].to_pylist())


@pytest.mark.parametrize(("name", "rule"), BYTES)
def test_the_predicted_bytes_are_saved(name, rule):
    (finding,) = found(name, rule)
    peaks = [recorded(each).peak().bytes for each in (name, f"{name}_improved")]

    assert finding.saved_bytes == pytest.approx(peaks[0] - peaks[1], rel=0.01)
    assert found(f"{name}_improved", rule) == []


@pytest.mark.parametrize(("name", "rule"), TIME)
def test_the_predicted_time_is_saved(name, rule):
    (finding,) = found(name, rule)

    assert finding.saved_ns == pytest.approx(gpu_time(name) - gpu_time(f"{name}_improved"), rel=0.2)
    assert found(f"{name}_improved", rule) == []
