"""R33: small operands that double the size of a result."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.programs import (
    MIB,
    found,
    recorded,
    saved,
    within,
)

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
