"""Modules of two recordings of a training program."""

import gpuviz
from gpuviz.comparison.text import diff_text
from gpuviz.report.diff import diff_html
from tests.unit.advice.training import MIB, Model, recorded


def trains(names, size=8 * MIB):
    def program(gpu):
        model = Model(gpu, names, size=size)
        for _ in range(2):
            x = gpu.empty(8 * MIB)
            gpu.launch("load", duration=1e-4, writes=[x])
            model.backward(model.forward(x))

    return recorded(program)


def test_modules_are_compared_by_their_path():
    found = gpuviz.diff(trains(["up", "down"]), trains(["up", "down", "head"]))

    rows = {row["module"]: row for row in found.modules.to_pylist()}
    head = rows["head"]

    assert found.modules["module"][0].as_py() == "head"
    assert (head["before_peak_bytes"], head["before_launches"]) == (0, 0)
    assert (head["after_peak_bytes"], head["after_launches"]) == (17 * MIB, 4)
    assert head["after_forward_ns"] == 2 * 100_000
    assert "+17.0 MiB  head, 0 to 4 launches" in diff_text(found)
    assert "<h3>Modules</h3>" in diff_html(found)


def test_equal_modules_are_no_difference():
    one, other = trains(["up"]), trains(["up"])

    assert gpuviz.diff(one, other).modules.num_rows == 0


def test_without_modules_there_is_nothing_to_compare():
    def program(gpu, count):
        for _ in range(count):
            gpu.launch("step", duration=1e-4, writes=[gpu.empty(MIB)])

    one, other = (recorded(lambda gpu, count=count: program(gpu, count)) for count in (1, 2))

    assert gpuviz.diff(one, other).modules.num_rows == 0
