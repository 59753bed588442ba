"""The report and the page of ``gpuviz viewer`` in Firefox, from disk and offline."""

import re
import zlib
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuviz.report.viewer import write_viewer
from tests.browser.firefox import CONTROL, ESCAPE, Firefox, running_firefox
from tests.browser.test_report import KMEANS
from tests.browser.test_report_layout import TWO_FRAMES
from tests.browser.test_viewer import DROP

pytestmark = pytest.mark.browser

MEMORY = "[data-pane=memory] .gpuviz-plot"
LEGEND = "[data-pane=memory] .gpuviz-track__side"
SHOWN = ".gpuviz-controls__text"
FILTER = ".gpuviz-tools__filter"
READY = "document.documentElement.dataset.gpuvizTables === 'ready'"
COLOURS = """(selector) => {
    const { width, height } = document.querySelector(selector);
    const context = document.querySelector(selector).getContext("2d");
    return new Set(new Uint32Array(context.getImageData(0, 0, width, height).data.buffer)).size;
}"""
IS_LAST_LINE_OF_THE_LEGEND_ITSELF = """(selector) => {
    const legend = document.querySelector(selector);
    const { right, bottom } = legend.getBoundingClientRect();
    return document.elementFromPoint(right - 40, bottom - 9) === legend;
}"""


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with running_firefox(tmp_path_factory.mktemp("firefox")) as running:
        yield running


@pytest.fixture
def page(firefox: Firefox, report_of) -> Iterator[Firefox]:
    """Yield the report of a recording; console messages and exceptions fail the test."""
    firefox.complaints.clear()
    firefox.open(report_of(KMEANS))
    firefox.wait_for(READY)
    firefox.evaluate(TWO_FRAMES)
    yield firefox
    assert firefox.complaints == []


def widths_of_pictures(pdf: bytes) -> set[int]:
    """Return the widths of the pictures on the pages of a PDF, in points; small ones are keys."""
    widths = set()
    for packed in re.findall(rb"(?<=stream\n).*?(?=endstream)", pdf, re.DOTALL):
        try:
            drawn = zlib.decompressobj().decompress(packed)
        except zlib.error:
            continue
        placed = re.findall(rb"([\d.]+) 0 0 -[\d.]+ [\d.]+ [\d.]+ cm\s+(?:/\w+ gs )?/\w+ Do", drawn)
        widths |= {round(float(width)) for width in placed}
    return {width for width in widths if width > 72}


def test_a_report_is_drawn_and_its_tables_are_filled(page):
    peak = page.text(".gpuviz-headline__figure")
    colours = page.evaluate(COLOURS, f"{MEMORY} canvas")
    line = page.text("[data-panel=lines] tbody tr")

    assert peak.startswith("Peak 161 MiB of 79.2 GiB")
    assert colours > 8
    assert "kmeans.py:76" in line
    assert "68.0 MiB" in line


def test_a_drag_selects_a_span_the_wheel_zooms_and_keys_return(page):
    page.drag(page.point(MEMORY, 0.4), page.point(MEMORY, 0.6))
    measured = page.text(".gpuviz-drawer__top")
    page.press(ESCAPE)
    page.turn_wheel(page.point(MEMORY), -114)
    page.wait_for(f"!document.querySelector('{SHOWN}').innerText.startsWith('all')")
    zoomed = page.text(SHOWN)
    page.press("0")
    page.wait_for(f"document.querySelector('{SHOWN}').innerText.startsWith('all')")

    assert measured.startswith("Measured: 4")
    assert re.fullmatch(r"15\.\d ms to 195\.\d ms of 214 ms shown", zoomed)


def test_what_is_below_the_pointer_is_said(page):
    page.move(page.point(MEMORY, 0.5, 0.7))
    page.wait_for("document.querySelector('.gpuviz-tooltip:not([hidden])')?.innerText")

    assert "MiB allocated" in page.text(".gpuviz-tooltip")


def test_a_legend_says_that_more_follows(page):
    before = page.evaluate(IS_LAST_LINE_OF_THE_LEGEND_ITSELF, LEGEND)
    page.evaluate("(each) => document.querySelector(each).scrollTo(0, 1e6)", LEGEND)
    at_end = page.evaluate(IS_LAST_LINE_OF_THE_LEGEND_ITSELF, LEGEND)

    assert (before, at_end) == (True, False)


def test_a_table_is_copied_as_csv(page):
    page.click("[aria-label='Copy as CSV']")
    page.click(FILTER)
    page.press(CONTROL, "v")

    page.wait_for(f"document.querySelector('{FILTER}').value")
    pasted = page.evaluate("(each) => document.querySelector(each).value", FILTER)

    assert str(pasted).startswith('"Line","At the peak","Allocated"')


def test_charts_are_printed_as_wide_as_the_page(page):
    [width] = widths_of_pictures(page.print())

    assert 500 < width < 612


def test_a_recording_that_is_dropped_on_the_viewer_is_shown(firefox, tmp_path: Path):
    firefox.complaints.clear()
    firefox.open(write_viewer(tmp_path / "viewer.html"))
    firefox.evaluate(DROP, [b64encode(KMEANS.read_bytes()).decode(), "kmeans.gpuviz"])
    firefox.wait_for(READY)

    assert firefox.text("h1") == "kmeans.gpuviz"
    assert firefox.text(".gpuviz-overview__text").startswith("NVIDIA H100 80GB HBM3 · 214 ms")
    assert firefox.complaints == []
