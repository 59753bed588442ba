"""The section of a report about other settings of the allocator."""

import re
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


def cells(section):
    """Return the texts of the cells of each row."""
    rows = re.findall(r"<tr><td .*?</tr>", section, re.DOTALL)
    texts = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [[re.sub(r"<[^>]*>", " ", cell).strip() for cell in row] for row in texts]


def test_each_setting_has_a_row_with_its_numbers_and_its_line():
    recording = load(SHIPPED / "kmeans.gpuviz")
    rows = recording.what_if().to_pylist()
    shown = cells(what_if_section(recording, 0))

    assert [row[1] for row in shown[:-1]] == [
        format_bytes(row["peak_reserved"]) for row in rows[:-1]
    ]
    assert [row[4] for row in shown] == [format_bytes(row["peak_allocated"]) for row in rows]
    assert shown[0][0] == "as recorded"
    assert shown[1][0].split() == [
        "expandable_segments:True",
        "gpuviz.set_allocator_settings(&#34;expandable_segments:True&#34;)",
    ]
    assert shown[1][2] == "\N{MINUS SIGN}18.0 MiB (9.0 %)"
    assert [row[2] for row in shown[2:4]] == ["none", "none"]
    # The driver's own allocator has only bounds.
    assert " to " in shown[-1][1]
    assert (shown[-1][2], shown[-1][8]) == ("\N{EN DASH}", "\N{EN DASH}")


def test_the_best_setting_is_recommended_and_can_be_written():
    recording = load(SHIPPED / "kmeans.gpuviz")
    best = recommendation(recording, recording.what_if().to_pylist())
    section = what_if_section(recording, 0)

    assert best.settings == "expandable_segments:True"
    assert best.effect == "expandable_segments:True reserves 182 MiB instead of 200 MiB"
    assert f"{best.effect}: <code" in section
    assert "gpuviz what-if FILE &#34;expandable_segments:True&#34; -o" in section


def test_failed_requests_are_counted_with_their_time():
    shown = cells(what_if_section(make_recording(), 0))

    assert [row[6] for row in shown if row[0] == "as recorded"] == ["1, first at 400 µs"]


def test_a_report_has_a_section_for_each_device_with_memory():
    timeline = Timeline()
    timeline.kernel(0, 10)
    two = build_page(make_recording(devices=2))

    assert build_page(make_recording()).count('data-panel="what-if"') == 1
    assert two.count('data-panel="what-if"') == 1
    assert "What-if" not in build_page(timeline.recording()).partition("<script")[0]


def test_what_cannot_be_repeated_is_said():
    recording = make_recording()
    streams = recording.tables["streams"].slice(0, 0)
    unknown = Recording({**recording.tables, "streams": streams}, recording.manifest)

    section = what_if_section(unknown, 0)

    assert "The recorded allocations cannot be repeated: " in section
    assert "<table" not in section


def test_a_long_recording_says_how_to_get_the_section(monkeypatch):
    monkeypatch.setattr(store, "_MOST_REPLAYED", 1)
    recording = make_recording()
    before = what_if_section(recording, 0)
    recording.what_if()

    assert "<code" in before
    assert "<table" not in before
    assert "<table" in what_if_section(recording, 0)
