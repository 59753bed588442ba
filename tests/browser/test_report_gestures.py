"""Trackpads, touch screens and keys in the timeline, in addition to clicks, drags and wheels."""

import re

import pytest
from playwright.sync_api import Page

from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import LEVELS, open_report, open_tab, plot, point

pytestmark = pytest.mark.browser

LANES = 4


def shown(page: Page) -> str:
    return page.locator(".gpuviz-controls__text").inner_text()


def part_shown(page: Page) -> float:
    """Return the number of the 600 µs shown."""
    found = re.fullmatch(r"([\d.]+) µs to ([\d.]+) µs of 600 µs shown", shown(page))
    return float(found[2]) - float(found[1])


def test_a_pinch_zooms_as_fast_as_fingers_move_and_never_zooms_the_page(page, recording, tmp_path):
    open_report(page, recording, tmp_path)
    page.mouse.move(*point(page, LEVELS, 0.5, 0.5))

    page.evaluate(
        "() => { window.taken = [];"
        " onwheel = (event) => { window.taken.push(event.defaultPrevented); }; }"
    )
    page.keyboard.down("Control")
    page.mouse.wheel(0, 40)
    page.wait_for_function("window.taken.length === 1")
    whole = shown(page)
    page.mouse.wheel(0, -40)
    page.wait_for_function("window.taken.length === 2")
    page.keyboard.up("Control")

    assert whole == "all 600 µs shown"
    assert page.evaluate("window.taken") == [True, True]
    assert part_shown(page) == pytest.approx(600 / 2.718**0.6, rel=0.02)


def test_a_drag_that_the_browser_takes_over_marks_nothing_later(page, recording, tmp_path):
    open_report(page, recording, tmp_path)

    page.keyboard.down("Control")
    page.mouse.move(*point(page, LEVELS, 0.25, 0.5))
    page.mouse.down()
    plot(page, LEVELS).dispatch_event("pointercancel")
    page.mouse.move(*point(page, LEVELS, 0.75, 0.5))
    page.mouse.up()
    page.keyboard.up("Control")

    assert shown(page) == "all 600 µs shown"


def test_escape_takes_the_tooltip_away(page, recording, tmp_path):
    open_report(page, recording, tmp_path)
    page.mouse.move(*point(page, LEVELS + 1, 200 / 600, 0.65))
    page.locator(".gpuviz-tooltip").wait_for()

    page.keyboard.press("Escape")

    assert page.locator(".gpuviz-tooltip").is_hidden()


def test_buttons_with_a_sign_have_a_name_in_words(page, recording, tmp_path):
    open_report(page, recording, tmp_path)

    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Later", exact=False).click()
    later = shown(page)
    page.get_by_role("button", name="Keys and gestures").click()

    assert later.startswith("300.0 µs to ")
    assert page.get_by_role("dialog", name="Keys and gestures").is_visible()


@pytest.mark.parametrize("width", [600, 1440])
def test_the_keys_and_gestures_are_readable_to_their_end(page, recording, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_report(page, recording, tmp_path)

    page.get_by_role("button", name="Keys and gestures").click()
    dialog = page.get_by_role("dialog", name="Keys and gestures")
    cut = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(e => e.textContent)"

    assert dialog.locator("dd").evaluate_all(cut) == []
    assert dialog.evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")
    assert "return to all lines" in dialog.inner_text()


def test_the_source_of_a_launch_stands_under_its_line(page, tmp_path):
    open_report(page, make_stream_recording(), tmp_path)

    open_tab(page, "kernels").locator(".gpuviz-link").first.click()

    facts = page.locator(".gpuviz-selected__facts").inner_text().splitlines()
    assert facts[-3:] == ["launched", "pipeline.py:12 work", "y = smooth(x)"]


def test_search_counts_one_block_as_one(page, recording, tmp_path):
    open_report(page, recording, tmp_path)

    page.get_by_role("searchbox").fill("main.py:34")

    hits = page.locator(".gpuviz-search__hit").all_inner_texts()
    assert [hit.splitlines()[-1] for hit in hits if hit.startswith("main")] == [
        "allocated 1 block, 4.00 MiB in all"
    ]


def test_the_hits_of_a_search_make_way_and_come_back(page, tmp_path):
    open_report(page, make_stream_recording(), tmp_path)
    hits = page.locator(".gpuviz-search__hit")

    page.get_by_role("searchbox").fill("smooth")
    found = hits.count()
    title = hits.first.get_attribute("title")
    page.get_by_role("heading", level=1).click()
    gone = hits.count()
    page.get_by_role("searchbox").click()
    again = hits.count()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    assert (found, gone, again, hits.count()) == (9, 0, 9, 0)
    assert title == "Select and zoom to void smooth<float, 4>(float const*, float*, int)"
    assert page.locator(".gpuviz-selected__title").inner_text().startswith("void smooth")
