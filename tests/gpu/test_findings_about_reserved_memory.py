"""What gpuviz finds about reserved memory, and what its advice saves."""

import subprocess
import sys
from pathlib import Path

import pytest

import gpuviz

PROGRAM = Path(__file__).with_name("reserved_program.py")
EXPANDABLE = "expandable_segments:True"


@pytest.fixture
def recorded(tmp_path):
    """Return a function that records a program in a process of its own."""

    def record(name, settings=""):
        path = tmp_path / f"{name}.gpuviz"
        command = [sys.executable, str(PROGRAM), name, str(path), settings]
        subprocess.run(command, check=True, timeout=120)
        loaded = gpuviz.load(path)
        path.unlink()
        return loaded

    return record


def found(recording, rule):
    return [each for each in recording.findings(small=True) if each.rule == rule]


def reserved(recording):
    return recording.memory_stats()["reserved_bytes.all.peak"]


def failures(recording):
    return recording.memory_stats()["num_ooms"]


def length(recording):
    """Return the time from the first call of CUDA to the end of the last, in ns."""
    calls = recording.table("api_calls")
    return max(calls["end"].to_pylist()) - min(calls["time"].to_pylist())


def test_a_setting_under_which_less_is_reserved(recorded):
    before, after = (recorded("small_before_large", each) for each in ("", EXPANDABLE))
    (finding,) = found(before, "R11")

    assert EXPANDABLE in finding.title
    assert finding.saved_reserved_bytes == reserved(before) - reserved(after) > 0
    assert found(after, "R11") == []


def test_a_setting_under_which_a_request_does_not_fail(recorded):
    before, after = (recorded("parts_of_a_segment", each) for each in ("", EXPANDABLE))
    (finding,) = found(before, "R11")

    assert (failures(before), failures(after)) == (1, 0)
    assert finding.title == f"With `{EXPANDABLE}` the request that failed would have succeeded."


def test_a_cache_that_is_released_in_a_loop(recorded):
    before, after = recorded("emptied"), recorded("kept")
    (finding,) = found(before, "R10")

    assert finding.saved_ns == pytest.approx(length(before) - length(after), rel=0.2)
    assert found(after, "R10") == []


def test_arrays_that_record_stream_keeps(recorded):
    before, after = recorded("parked"), recorded("waiting")
    (finding,) = found(before, "R16")

    assert finding.saved_reserved_bytes == reserved(before) - reserved(after) > 0
    assert found(after, "R16") == []
