"""A rule that fails: a warning names it, and the findings of all others are returned."""

import pytest

from gpuviz.advice.findings import findings
from gpuviz.advice.rules import r42_underfilled_kernel
from tests.unit.advice.timed_programs import timed


def program(gpu):
    """Sum on one multiprocessor, between kernels before which the host works."""
    array = gpu.empty(1 << 20)
    for _ in range(20):
        gpu.launch("forward", duration=3e-3, reads=[array], writes=[array])
        gpu.launch("cupy_sum", duration=1e-3, grid=(1,), reads=[array])
        gpu.synchronize()
        gpu.work_on_host(4e-3)


def fail(schedule):
    yield from r42_of(schedule)
    raise IndexError("row 7")


r42_of = r42_underfilled_kernel.find


def test_the_others_are_returned_and_a_warning_names_the_rule(monkeypatch):
    recording = timed(program)
    everything = [each.rule for each in findings(recording, small=True)]
    monkeypatch.setattr(fail, "__module__", r42_underfilled_kernel.__name__, raising=False)
    monkeypatch.setattr(r42_underfilled_kernel, "find", fail)

    with pytest.warns(RuntimeWarning, match=r"^R42 failed .*\(IndexError: row 7\)"):
        rest = [each.rule for each in findings(recording, small=True)]

    assert "R42" in everything
    assert rest == [rule for rule in everything if rule != "R42"]
    assert rest
