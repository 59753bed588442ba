"""The section of a report about other settings of the allocator."""

from pathlib import Path

import gpuviz
from gpuviz.analysis.recommendation import recommendation
from gpuviz.conclusions import store
from gpuviz.quantities import format_bytes
from gpuviz.recording import Recording, load
from gpuviz.report.page import build_page
from gpuviz.report.what_if import what_if_section
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import make_recording

SHIPPED = Path(gpuviz.__file__).parent / "commands" / "recordings"


def cells(recording):
    """Return the texts of the cells of each row."""
    (table,) = (part for part in what_if_section(recording, 0).parts if part.kind == "table")
    return [[cell.text for cell in row.cells] for row in table.rows]


def sentences(recording):
    """Return what the section says beside its table."""
    parts = what_if_section(recording, 0).parts
    return [part.rows[0].cells[0].text for part in parts if part.kind != "table"]


def test_each_setting_has_a_row_with_its_numbers_and_its_line():
    recording = load(SHIPPED / "kmeans.gpuviz")
    rows = recording.what_if().to_pylist()
    shown = cells(recording)

    assert [row[1] for row in shown[:-1]] == [
        format_bytes(row["peak_reserved"]) for row in rows[:-1]
    ]
    assert [row[3] for row in shown] == [format_bytes(row["peak_allocated"]) for row in rows]
    assert shown[0][0] == "as recorded"
    assert shown[1][0].split() == [
        "expandable_segments:True",
        '`gpuviz.set_allocator_settings("expandable_segments:True")`',
    ]
    assert shown[1][2] == "\N{MINUS SIGN}18.0 MiB (9.0 %)"
    assert [row[2] for row in shown[2:4]] == ["none", "none"]
    # The driver's own allocator has only bounds.
    assert " to " in shown[-1][1]
    assert (shown[-1][2], shown[-1][7]) == ("\N{EN DASH}", "\N{EN DASH}")


def test_the_best_setting_is_recommended_and_can_be_written():
    recording = load(SHIPPED / "kmeans.gpuviz")
    best = recommendation(recording, recording.what_if().to_pylist())
    first, *_, last = sentences(recording)

    assert best.settings == "expandable_segments:True"
    assert best.effect == "expandable_segments:True reserves 182 MiB instead of 200 MiB"
    assert first == f"{best.effect}: `{best.line}`"
    assert '`gpuviz what-if FILE "expandable_segments:True" -o' in last


def test_failed_requests_are_counted_with_their_time():
    shown = cells(make_recording())

    assert [row[5] for row in shown if row[0] == "as recorded"] == ["1, first at 400 µs"]


def test_a_report_has_a_section_for_each_device_with_memory():
    timeline = Timeline()
    timeline.kernel(0, 10)
    two = build_page(make_recording(devices=2))

    assert build_page(make_recording()).count('id="what-if-0"') == 1
    assert two.count("<h3>What-if</h3>") == 1
    assert "What-if" not in build_page(timeline.recording()).partition("<script")[0]


def test_what_cannot_be_repeated_is_said():
    recording = make_recording()
    streams = recording.tables["streams"].slice(0, 0)
    unknown = Recording({**recording.tables, "streams": streams}, recording.manifest)

    (part,) = what_if_section(unknown, 0).parts

    assert "The recorded allocations cannot be repeated: " in part.rows[0].cells[0].text


def test_a_long_recording_says_how_to_get_the_section(monkeypatch):
    monkeypatch.setattr(store, "_MOST_REPLAYED", 1)
    recording = make_recording()
    (part,) = what_if_section(recording, 0).parts
    recording.what_if()

    assert "`gpuviz what-if FILE`" in part.rows[0].cells[0].text
    assert len(cells(recording)) > 1
