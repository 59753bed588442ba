"""R33: arrays in double precision that follow from small ones, such as CuPy's `fftfreq`."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays

WIDTH, SIZE, ROUNDS = 4096, 4 * MI, 6


def solves(cp, *, kind="float64", size=WIDTH, makes=None, other=None):
    """Solve an equation in single precision by its spectrum."""
    field = cp.uploaded(SIZE)
    k = cp.fftfreq(size) if makes is None else makes(cp)
    if kind == "float32":
        k = cp.astype(k, "float32")
    damping = cp.times(k, k, SIZE)
    k_of_step = k if other is None else cp.uploaded(WIDTH, other)
    for _ in range(ROUNDS):
        spectrum = cp.times(cp.transform(field), damping, SIZE)
        step = cp.times(cp.times(1j, k_of_step, WIDTH), spectrum, SIZE)
        slope = cp.transform(step, inverse=True)
        field = cp.times(cp.transform(spectrum, inverse=True), slope, SIZE)
        del step, slope
    float(field.sum())


def asked_for(cp):
    """Make an array of the type `dtype=cupy.float64`."""
    return cp.astype(cp.arange(WIDTH), "float64")


def of(program):
    found = findings(of_arrays(program), small=True)
    return [each for each in found if each.rule == "R33"]


def test_a_small_array_of_which_all_is_computed_is_converted_where_it_is_made():
    (finding,) = of(solves)

    before, after = of_arrays(solves), of_arrays(partial(solves, kind="float32"))
    assert finding.title.startswith(
        "`spectrum = cp.times(cp.transform(field), damping, SIZE)` makes"
    )
    assert finding.change == (
        "Convert what `k = cp.fftfreq(size) if makes is None else makes(cp)` makes to single "
        "precision (`astype`), if that is precise enough."
    )
    assert finding.saved_bytes == pytest.approx(before.peak().bytes - after.peak().bytes, rel=0.01)
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert of(partial(solves, kind="float32")) == []


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(partial(solves, other="float64"), id="a small operand of its own"),
        pytest.param(partial(solves, size=SIZE), id="a large one"),
        pytest.param(partial(solves, makes=asked_for), id="one asked for"),
    ],
)
def test_small_arrays_are_not_converted_if(program):
    assert not any("Convert what" in each.change for each in of(program))


def test_a_large_operand_with_half_of_the_bytes_is_not_called_small():
    (finding,) = of(partial(solves, size=SIZE))

    assert "combines complex64 with the float64 array from `damping" in finding.reason
