"""The order of findings."""

from dataclasses import replace

from gpuviz.advice.finding import Finding
from gpuviz.advice.findings import varied
from gpuviz.advice.scale import most_first
from tests.unit.advice.timed_programs import found


def finding(rule, number):
    return Finding(rule, f"{rule} {number}.", "Reason.", "Change.", "likely", 0)


def titles(*rules):
    return [each.title for each in varied([finding(rule, at) for at, rule in enumerate(rules)])]


def test_a_rule_is_once_among_the_first_three():
    assert titles("R45", "R45", "R08", "R45", "R17", "R43") == [
        "R45 0.",
        "R08 2.",
        "R17 4.",
        "R45 1.",
        "R45 3.",
        "R43 5.",
    ]


def test_a_rule_fills_the_first_three_if_nothing_else_is_there():
    assert titles("R45", "R45", "R08", "R45") == ["R45 0.", "R08 2.", "R45 1.", "R45 3."]
    assert titles() == []


def test_a_trade_comes_after_what_costs_nothing():
    assert titles("R52", "R45", "R45", "R05", "R08") == [
        "R45 1.",
        "R08 4.",
        "R45 2.",
        "R52 0.",
        "R05 3.",
    ]
    assert titles("R05", "R52") == ["R05 0.", "R52 1."]


def test_what_saves_time_of_the_warm_up_comes_after_what_saves_time_of_each_round():
    once = replace(finding("R47", 0), is_of_warm_up=True, saved_ns=900)
    others = [replace(finding("R08", at), saved_ns=100 - at) for at in (1, 2)]

    ranked = varied(most_first([once, *others], lambda each: each.saved_ns / 1000))

    assert [each.title for each in ranked] == ["R08 1.", "R08 2.", "R47 0."]


def sums(gpu):
    """Sum on one multiprocessor before the iterations, and in each of them."""
    array = gpu.empty(1 << 20)
    for _ in range(4):
        gpu.launch("cupy_sum", duration=5e-3, grid=(1,), reads=[array])
    for _ in range(20):
        gpu.launch("forward", duration=3e-3, reads=[array], writes=[array])
        gpu.launch("cupy_sum", duration=1e-3, grid=(1,), reads=[array])
        gpu.work_on_host(1e-3)


def test_what_saves_time_before_the_iterations_alone_is_of_the_warm_up():
    of_each, at_first = found(sums, "R42")

    assert "duration=1e-3" in of_each.lines[0].source
    assert not of_each.is_of_warm_up
    assert at_first.is_of_warm_up
    assert at_first.working_ns >= of_each.working_ns
