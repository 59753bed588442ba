"""R30 and R31: writes that something overwrites before anything reads them."""

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB, threads, within
from tests.unit.advice.timed_programs import found, saved_ns, small, timed

SQUARE = "cupy_square__float32_float32"
SIZE = 512 * MIB
FLOATS = SIZE // 4


def squares(*, fill=True, between="", after=SQUARE, elements=FLOATS):
    """Return a program that squares an array into others, perhaps filled before."""

    def program(gpu):
        source = gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[source])
        for _ in range(4):
            target = gpu.empty(SIZE)
            if fill:
                gpu.fill(target)
            if between:
                gpu.launch(between, duration=1e-4, reads=[target] if between == "sum" else [])
            square = {"reads": [source], "writes": [target], **threads(elements)}
            gpu.launch(after, duration=3e-4, **square)
            gpu.launch("use", duration=1e-4, reads=[target])
            del target

    return program


def sometimes_needed(gpu):
    source = gpu.empty(SIZE)
    gpu.launch("make", duration=1e-4, writes=[source])
    for needed in (True, False, False):
        target = gpu.empty(SIZE)
        gpu.fill(target)
        if needed:
            gpu.launch("scatter", duration=1e-4, reads=[target])
        gpu.launch(SQUARE, duration=3e-4, reads=[source], writes=[target], **threads(FLOATS))
        gpu.launch("use", duration=1e-4, reads=[target])
        del target


def test_a_fill_is_found_and_leaving_it_out_saves_what_was_predicted():
    (finding,) = found(squares(), "R31")

    assert finding.saved_ns == pytest.approx(saved_ns(squares(), squares(fill=False)), rel=0.2)
    assert finding.title == (
        "`gpu.fill(target)` fills 2.00 GiB that `gpu.launch(after, duration=3e-4, **square)` "
        "overwrites."
    )
    assert finding.reason == (
        "Nothing reads the array in between. 4 calls of the line took 720 µs on the GPU."
    )
    assert finding.change == (
        "Leave it out (`cupy.empty` instead of `cupy.zeros`), if `gpu.launch(after, "
        "duration=3e-4, **square)` writes every element."
    )
    assert finding.certainty == "possible"
    assert (finding.evidence.table, len(finding.evidence.rows)) == ("activities", 4)
    assert found(squares(fill=False), "R31") == []


def copies(*, fill=False, copies=1, copy=True):
    def program(gpu):
        gpu.launch("other", duration=1e-3)
        array = gpu.empty(SIZE)
        if fill:
            gpu.fill(array)
        if copies > 1:
            gpu.copy_to_device(array, pinned=True)
        if copy:
            gpu.copy_to_device(array, pinned=True)
        gpu.launch("use", duration=1e-4, reads=[array])

    return program


def test_a_copy_of_the_whole_array_is_certain_to_overwrite_it():
    (finding,) = found(copies(fill=True), "R31")

    assert finding.saved_ns == pytest.approx(saved_ns(copies(fill=True), copies()), rel=0.2)
    assert finding.change == "Leave it out (`cupy.empty` instead of `cupy.zeros`)."
    assert finding.certainty == "likely"


def test_a_copy_that_another_copy_overwrites_is_found():
    (finding,) = found(copies(copies=2), "R30")

    assert finding.saved_ns == pytest.approx(saved_ns(copies(copies=2), copies()), rel=0.2)
    assert finding.title == (
        "`gpu.copy_to_device(array, pinned=True)` writes 512 MiB that "
        "`gpu.copy_to_device(array, pinned=True)` overwrites."
    )
    assert finding.reason == (
        "Nothing reads the array in between. 1 call of the line took 9.76 ms on the GPU."
    )
    assert finding.change == "Leave it out."


def overwritten_result(*, twice=True):
    def program(gpu):
        source, target = gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[source])
        if twice:
            square = {"reads": [source], "writes": [target], **threads(FLOATS)}
            gpu.launch(SQUARE, duration=3e-4, **square)
        gpu.copy(source, target)
        gpu.launch("use", duration=1e-4, reads=[target])

    return program


def test_an_operation_whose_result_is_overwritten_is_found():
    before, after = overwritten_result(), overwritten_result(twice=False)
    (finding,) = found(before, "R30")

    assert finding.saved_ns == pytest.approx(saved_ns(before, after), rel=0.2)
    assert finding.title == (
        "`gpu.launch(SQUARE, duration=3e-4, **square)` writes 512 MiB that "
        "`gpu.copy(source, target)` overwrites."
    )
    assert finding.certainty == "likely"


def test_a_copy_that_an_operation_overwrites_is_possibly_needed():
    def program(gpu):
        source, target = gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[source])
        gpu.copy(source, target)
        gpu.launch(SQUARE, duration=3e-4, reads=[source], writes=[target], **threads(FLOATS))
        gpu.launch("use", duration=1e-4, reads=[target])

    (finding,) = found(program, "R30")

    assert finding.change == (
        "Leave it out, if `gpu.launch(SQUARE, duration=3e-4, reads=[source], writes=[target], "
        "**threads(FLOATS))` writes every element."
    )
    assert finding.certainty == "possible"


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(squares(between="sum"), id="read in between"),
        pytest.param(squares(between="by_pointers"), id="a kernel whose arrays are unknown"),
        pytest.param(squares(after="scatter"), id="an unknown kernel"),
        pytest.param(squares(elements=FLOATS - 1000), id="a part"),
        pytest.param(squares(elements=FLOATS + 1000), id="other elements"),
        pytest.param(squares(after="cupy_square__float32_float64"), id="another number of inputs"),
        pytest.param(squares(after="cupy_square__float32_bool_float32"), id="a mask"),
        pytest.param(squares(after="cupy_copy_where__bool_float32"), id="a masked copy"),
        pytest.param(sometimes_needed, id="needed once"),
    ],
)
def test_what_may_be_read_or_is_not_overwritten_is_no_finding(program):
    assert small(program, "R31") == []


def test_an_operation_that_reads_what_was_filled_needs_it():
    def program(gpu):
        source, target = gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[source])
        gpu.fill(target)
        add = {"reads": [target, source], "writes": [target], **threads(FLOATS)}
        gpu.launch("cupy_add__float32_float32_float32", duration=1e-4, **add)
        gpu.launch("use", duration=1e-4, reads=[target])

    assert small(program, "R31") == []


def test_what_another_stream_uses_is_no_finding():
    def program(gpu):
        source, target = gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[source])
        gpu.fill(target)
        with gpu.Stream():
            gpu.copy(source, target)
            gpu.launch("use", duration=1e-4, reads=[target])

    assert small(program, "R31") == []


def test_an_array_that_is_only_filled_is_no_finding():
    def program(gpu):
        array = gpu.empty(SIZE)
        gpu.fill(array)
        gpu.launch("use", duration=1e-4, reads=[array])

    assert small(program, "R31") == []


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("/python3.12/site-packages/cupy/_creation/basic.py", ["R31"]),
        ("/python3.12/site-packages/cupyx/scipy/ndimage/_measurements.py", []),
    ],
)
def test_a_fill_within_a_library_is_the_program_s_only_if_it_creates_the_array(filename, expected):
    recording = within(timed(squares()), filename)

    assert [each.rule for each in findings(recording, small=True) if each.rule == "R31"] == expected


def test_without_call_stacks_nothing_is_said():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu, stacks=False) as recorder:
        squares()(gpu)
        gpu.synchronize()

    assert [each for each in findings(recorder.recording, small=True) if each.rule == "R31"] == []
