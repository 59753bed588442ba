"""The lines of a report."""

import re
from pathlib import Path

import pytest

import gpuviz
from gpuviz.report.lines import lines_table
from tests.unit.report.recordings import make_recording

SHIPPED = sorted((Path(gpuviz.__file__).parent / "commands" / "recordings").glob("*.gpuviz"))
COLUMNS = (
    "live_bytes",
    "total_bytes",
    "kernel_ns",
    "kernel_count",
    "copy_ns",
    "wait_ns",
    "idle_ns",
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_lines_are_those_of_the_recording(path):
    recording = gpuviz.load(path)
    rows = recording.lines(0).to_pylist()

    shown = [
        re.findall('data-sort="([^"]*)"', row)
        for row in lines_table(recording, 0).split("<tr>")[2:]
    ]

    assert [cells[1:] for cells in shown] == [[str(row[name]) for name in COLUMNS] for row in rows]
    assert len(shown) > 3


def test_a_device_without_lines_has_no_table():
    assert lines_table(make_recording([], initial_events=0), 0) == ""
