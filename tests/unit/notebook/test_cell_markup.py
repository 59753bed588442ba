"""Text, HTML and picture of cell results of known recordings, without a shell."""

import re
from base64 import b64decode
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.notebook.cell_markup import LARGEST, as_html, as_text
from gpuviz.notebook.cell_result import cell_result
from gpuviz.notebook.picture import _COLUMNS, _column_maxima, _covered, picture, svg
from gpuviz.ownership.array_names import ArrayNames
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import make_recording

HOSTILE = 'a<img src=x onerror="alert(1)">&amp;'


def result_of(recording, end=600_000, names=None):
    arrays = ArrayNames(names or {})
    return cell_result(recording, (0, end), streams=True, names=arrays)


def busy_timeline(streams=3, activities=200, name="stream"):
    timeline = Timeline()
    for number in range(activities):
        stream = 1 + number % streams
        timeline.kernel(number * 100, number * 100 + 60, stream=stream)
        timeline.copy(number * 100 + 30, number * 100 + 90, bytes=10, stream=stream)
        timeline.call(number * 100, number * 100 + 5, "cuStreamSynchronize", line=number)
    for stream in range(1, streams + 1):
        row = {"id": stream, "name": f"{name} {stream}", "kind": "non_blocking"}
        timeline.add("streams", row)
    return timeline.recording()


def svg_of(recording, end):
    """Return the SVG in the picture of a recording."""
    source = re.search(r'src="data:image/svg\+xml;base64,(.*?)"', picture(recording, 0, end))[1]
    return ET.fromstring(b64decode(source))  # noqa: S314 - our own


def test_the_text_says_the_same_as_the_html():
    result = result_of(make_recording())
    html = re.sub(r"<style>.*?</style>", "", as_html(result), flags=re.DOTALL)

    words = re.sub(r"<[^>]*>", " ", html)
    for number in ("12.0 MiB", "Still allocated", "Out of memory", "4.00 MiB"):
        assert number in as_text(result)
        assert number in words


def test_a_line_without_source_has_no_empty_code():
    html = as_html(result_of(busy_timeline()))

    assert "<code></code>" not in html
    assert "and 196 more lines</span></div>" in html


def test_of_a_recording_without_activities_no_cause_is_made_up():
    result = cell_result(make_recording(), (0, 1), streams=False, names=ArrayNames({}))

    assert "unknown  streams were not recorded" in as_text(result)


def test_who_holds_memory_of_another_process_is_not_claimed():
    shown = {
        known: as_text(
            cell_result(make_recording(), (0, 1), streams=False, names=names, subject="recording")
        )
        for known, names in ((True, ArrayNames({})), (False, None))
    }

    assert "4.00 MiB not held by any variable of the notebook" in shown[True]
    assert "4.00 MiB allocated by" in shown[False]
    assert "variable" not in shown[False]


def test_memory_from_before_is_not_counted_as_left():
    [device] = result_of(make_recording()).devices

    assert device.allocated_before == 2 << 20
    assert [(held.bytes, held.count) for held in device.held] == [(4 << 20, 1)]
    assert device.summary.allocated_peak == 12 << 20


def test_texts_of_the_program_cannot_become_markup():
    html = as_html(result_of(make_recording(text=HOSTILE, devices=2)))
    drawn = svg(busy_timeline(name=HOSTILE), 0, 20_000)

    assert html.count("<img") == html.count('<img class="gpuviz-picture" alt="Memory and') == 1
    assert "<img" not in drawn
    assert "&lt;img" in html
    assert "&lt;img" in drawn


def test_a_result_is_bounded_however_much_there_was():
    result = result_of(busy_timeline(streams=40, activities=5000), 500_000)

    assert len(as_html(result).encode()) <= LARGEST
    assert "and 4,996 more lines" in as_text(result)
    assert "32 more streams not shown" in svg(result.recording, 0, 500_000)


def test_a_picture_has_a_lane_for_each_stream_with_what_ran_in_it():
    drawn = svg_of(busy_timeline(), 20_000)
    labels = [each.text for each in drawn.iter() if each.tag.endswith("text")]
    classes = [each.get("class") for each in drawn.iter() if each.tag.endswith("path")]

    assert [label for label in labels if label.startswith("stream ")] == [
        "stream 1",
        "stream 2",
        "stream 3",
    ]
    assert classes.count("kernel") == 3
    assert classes.count("copy") == 3
    assert drawn.get("role") == "img"
    assert drawn.get("aria-label") == "Memory and streams over 20.0 µs"


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5)])
def test_a_window_without_length_has_no_picture(start, end):
    assert picture(make_recording(), start, end) == ""


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 10**12)), max_size=40),
    st.integers(0, 3000),
    st.integers(1, 3000),
)
def test_no_peak_is_lost_between_columns(rows, start, length):
    rows.sort(key=lambda row: row[0])
    times, values = (np.array([row[n] for row in rows], np.int64) for n in (0, 1))
    if not rows:
        return
    found = _column_maxima(times, values, start, start + length)

    for column in (0, _COLUMNS // 2, _COLUMNS - 1):
        before = [value for time, value in rows if (time - start) * _COLUMNS <= length * column]
        inside = [
            value
            for time, value in rows
            if start < time <= start + length
            and min((time - start) * _COLUMNS // length, _COLUMNS - 1) == column
        ]
        assert found[column] == max([*before[-1:], *inside], default=0)


@given(st.lists(st.tuples(st.integers(0, _COLUMNS - 1), st.integers(0, 50)), max_size=20))
def test_covered_columns_are_those_that_some_interval_touches(intervals):
    first = np.array([begin for begin, _ in intervals], np.int64)
    last = np.array([min(begin + n, _COLUMNS - 1) for begin, n in intervals], np.int64)
    expected = {c for a, b in zip(first, last, strict=True) for c in range(a, b + 1)}

    runs = _covered(first, last).tolist()

    assert {c for begin, length in runs for c in range(begin, begin + length)} == expected
    assert all(a + n < b for (a, n), (b, _) in pairwise(runs))


def test_long_names_of_streams_keep_the_ends_by_which_they_differ():
    timeline = busy_timeline(streams=2, name="stream made at In [12]:3 #")
    names = [each.text for each in svg_of(timeline, 10_000).iter() if "…" in (each.text or "")]

    assert names == ["stream mad… [12]:3 # 1", "stream mad… [12]:3 # 2"]


def test_a_cell_that_allocates_nothing_claims_nothing_about_its_allocations():
    text = as_text(result_of(busy_timeline()))

    assert "Allocations" in text
    assert "reserved memory" not in text
    assert "were freed" not in text
