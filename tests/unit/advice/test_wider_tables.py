"""R33: tables, created arrays and sums of double precision."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI
from tests.unit.advice.programs import (
    MIB,
    recorded,
    saved,
    threads,
    within,
    without_frames,
)
from tests.unit.advice.timed_programs import saved_ns, timed

FILL, RANDOM = "cupy_fill", "cupy_random_x_mod_1"
FROM_SINGLE, ADD = "cupy_add__float64_float32_float64", "cupy_add__float64_float64_float64"
_BYTES = {"float32": 4, "float64": 8}


def array_of(gpu, kind, name, *reads, size=16 * MI, into=None):
    """Return the result of a kernel of CuPy with the types in its name, or update an array."""
    target = gpu.empty(size * _BYTES[kind]) if into is None else into
    moved = sum(each.nbytes for each in (*reads, target, *([] if into is None else [into])))
    gpu.launch(
        name,
        reads=[*reads, *([] if into is None else [into])],
        writes=[target],
        duration=2e-6 + moved / 1.5e12,
        **threads(size),
    )
    return target


def sums(gpu, array):
    duration = 2e-6 + array.nbytes / 1.5e12
    gpu.launch("cupy_sum", duration=duration, reads=[array], writes=[gpu.empty(512)])


def looks_up(kind, *, index="uint8", uploaded=False, other=None):
    """Return a program that looks values of images up in a table, and averages them."""
    two, one = f"{kind}_float_{kind}", f"{kind}_{kind}_{kind}"

    def program(gpu):
        images = [gpu.empty(16 * MI * (1 if index == "uint8" else 4)) for _ in range(4)]
        for each in images:
            gpu.launch("make", duration=1e-4, writes=[each])
        if uploaded:
            level = gpu.empty(256 * _BYTES[kind])
            gpu.copy_to_device(level)
        else:
            level = array_of(gpu, kind, f"cupy_linspace__float_float_{kind}", size=256)
        response = array_of(gpu, kind, f"cupy_power__{two}", level, size=256)
        state = None if other is None else array_of(gpu, other, "by_a_solver")
        for _ in range(5):
            total = array_of(gpu, kind, "cupy_take", response, images[0])
            for each in images[1:]:
                value = array_of(gpu, kind, "cupy_take", response, each)
                array_of(gpu, kind, f"cupy_true_divide__{two}", into=value)
                array_of(gpu, kind, f"cupy_add__{one}", value, into=total)
            if state is not None:
                array_of(gpu, other, f"cupy_multiply__{one}", total, state)
            sums(gpu, total)

    return program


def of_arrays_made(recording):
    whole = without_frames(recording, "array_of")
    return [each for each in findings(whole, small=True) if each.rule == "R33"]


def test_a_table_of_double_precision_makes_wide_what_is_looked_up_in_it():
    before, after = looks_up("float64"), looks_up("float32")
    (finding,) = of_arrays_made(timed(before))

    assert finding.saved_bytes == pytest.approx(saved(before, after), abs=4096)
    assert finding.saved_bytes > 100 * MIB
    assert finding.saved_ns == pytest.approx(saved_ns(before, after), rel=0.25)
    assert finding.title == (
        '`level = array_of(gpu, kind, f"cupy_linspace__float_float_{kind}", size=256)` makes up to '
        "384 MiB of arrays float64."
    )
    assert finding.change == (
        "Create the array in single precision (`dtype=cupy.float32`), if that suffices."
    )
    assert finding.certainty == "possible"
    assert of_arrays_made(timed(after)) == []


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(looks_up("float64", uploaded=True), id="a table of the user's"),
        pytest.param(looks_up("float64", index="int32"), id="a gather by large integers"),
        pytest.param(looks_up("float64", other="float64"), id="used with other float64 data"),
    ],
)
def test_a_table_that_must_be_in_double_precision_is_no_finding(program):
    assert of_arrays_made(recorded(program)) == []


def adds_noise(kind, *, data="float32", creation="cupy_random_x_mod_1", updates=False):
    """Return a program that adds noise to images, in the wider of both types."""
    wide = max((kind, data), key=_BYTES.__getitem__)

    def program(gpu):
        image = gpu.empty(16 * MI * _BYTES[data])
        gpu.copy_to_device(image)
        for _ in range(4):
            noise = array_of(gpu, kind, creation)
            array_of(gpu, kind, f"cupy_multiply__{kind}_float_{kind}", into=noise)
            if updates:
                array_of(gpu, wide, f"cupy_add__{kind}_{data}_{wide}", image, into=noise)
                result = noise
            else:
                result = array_of(gpu, wide, f"cupy_add__{kind}_{data}_{wide}", noise, image)
            root = array_of(gpu, wide, f"cupy_sqrt__{wide}_{wide}", result)
            sums(gpu, root)
            del noise, result, root

    return program


def test_a_created_array_of_double_precision_makes_results_wide():
    before, after = adds_noise("float64"), adds_noise("float32")
    (finding,) = of_arrays_made(timed(before))

    assert finding.saved_bytes == saved(before, after) == 192 * MIB
    assert finding.saved_ns == pytest.approx(saved_ns(before, after), rel=0.25)
    assert finding.lines[0].source == "noise = array_of(gpu, kind, creation)"
    assert of_arrays_made(timed(after)) == []


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(adds_noise("float64", data="float64"), id="everything in double precision"),
        pytest.param(
            adds_noise("float64", creation="cupy_fill", updates=True), id="a sum of images"
        ),
        pytest.param(adds_noise("float64", creation="by_a_solver"), id="an unknown kernel"),
    ],
)
def test_double_precision_on_purpose_is_no_finding(program):
    assert of_arrays_made(recorded(program)) == []


def adds_frames(*, in_place):
    """Return a program that adds up frames, and in place also squares of their deviations."""

    def program(gpu):
        frames = [gpu.empty(16 * MI * 4) for _ in range(4)]
        for each in frames:
            gpu.copy_to_device(each)
        total = array_of(gpu, "float64", FILL)
        for each in frames:
            if in_place:
                deviation = array_of(gpu, "float64", FROM_SINGLE, total, each)
                array_of(gpu, "float64", ADD, deviation, into=total)
                del deviation
            else:
                total = array_of(gpu, "float64", FROM_SINGLE, total, each)
        sums(gpu, total)

    return program


@pytest.mark.parametrize("in_place", [False, True])
def test_running_sums_may_need_double_precision(in_place):
    assert of_arrays_made(recorded(adds_frames(in_place=in_place))) == []


def test_an_array_whose_line_asks_for_double_precision_is_not_float64_by_default():
    def program(gpu):
        image = gpu.empty(16 * MI * 4)
        gpu.copy_to_device(image)
        for _ in range(4):
            noise = array_of(gpu, "float64", RANDOM)
            sums(gpu, array_of(gpu, "float64", FROM_SINGLE, noise, image))
            del noise

    assert of_arrays_made(recorded(program)) == []


def test_what_is_only_converted_can_be_created_in_single_precision():
    wide = "float64"

    def converts(gpu):
        for _ in range(3):
            noise = array_of(gpu, wide, RANDOM)
            narrow = array_of(gpu, "float32", "cupy_copy__float64_float32", noise)
            gpu.launch("smooth", duration=1e-4, reads=[narrow])
            del noise, narrow

    (finding,) = of_arrays_made(recorded(converts))

    assert finding.saved_bytes == 64 * MIB
    assert finding.lines[0].source == "noise = array_of(gpu, wide, RANDOM)"


def test_random_numbers_are_created_by_the_line_that_asks_for_them():
    program = timed(adds_noise("float64"))
    random, scipy = (
        of_arrays_made(within(program, f"/python3.12/site-packages/{each}", "normal"))
        for each in ("cupy/random/_generator.py", "cupyx/scipy/stats/_stats.py")
    )

    assert [each.saved_bytes for each in random] == [192 * MIB]
    assert scipy == []
