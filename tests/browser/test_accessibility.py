"""The report by the rules of axe-core: names, roles, contrast."""

from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page

import gpuviz
from gpuviz.report.viewer import write_viewer
from tests.browser.test_report import open_page, open_report, open_tab

pytestmark = pytest.mark.browser

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
TABS = (
    "selection",
    "moment",
    "lines",
    "call-stacks",
    "kernels",
    "waits",
    "fragmentation",
    "findings",
    "what-if",
)
# What the keys lead to, one after the other.
STATES = {
    "kept span": ("m", "n", "a", "Enter", "Escape"),
    "help": ("?",),
    "search": ("Escape", "/", "g", "a", "u"),
}


def violations(page: Page) -> list[str]:
    """Return the rules that are violated, each with the elements that do."""
    found = page.evaluate("axe.run().then(found => found.violations)")
    return [f"{each['id']}: {[node['html'][:200] for node in each['nodes'][:3]]}" for each in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_tab_of_a_report_is_accessible(page, report_of, scheme):
    page.emulate_media(color_scheme=scheme)
    open_page(page, report_of(RECORDINGS / "image_pipeline.gpuviz"))
    page.evaluate(AXE)
    open_tab(page, "kernels").locator(".gpuviz-link").first.click()
    broken = {}

    for tab in (*TABS, "summary", "environment"):
        open_tab(page, tab)
        broken[tab] = violations(page)

    page.keyboard.press("Escape")
    for name, keys in STATES.items():
        for key in keys:
            page.keyboard.press(key)
        broken[name] = violations(page)

    assert broken == {state: [] for state in broken}


def test_a_report_on_a_phone_is_accessible(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 844})
    # A replay, which says so in a note.
    recording = gpuviz.replay(gpuviz.load(RECORDINGS / "fft_filter.gpuviz"))
    open_report(page, recording, tmp_path)
    assert page.locator(".gpuviz-label").is_visible()
    page.evaluate(AXE)

    of_report = violations(page)
    page.goto(write_viewer(tmp_path / "viewer.html").as_uri())
    page.evaluate(AXE)

    assert of_report == violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_comparison_is_accessible(page, tmp_path, scheme):
    before, after = (
        gpuviz.load(RECORDINGS / f"{each}.gpuviz") for each in ("fft_filter", "image_pipeline")
    )
    page.emulate_media(color_scheme=scheme)
    page.goto(gpuviz.diff(before, after).report(tmp_path / "diff.html").as_uri())
    page.wait_for_selector("html[data-gpuviz=ready]", state="attached")
    page.evaluate(AXE)

    for tab in ("Changes", "Lines", "Kernels"):
        page.get_by_role("tab", name=tab, exact=True).click()
        assert violations(page) == []
