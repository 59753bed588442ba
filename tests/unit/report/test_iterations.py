"""The iterations of a report."""

from pathlib import Path

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.commands.workloads import WORKLOADS
from gpuviz.conclusions.recording_numbers import figures
from gpuviz.present.section import Section
from gpuviz.quantities import format_bytes, format_count, format_duration
from gpuviz.report.iterations import (
    iterations_section,
    iterations_text,
    median_iteration,
)
from gpuviz.report.page import build_page
from tests.unit.analysis.test_iterations import program
from tests.unit.report.recordings import make_recording

FOLDER = Path(gpuviz.__file__).parent / "commands" / "recordings"
# The demo's programs; they repeat themselves.
SHIPPED = [FOLDER / f"{name}.gpuviz" for name in WORKLOADS]
COLUMNS = {
    "duration_ns": format_duration,
    "peak_bytes": format_bytes,
    "busy_ns": format_duration,
    "wait_ns": format_duration,
    "kernel_ns": format_duration,
    "kernel_count": format_count,
    "copy_ns": format_duration,
    "copy_bytes": format_bytes,
}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_table_and_the_band_are_those_of_the_recording(path):
    recording = gpuviz.load(path)
    rows = recording.iterations().to_pylist()

    (table,) = (part for part in iterations_section(recording, 0).parts if part.kind == "table")

    numbers = [row.cells[0].value for row in table.rows]
    middle = median_iteration(recording.iterations())
    slowest = sorted(rows, key=lambda row: -row["duration_ns"])
    assert numbers[:2] == [1, middle["number"]]
    expected = [row["number"] for row in slowest if row["number"] not in numbers[:2]]
    assert numbers[2:] == expected[:48]
    for number, shown in zip(numbers, table.rows, strict=True):
        row = rows[number - 1]
        assert shown.window == (row["start"], row["end"])
        texts = [form(row[name]) if row[name] else "" for name, form in COLUMNS.items()]
        assert [cell.text for cell in shown.cells[1:]] == texts


def test_parts_of_a_step_that_it_does_not_have_are_left_out():
    found = gpuviz.load(FOLDER / "kmeans.gpuviz").iterations()
    place = found.schema.get_field_index("forward_ns")
    forward = found.set_column(place, found.field(place), found["kernel_ns"])

    without = " ".join(iterations_text(found))
    phases = next(each for each in iterations_text(forward) if "forward" in each)

    assert "forward" not in without
    assert phases.startswith("Of its kernel time, forward ")
    assert "backward" not in phases
    assert "optimizer" not in phases


def test_a_part_of_some_steps_has_a_column_though_the_median_one_lacks_it(monkeypatch):
    """As the optimizer's, which runs in each fourth step where gradients are accumulated."""
    recording = gpuviz.load(FOLDER / "kmeans.gpuviz")
    found = recording.iterations()
    place = found.schema.get_field_index("optimizer_ns")
    of_first = [1000, *[0] * (found.num_rows - 1)]
    changed = found.set_column(place, found.field(place), pa.array(of_first, pa.int64()))
    monkeypatch.setattr(type(recording), "iterations", lambda *_: changed)

    (table,) = (part for part in iterations_section(recording, 0).parts if part.kind == "table")

    assert table.headings[-1] == "Optimizer"
    assert [row.cells[-1].text for row in table.rows[:2]] == ["1.00 µs", ""]


def test_the_count_in_a_tab_has_separators():
    assert Section("iterations", "Iterations", (), 9475).tab == "Iterations 9,475"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_headline_shows_the_median_iteration(path):
    recording = gpuviz.load(path)
    found = recording.iterations()

    (number,) = (each for each in figures(recording, 0) if each.name == "Iterations")

    middle = median_iteration(found)
    shorter = sum(row < middle["duration_ns"] for row in found["duration_ns"].to_pylist())
    longer = sum(row > middle["duration_ns"] for row in found["duration_ns"].to_pylist())
    assert shorter <= found.num_rows / 2 >= longer
    assert number.window == (middle["start"], middle["end"])
    duration = format_duration(middle["duration_ns"])
    assert number.value == f"{found.num_rows:,} \N{MULTIPLICATION SIGN} {duration}"


def test_the_first_iteration_is_compared_with_the_others():
    ranges = [("step", 0, 1000, 1), *(("step", 100 * n, 100 * n + 50, 1) for n in range(10, 30))]

    text = iterations_text(program([1, 2] * 20, ranges).iterations())

    count, median, first = text
    assert count == "21 iterations: the ranges `step`."
    assert median == (
        "The median one, number 12, takes 50 ns (50 ns to 1.00 µs in all), with a peak of 0 B and "
        "the GPU busy for 60 % of it."
    )
    assert first == (
        "The first one takes 1.00 µs, 20.0 times as long as the median of the others (50 ns)."
    )


def test_iterations_of_equal_length_are_not_compared():
    ranges = [("<step>", 100 * n, 100 * n + 95, 1) for n in range(30)]
    recording = program([1, 2] * 20, ranges)

    assert iterations_text(recording.iterations())[-1] == (
        "The first one takes as long as the others."
    )
    assert "&lt;step&gt;" in build_page(recording)


def test_a_program_without_iterations_shows_none():
    recording = make_recording()

    assert iterations_section(recording, 0) is None
    assert "Iterations" not in build_page(recording).partition("<script")[0]
