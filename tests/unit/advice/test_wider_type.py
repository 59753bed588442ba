"""R33: small operands that double the size of a result."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.programs import (
    MIB,
    found,
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
MULTIPLY = "cupy_multiply__float32_float64_float64"


def weighs(*, name=MULTIPLY, result=64 * MIB, weights=4096, chain=0, rounds=1):
    """Return a program that multiplies an array of 32 MiB by weights."""

    def program(gpu):
        image = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[image])
        factors = gpu.empty(weights)
        gpu.copy_to_device(factors)
        for _ in range(rounds):
            weighted = gpu.empty(result)
            gpu.launch(name, duration=1e-4, reads=[image, factors], writes=[weighted])
            last = weighted
            for _ in range(chain):
                root = gpu.empty(result)
                kind = name.rpartition("_")[2]
                gpu.launch(f"cupy_sqrt__{kind}_{kind}", duration=1e-4, reads=[last], writes=[root])
                last = root
            gpu.launch("read", duration=1e-4, reads=[last])
            gpu.launch("compare", duration=1e-4, reads=[image, weighted])
            del weighted, last
            root = None

    return program


def in_single_precision(**options):
    return weighs(name="cupy_multiply__float32_float32_float32", result=32 * MIB, **options)


def test_a_wider_operand_is_found_and_converting_it_saves_what_was_predicted():
    (finding,) = found(weighs(), "R33")

    assert finding.saved_bytes == saved(weighs(), in_single_precision()) == 32 * MIB
    assert finding.title == (
        "`weighted = gpu.empty(result)` makes 64.0 MiB of float64 from float32."
    )
    assert finding.reason == (
        "`multiply` combines the float32 array from `image = gpu.empty(32 * MIB)` with a small "
        "operand of type float64, which doubles the size of the result; it is allocated at the "
        "peak."
    )
    assert finding.change == (
        "Convert the float64 operand to float32 (`astype`), if that is precise enough."
    )
    assert finding.certainty == "possible"
    assert found(in_single_precision(), "R33") == []


@pytest.mark.parametrize("rounds", [1, 3])
def test_what_is_computed_from_the_result_becomes_smaller_too(rounds):
    before, after = weighs(chain=2, rounds=rounds), in_single_precision(chain=2, rounds=rounds)
    (finding,) = found(before, "R33")

    assert finding.saved_bytes == saved(before, after) == 96 * MIB


def adds_up(kind, result):
    """Return a program that adds the image to its product with weights of a type."""

    def program(gpu):
        image = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[image])
        weighted, total = gpu.empty(result), gpu.empty(result)
        multiply = f"cupy_multiply__float32_{kind}_{kind}"
        gpu.launch(multiply, duration=1e-4, reads=[image], writes=[weighted])
        add = f"cupy_add__{kind}_float32_{kind}"
        gpu.launch(add, duration=1e-4, reads=[weighted, image], writes=[total])

    return program


def test_a_narrow_operand_does_not_keep_a_result_wide():
    (finding,) = found(adds_up("float64", 64 * MIB), "R33")

    assert finding.saved_bytes == 64 * MIB
    assert finding.saved_bytes == saved(adds_up("float64", 64 * MIB), adds_up("float32", 32 * MIB))


@pytest.mark.parametrize(
    ("name", "other", "narrow", "wide"),
    [
        ("cupy_true_divide__float32_int64_float64", "int64", "float32", "float64"),
        ("cupy_add__complex128_complex64_complex128", "complex128", "complex64", "complex128"),
        ("cupy_multiply__float16_float32_float32", "float32", "float16", "float32"),
    ],
)
def test_other_types_are_named(name, other, narrow, wide):
    (finding,) = found(weighs(name=name), "R33")

    assert finding.title.endswith(f"makes 64.0 MiB of {wide} from {narrow}.")
    assert finding.change.startswith(f"Convert the {other} operand to {narrow} (`astype`)")


def written_again(gpu):
    image, other = gpu.empty(32 * MIB), gpu.empty(64 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image, other])
    scaled = gpu.empty(64 * MIB)
    gpu.launch(MULTIPLY, duration=1e-4, reads=[image], writes=[scaled])
    add = {"reads": [scaled, other], "writes": [scaled]}
    gpu.launch("cupy_add__float64_float64_float64", duration=1e-4, **add)


def sometimes_with_a_large_operand(gpu):
    image, large, small = gpu.empty(32 * MIB), gpu.empty(64 * MIB), gpu.empty(4096)
    gpu.launch("make", duration=1e-4, writes=[image, large, small])
    for weights in (small, large):
        scaled = gpu.empty(64 * MIB)
        gpu.launch(MULTIPLY, duration=1e-4, reads=[image, weights], writes=[scaled])
        gpu.launch("read", duration=1e-4, reads=[scaled])


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(weighs(weights=64 * MIB), id="a large operand"),
        pytest.param(weighs(name="cupy_multiply__float32_float_float64"), id="a scalar"),
        pytest.param(weighs(name="cupy_sqrt__int32_float64"), id="an integer"),
        pytest.param(weighs(name="cupy_copy__float32_float64"), id="astype"),
        pytest.param(weighs(name="scale"), id="an unknown kernel"),
        pytest.param(weighs(result=128 * MIB), id="a broadcast"),
        written_again,
        sometimes_with_a_large_operand,
    ],
)
def test_what_looks_alike_is_no_finding(program):
    assert found(program, "R33") == []


def test_an_operation_within_a_library_is_not_the_program_s_to_change():
    scipy = within(recorded(weighs()), "/python3.12/site-packages/cupyx/scipy/ndimage/_filters.py")

    assert [each for each in findings(scipy, small=True) if each.rule == "R33"] == []


def weighed_sums(kind, *, weights=256):
    """Return a program that is slower, but does not need more at its peak, in double precision."""

    def program(cp):
        samples = [cp.random(16 * MI) for _ in range(8)]
        total = cp.random(64 * MI)
        for each in samples:
            total += each.sum()
        del samples, each
        del total
        image, factors = cp.random(16 * MI), cp.random(weights, kind)
        for _ in range(20):
            weighted = image * factors
            weighted += 1.0
            weighted.sum()
            del weighted

    return program


def test_the_time_of_kernels_that_move_half_as_much_is_saved_too():
    wide, narrow = (of_arrays(weighed_sums(kind)) for kind in ("float64", "float32"))
    (finding,) = (each for each in findings(wide) if each.rule == "R33")

    assert finding.saved_bytes == 0
    assert finding.saved_ns == pytest.approx(wide.duration_ns - narrow.duration_ns, rel=0.1)
    assert "allocated at the peak" not in finding.reason


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(weighed_sums("float32"), id="narrow factors"),
        pytest.param(weighed_sums("float64", weights=16 * MI), id="as many wide factors"),
    ],
)
def test_results_that_are_not_wider_than_they_must_be_cost_no_time(program):
    assert [each for each in findings(of_arrays(program)) if each.rule == "R33"] == []


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
