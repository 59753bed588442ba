"""R34: copies that repeat a small array, where a view would do."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB, found, recorded, saved, threads, within
from tests.unit.advice.timed_programs import saved_ns, timed

COPY = "cupy_copy__float32_float32"
FLOATS = 32 * MIB // 4


def mesh(*, copies=True, name=COPY, small=MIB, between="", use="cupy_add"):
    """Return a program that adds the coordinates of a grid."""
    elements = FLOATS // 2 if between == "halves" else FLOATS

    def program(gpu):
        for _ in range(10):
            axes, grids = [gpu.empty(small) for _ in "xy"], []
            gpu.launch("make", duration=1e-4, writes=axes)
            for axis in axes if copies else ():
                grid = gpu.empty(32 * MIB)
                gpu.launch(name, duration=2e-5, reads=[axis], writes=[grid], **threads(elements))
                grids.append(grid)
            if between == "axis":
                gpu.launch("move", duration=1e-4, writes=axes)
            if between == "grid":
                gpu.launch("move", duration=1e-4, reads=grids)
            if between == "unknown":
                gpu.launch("by_pointers", duration=1e-4)
            total = gpu.empty(32 * MIB)
            gpu.launch(
                f"{use}__float32_float32_float32",
                duration=1e-6 + (32 * MIB + 2 * (32 * MIB if copies else small)) / 2.5e12,
                reads=grids or axes,
                writes=[total],
                **threads(FLOATS),
            )
            gpu.launch("read", duration=1e-4, reads=[total])
            axes = grids = axis = grid = total = None

    return program


def test_a_repeated_array_is_found_and_a_view_saves_what_was_predicted():
    before, after = mesh(), mesh(copies=False)
    (finding,) = found(before, "R34")
    (timed_finding,) = (each for each in timed(before).findings() if each.rule == "R34")

    assert finding.saved_bytes == saved(before, after) == 64 * MIB
    assert timed_finding.saved_ns == pytest.approx(saved_ns(before, after), rel=0.2)
    assert finding.title == (
        "`grid = gpu.empty(32 * MIB)` copies 2.00 MiB to 64.0 MiB, where views would do."
    )
    assert finding.reason == (
        'The elements from `axes, grids = [gpu.empty(small) for _ in "xy"], []` are repeated in 2 '
        "arrays at the peak. Only elementwise functions read them, which accept views that repeat "
        "elements."
    )
    assert finding.change == (
        "Use such views: an axis of length 1, `cupy.broadcast_to`, or "
        "`cupy.meshgrid(..., sparse=True)`."
    )
    assert finding.certainty == "likely"
    assert found(after, "R34") == []


def one_copy(gpu):
    axis, grid = gpu.empty(MIB), gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[axis])
    gpu.launch(COPY, duration=2e-5, reads=[axis], writes=[grid], **threads(FLOATS))
    del axis
    root = gpu.empty(32 * MIB)
    gpu.launch("cupy_sqrt__float32_float32", duration=1e-4, reads=[grid], writes=[root])


def test_the_source_of_a_view_stays_allocated():
    (finding,) = found(one_copy, "R34")

    assert finding.saved_bytes == recorded(one_copy).peak().bytes - 33 * MIB
    assert "repeated in 1 array at the peak. Only elementwise functions read it," in finding.reason


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(mesh(name="cupy_copy__float64_float32"), id="another type"),
        pytest.param(mesh(name="expand"), id="an unknown kernel"),
        pytest.param(mesh(small=16 * MIB), id="hardly repeated"),
        pytest.param(mesh(between="halves"), id="a part"),
        pytest.param(mesh(between="axis"), id="the source changes"),
        pytest.param(mesh(between="grid"), id="a kernel that may need the copy"),
        pytest.param(mesh(between="unknown"), id="a kernel whose arrays are unknown"),
        pytest.param(mesh(use="stencil"), id="not elementwise"),
    ],
)
def test_what_looks_alike_is_no_finding(program):
    assert found(program, "R34") == []


@pytest.mark.parametrize(
    ("filename", "name", "expected"),
    [
        ("/python3.12/site-packages/cupy/_creation/ranges.py", "meshgrid", ["R34"]),
        ("/python3.12/site-packages/cupy/_manipulation/tiling.py", "tile", ["R34"]),
        ("/python3.12/site-packages/cupyx/scipy/ndimage/_measurements.py", "label", []),
    ],
)
def test_a_copy_within_a_library_is_the_program_s_only_if_it_creates_the_array(
    filename, name, expected
):
    recording = within(recorded(mesh()), filename, name)

    assert [each.rule for each in findings(recording, small=True) if each.rule == "R34"] == expected
