"""The track of memory outside the recorded allocators in a report."""

from pathlib import Path

import pytest

import gpuviz
from tests.browser.test_report_links import open_at

pytestmark = pytest.mark.browser

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
GIB = 1 << 30


def test_the_track_has_what_libraries_allocated_and_the_rest_at_the_cursor(page, tmp_path):
    recording = gpuviz.load(RECORDINGS / "one_pool_separate.gpuviz")
    # The last sample is at the very end.
    sample = recording.other_memory(by="time").to_pylist()[-2]
    open_at(page, recording, tmp_path)
    track = page.locator("[data-pane=other]")
    plot = track.locator("canvas").first.bounding_box()

    page.mouse.move(plot["x"] + plot["width"] - 20, plot["y"] + plot["height"] / 2)

    assert sample["libraries"] > GIB
    libraries, rest = track.locator("[data-level]").all()
    assert libraries.get_attribute("title") == f"{sample['libraries']:,} B"
    assert rest.get_attribute("title") == f"{sample['rest']:,} B"
    names = [pane.get_attribute("data-pane") for pane in page.locator("[data-pane]").all()]
    assert names[names.index("other") + 1] == "blocks"
    assert "by libraries" in page.locator(".gpuviz-tooltip").inner_text()


def test_a_recording_in_which_no_library_allocated_has_no_such_track(page, tmp_path):
    open_at(page, gpuviz.load(RECORDINGS / "kmeans.gpuviz"), tmp_path)

    assert page.locator("[data-pane=memory]").is_visible()
    assert page.locator("[data-pane=other]").count() == 0
