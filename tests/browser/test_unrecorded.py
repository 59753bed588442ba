"""A report about streams that were recorded in windows."""

import pytest

from tests.browser.test_report_links import open_at
from tests.unit.recording.test_budget import loop, recorded

pytestmark = pytest.mark.browser


def test_a_lane_tells_for_how_long_it_was_not_recorded(page, tmp_path):
    recording = recorded(loop, 400, budget="0.01%")
    open_at(page, recording, tmp_path)
    plot = page.locator("[data-pane=streams] canvas").first.bounding_box()
    stream = page.locator("[data-lane]").first.get_attribute("data-middle-px")

    page.mouse.move(plot["x"] + 30, plot["y"] + float(stream or 0))

    text = page.locator(".gpuviz-tooltip").inner_text()
    assert "of the recorded time shown" in text
    assert "not recorded for" in text
    assert "streams were recorded in" in page.locator("body").inner_text()
