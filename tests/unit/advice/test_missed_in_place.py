"""R07: operations that could overwrite their input."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.programs import MIB, found, recorded, saved, within

SQUARE = "cupy_square__float32_float32"


def wasteful(gpu):
    differences = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[differences])
    squares = gpu.empty(32 * MIB)
    gpu.launch(SQUARE, duration=1e-4, reads=[differences], writes=[squares])
    gpu.launch("read", duration=1e-4, reads=[squares])


def in_place(gpu):
    differences = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[differences])
    gpu.launch(SQUARE, duration=1e-4, reads=[differences], writes=[differences])
    gpu.launch("read", duration=1e-4, reads=[differences])


def with_kernel(name, *, size=32 * MIB, again=False):
    """Return the wasteful program with another kernel, size of the output, or later use."""

    def program(gpu):
        differences = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[differences])
        squares = gpu.empty(size)
        gpu.launch(name, duration=1e-4, reads=[differences], writes=[squares])
        gpu.launch("read", duration=1e-4, reads=[squares, differences] if again else [squares])

    return program


def test_a_new_array_is_found_and_overwriting_the_input_saves_what_was_predicted():
    (finding,) = found(wasteful, "R07")

    assert finding.saved_bytes == saved(wasteful, in_place) == 32 * MIB
    assert finding.title == (
        "`squares = gpu.empty(32 * MIB)` writes 32.0 MiB to a new array instead of its input."
    )
    assert finding.reason == (
        "`square` reads the array from `differences = gpu.empty(32 * MIB)`, of the same size and "
        "type, for the last time; both are allocated at the peak."
    )
    assert finding.change == (
        "Let `square` overwrite its input, with `out=` or an operator such as `+=`, if both have "
        "the same shape."
    )
    assert finding.certainty == "likely"
    assert found(in_place, "R07") == []


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(with_kernel(SQUARE, again=True), id="used later"),
        pytest.param(with_kernel(SQUARE, size=16 * MIB), id="another size"),
        pytest.param(with_kernel("cupy_copy__float32_float32"), id="a copy"),
        pytest.param(with_kernel("cupy_less__int64_int64_bool"), id="another type"),
        pytest.param(with_kernel("cupy_floor__int32_float32"), id="another type of that size"),
        pytest.param(with_kernel("square"), id="an unknown kernel"),
    ],
)
def test_what_looks_alike_is_no_finding(program):
    assert found(program, "R07") == []


def new_input_in_each_round(gpu, *, overwrites=False):
    for _ in range(4):
        differences = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[differences])
        squares = differences if overwrites else gpu.empty(32 * MIB)
        gpu.launch(SQUARE, duration=1e-4, reads=[differences], writes=[squares])
        del differences
        gpu.launch("read", duration=1e-4, reads=[squares])
        del squares


def one_input_in_all_rounds(gpu):
    """The last round could overwrite the input, but the rounds before could not."""
    differences = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[differences])
    for _ in range(4):
        squares = gpu.empty(32 * MIB)
        gpu.launch(SQUARE, duration=1e-4, reads=[differences], writes=[squares])
        gpu.launch("read", duration=1e-4, reads=[squares])
        del squares


def test_an_input_that_the_rounds_of_a_loop_share_is_not_overwritten():
    def overwrites(gpu):
        new_input_in_each_round(gpu, overwrites=True)

    (finding,) = found(new_input_in_each_round, "R07")

    assert finding.saved_bytes == saved(new_input_in_each_round, overwrites) == 32 * MIB
    assert found(overwrites, "R07") == []
    assert found(one_input_in_all_rounds, "R07") == []


def of_a_temporary_array(cp):
    x = cp.random(8 * MI)
    for _ in range(4):
        y = cp.elementwise("exp", x * 2.0)
        cp.kernel("fill", [x], [y])
        del y


def of_a_variable(cp):
    x = cp.random(8 * MI)
    for _ in range(4):
        x = cp.elementwise("exp", x)
        cp.kernel("fill", [], [])
    cp.kernel("read", [x], [])


@pytest.mark.parametrize(
    ("program", "read", "it"),
    [
        (of_a_temporary_array, "a temporary array of that line", "that array, which needs a name"),
        (of_a_variable, "the array from `x = cp.random(", "its input, with `out=`"),
    ],
)
def test_a_temporary_array_of_the_line_needs_a_name(program, read, it):
    (finding,) = (each for each in findings(of_arrays(program), small=True) if each.rule == "R07")

    assert finding.reason.startswith(f"`exp` reads {read}")
    assert finding.change.startswith(f"Let `exp` overwrite {it}")


def test_one_of_several_inputs_could_be_transposed():
    def program(gpu):
        left, right = gpu.empty(32 * MIB), gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[left, right])
        total = gpu.empty(32 * MIB)
        add = {"reads": [left, right], "writes": [total]}
        gpu.launch("cupy_add__float32_float32_float32", duration=1e-4, **add)
        gpu.launch("read", duration=1e-4, reads=[total, right])

    (finding,) = found(program, "R07")

    assert finding.change == (
        "Let `add` overwrite its input, with `out=` or an operator such as `+=`, if both have the "
        "same shape and none of its inputs is transposed."
    )
    assert finding.certainty == "possible"


def test_after_the_input_is_deleted_overwriting_it_is_not_counted_again():
    def program(gpu):
        wasteful(gpu)
        differences = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[differences])
        squares = gpu.empty(32 * MIB)
        gpu.launch(SQUARE, duration=1e-4, reads=[differences], writes=[squares])
        large = gpu.empty(64 * MIB)
        gpu.launch("enlarge", duration=1e-4, reads=[squares], writes=[large])

    found = {each.rule: each for each in findings(recorded(program), small=True)}

    assert found["R45"].further_bytes == found["R07"].saved_bytes == 32 * MIB
    assert found["R07"].further_bytes == 0


def test_an_operation_within_a_library_is_not_the_program_s_to_change():
    scipy = within(recorded(wasteful), "/python3.12/site-packages/cupyx/scipy/ndimage/_filters.py")

    assert [each for each in findings(scipy, small=True) if each.rule == "R07"] == []


def test_an_input_that_is_read_twice_may_be_read_in_two_orders():
    def program(gpu):
        matrix = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[matrix])
        total = gpu.empty(32 * MIB)
        gpu.launch(
            "cupy_add__float32_float32_float32",
            duration=1e-4,
            reads=[matrix, matrix],
            writes=[total],
        )
        gpu.launch("read", duration=1e-4, reads=[total])

    assert found(program, "R07") == []


ROUNDS = 6


def adds_up(cp):
    weights, total = cp.random(8 * MI), cp.random(8 * MI)
    for _ in range(ROUNDS):
        total = total + cp.elementwise("exp", weights)
    float(total + weights)


def adds_up_in_place(cp):
    weights, total = cp.random(8 * MI), cp.random(8 * MI)
    for _ in range(ROUNDS):
        total += cp.elementwise("exp", weights)
    float(total + weights)


def scales(cp):
    field, mask = cp.random(8 * MI), cp.random(8 * MI)
    for _ in range(ROUNDS):
        cp.kernel("propagate", [field], [field])
        field = field * mask
    float(field)


def scales_in_place(cp):
    field, mask = cp.random(8 * MI), cp.random(8 * MI)
    for _ in range(ROUNDS):
        cp.kernel("propagate", [field], [field])
        cp.elementwise("multiply", field, mask, out=field)
    float(field)


def of_line(program, line):
    """Return the findings of R07 about a line."""
    every = findings(of_arrays(program), small=True)
    return [each for each in every if each.rule == "R07" and each.lines[0].source.startswith(line)]


@pytest.mark.parametrize(
    ("program", "fixed", "line"),
    [
        (adds_up, adds_up_in_place, "total = total + "),
        (scales, scales_in_place, "field = field * mask"),
    ],
)
def test_a_variable_that_each_round_replaces_is_overwritten(program, fixed, line):
    (finding,) = of_line(program, line)

    before, after = (of_arrays(each) for each in (program, fixed))
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes == 32 * MI
    assert finding.title.startswith(f"`{line}")
    assert of_line(fixed, "") == []


def scales_and_compares(cp):
    field, mask = cp.random(8 * MI), cp.random(8 * MI)
    for _ in range(ROUNDS):
        scaled = field * mask
        cp.kernel("compare", [field, scaled], [scaled])
        field = scaled
    float(field)


def compares_at_times(cp):
    field, mask = cp.random(8 * MI), cp.random(8 * MI)
    for number in range(ROUNDS):
        before = field
        field = field * mask
        if number % 3 == 1:
            cp.kernel("compare", [before, field], [field])
        del before
    float(field)


def compares_with_the_first(cp):
    field, mask = cp.random(8 * MI), cp.random(8 * MI)
    first = field
    for _ in range(ROUNDS):
        field = field * mask
        cp.kernel("compare", [first, field], [field])
    float(first + field)


def keeps_a_list(every, *, reads):
    def program(cp):
        field, mask = cp.random(8 * MI), cp.random(8 * MI)
        fields = []
        for number in range(ROUNDS):
            field = field * mask
            if number % every == 0:
                fields.append(field)
        if reads:
            for each in fields:
                float(each)
        float(mask)

    return program


def keeps_the_best(cp):
    field, mask = cp.random(8 * MI), cp.random(8 * MI)
    best = field
    for number in range(ROUNDS):
        field = field * mask
        if number in {1, 3}:
            best = field
    float(best)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(scales_and_compares, id="each old value is used later"),
        pytest.param(compares_at_times, id="some old values are used later"),
        pytest.param(compares_with_the_first, id="the first value is used later"),
        pytest.param(keeps_a_list(1, reads=True), id="a list of all, which is read"),
        pytest.param(keeps_a_list(2, reads=True), id="a list of some, which is read"),
        pytest.param(keeps_a_list(1, reads=False), id="a list of all"),
        pytest.param(keeps_a_list(2, reads=False), id="a list of some"),
        pytest.param(keeps_the_best, id="one of the old values is used at last"),
    ],
)
def test_a_variable_whose_old_values_are_kept_is_not_overwritten(program):
    assert of_line(program, "") == []
