"""The kernel that a finding proposes for an expression: each view of an array is an argument."""

import numpy as np
import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.data.columns import plain
from gpuviz.recording import Recording
from tests.unit.advice.arrays import MI, of_arrays


def code(recording):
    """Return the kernel that the finding about an expression proposes; empty without one."""
    (finding,) = (each for each in findings(recording, small=True) if each.rule == "R08")
    return finding.change.partition("Such as ")[2]


def inputs(function):
    return function.partition("__")[2].count("_")


def with_views(recording):
    """Return the recording as if what a kernel reads again of an array began 4 KiB later."""
    table = recording.tables["launch_blocks"]
    launched, address = plain(table["correlation"]), plain(table["address"]).copy()
    again = (launched[1:] == launched[:-1]) & (address[1:] == address[:-1])
    address[1:][again] += 4096
    place = table.column_names.index("address")
    changed = table.set_column(place, "address", pa.array(address, pa.uint64()))
    assert np.count_nonzero(again)
    return Recording({**recording.tables, "launch_blocks": changed}, recording.manifest)


def of_a_matrix_and_its_transpose(cp):
    for _ in range(8):
        image = cp.random(8 * MI)
        result = (image * image.T) + 1.0
        cp.kernel("filter", [result], [result])
        del image, result


def test_an_array_that_is_read_twice_is_one_argument():
    def program(cp):
        for _ in range(8):
            image = cp.random(8 * MI)
            result = (image * image) + 1.0
            cp.kernel("filter", [result], [result])
            del image, result

    assert '"float32 x0, float32 s0", "float32 out", "out = ((x0 * x0) + s0)"' in code(
        of_arrays(program)
    )


def test_views_of_an_array_that_begin_elsewhere_are_arguments_of_their_own():
    def program(cp):
        for _ in range(8):
            image = cp.random(8 * MI)
            result = (image + image) * 0.5
            cp.kernel("filter", [result], [result])
            del image, result

    recording = with_views(of_arrays(program))

    assert '"float32 x0, float32 x1, float32 s0", "float32 out", "out = ((x0 + x1) * s0)"' in code(
        recording
    )


def test_a_transposed_array_is_an_argument_of_its_own():
    assert '"float32 x0, float32 x1, float32 s0", "float32 out", "out = ((x0 * x1) + s0)"' in code(
        of_arrays(of_a_matrix_and_its_transpose)
    )


@pytest.mark.parametrize(
    ("first", "second", "is_known"),
    [
        ("multiply__float64_float64_float64", "true_divide__float64_float64_float64", True),
        ("multiply__int64_int64_int64", "true_divide__int64_int64_float64", False),
        ("copy__float64_int64", "multiply__int64_int64_int64", False),
        ("multiply__float64_float64_float64", "copy__float64_int64", True),
    ],
)
def test_no_code_is_proposed_that_computes_something_else(first, second, is_known):
    def program(cp):
        for _ in range(8):
            one, other = cp.random(4 * MI, "float64"), cp.random(4 * MI, "float64")
            result = divided(cp, one, other)
            cp.kernel("filter", [result], [result])
            del one, other, result

    def divided(cp, *operands):
        passed, result = cp.empty(4 * MI, "float64"), cp.empty(4 * MI, "float64")
        cp.kernel(f"cupy_{first}", operands[: inputs(first)], [passed])
        cp.kernel(f"cupy_{second}", [passed, operands[1]][: inputs(second)], [result])
        return result

    assert bool(code(of_arrays(program))) is is_known
