"""The timeline without a mouse: focus, announcements and keys."""

import re

import pytest
from playwright.sync_api import Page

from gpuviz.recording import Recording
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import open_report, open_tab, plot

pytestmark = pytest.mark.browser

LANES, MOMENT_BELOW_LANES = 4, 5


@pytest.fixture
def streams() -> Recording:
    return make_stream_recording()


def selected(page: Page) -> str:
    return page.get_by_role("region", name="Selected").inner_text()


def spoken(page: Page) -> str:
    return page.locator(".gpuviz-unseen[role=status]").inner_text()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus, past the table of the source."""
    for _ in range(15):
        press(page, "Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(selector)


def test_a_whole_session_needs_no_mouse(page, streams, tmp_path):
    open_report(page, streams, tmp_path)

    press(page, "/")
    page.keyboard.type("smooth")
    press(page, "Enter", "Enter", "Shift+Enter")
    place = page.locator(".gpuviz-search__place").inner_text()
    press(page, "Escape")
    kernel = selected(page)
    tab_to(page, ".gpuviz-selected__table button")
    press(page, "Enter")
    block, said = selected(page), spoken(page)
    press(page, "Backspace")
    again = selected(page)
    press(page, "m")
    measured = page.get_by_role("region", name="Measured").inner_text()
    press(page, "Escape")

    assert re.fullmatch(r"1 of \d+", place)
    assert kernel.startswith("void smooth<float, 4>")
    assert block.startswith("Block of 16.0 MiB")
    assert said == "Selected: Block of 16.0 MiB (16,777,216 B); Launches that touched it: 7"
    assert again.startswith("void smooth<float, 4>")
    assert measured.startswith("Measured: 76.0 µs from ")
    assert selected(page).startswith("Nothing is selected.")


def test_the_cursor_sets_both_ends_of_a_span(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    measured = page.get_by_role("region", name="Measured")

    plot(page, LANES).focus()
    press(page, *["ArrowLeft"] * 10, "(", *["ArrowRight"] * 20, ")")

    length = streams.duration_ns * 0.2
    begin, end = (float(measured.get_attribute(f"data-{each}-ns") or 0) for each in ("from", "to"))
    assert begin == pytest.approx(streams.duration_ns * 0.4, abs=2)
    assert end - begin == pytest.approx(length, abs=2)


def test_the_arrow_keys_choose_a_lane_and_enter_what_is_in_it(page, streams, tmp_path):
    open_report(page, streams, tmp_path)

    plot(page, LANES).focus()
    press(page, "ArrowDown", "ArrowDown", "ArrowDown")
    lane = spoken(page)
    press(page, *["ArrowRight"] * 13, "Enter")
    copy = selected(page)
    press(page, "]")

    assert lane.startswith("upload, 6 spans shown, busy for ")
    assert copy.startswith("Copy host to device")
    assert selected(page).startswith("Copy host to device")
    assert selected(page) != copy


def test_the_arrow_keys_walk_through_the_blocks_and_enter_selects_one(page, streams, tmp_path):
    open_report(page, streams, tmp_path)

    open_tab(page, "moment")
    plot(page, MOMENT_BELOW_LANES).focus()
    press(page, "ArrowRight", "Enter")
    block = selected(page)
    press(page, "]")

    assert block.startswith("Block of 16.0 MiB")
    assert selected(page).startswith("Block of 16.0 MiB")
    assert selected(page) != block


def test_everything_that_can_be_used_shows_that_it_has_the_focus(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    open_tab(page, "kernels")
    page.locator("h1").click()
    rings = []

    for _ in range(45):
        press(page, "Tab")
        rings.append(
            page.evaluate(
                "() => { const style = getComputedStyle(document.activeElement);"
                "return [document.activeElement.getAttribute('aria-label') ||"
                " document.activeElement.textContent || document.activeElement.tagName,"
                " style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2]; }"
            )
        )

    assert [name for name, is_shown in rings if not is_shown] == []
    names = [name for name, _ in rings]
    assert {"Streams", "Kernels", "Copy as CSV"} <= set(names)
