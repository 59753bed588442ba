"""The layout of the report: long names, narrow windows, forced colours, rotated text."""

import pyarrow as pa
import pytest
from playwright.sync_api import Page

from gpuviz.recording.recording import Recording
from gpuviz.recording.tables import schemas
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import open_report

pytestmark = pytest.mark.browser

RIGHT_TO_LEFT_OVERRIDE = "\N{RIGHT-TO-LEFT OVERRIDE}"
TURNED = f"{RIGHT_TO_LEFT_OVERRIDE}gnp.exe"


def overflow(page: Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("name", ["x" * 10_000, "ab " * 3333], ids=["one word", "many words"])
def test_a_name_of_10_000_characters_pushes_nothing_aside(page, tmp_path, name):
    open_report(page, make_stream_recording(name, batches=3), tmp_path)

    assert overflow(page) == 0
    assert page.locator("h1").bounding_box()["height"] < 150
    assert page.locator("[data-part=kernels]").bounding_box()["y"] < 6000


def test_a_narrow_window_leaves_room_for_lines_and_numbers(page, tmp_path):
    page.set_viewport_size({"width": 400, "height": 900})
    open_report(page, make_stream_recording(), tmp_path)

    assert overflow(page) == 0
    line = page.locator("[data-part=call-sites-of-allocations] td").first.bounding_box()
    assert line["width"] >= 200
    total = page.locator("[data-part=kernels] tbody td").nth(1).bounding_box()
    assert total["x"] + total["width"] <= 400
    finding = page.locator(".gpuviz-finding__lines .gpuviz-place").first.bounding_box()
    assert finding["width"] >= 100


def test_bars_keep_their_colours_where_the_system_chooses_colours(page, tmp_path):
    page.emulate_media(forced_colors="active")
    open_report(page, make_stream_recording(), tmp_path)

    colours = page.locator(".gpuviz-parts__part, .gpuviz-sizes__bar").evaluate_all(
        "parts => parts.map(part => getComputedStyle(part).backgroundColor)"
    )

    assert len(set(colours)) >= 5
    assert "rgba(0, 0, 0, 0)" not in colours


def test_a_name_that_turns_text_around_turns_no_number_beside_it(page, tmp_path):
    open_report(page, make_stream_recording(TURNED), tmp_path)

    # The drawn position of the last words of the sentence about the moment.
    words = page.locator(".gpuviz-moment").evaluate(
        """text => {
            const node = text.firstChild;
            const left = (word) => {
                const range = document.createRange();
                const from = node.data.lastIndexOf(word);
                range.setStart(node, from);
                range.setEnd(node, from + word.length);
                return range.getBoundingClientRect().left;
            };
            return [left("blocks in"), left(" segment;")];
        }"""
    )

    assert words[0] < words[1]


def test_the_keyboard_goes_where_the_navigation_leads(page, tmp_path):
    open_report(page, make_stream_recording(), tmp_path)

    page.get_by_role("button", name="Kernels", exact=True).click()
    page.keyboard.press("Tab")

    focused = page.evaluate("document.activeElement.closest('[data-part]').dataset.part")
    assert focused == "kernels"


def test_what_is_used_of_the_device_is_told_with_the_time_of_its_sample(page, recording, tmp_path):
    samples = [
        {"time": time, "device": 0, "used": used} for time, used in ((50_000, 0), (500_000, 99))
    ]
    used = pa.Table.from_pylist(samples, schema=schemas()["device_memory"])
    sampled = Recording(recording.tables | {"device_memory": used}, recording.manifest)

    open_report(page, sampled, tmp_path)

    text = page.locator("[data-level=used]").inner_text()
    assert " ".join(text.split()) == "0 B 0 B sampled at 50 µs"
