"""The Plotly charts of the dashboard in a real JupyterLab."""

import pytest
from playwright.sync_api import Browser

from tests.browser.lab import (
    command,
    note_complaints,
    open_notebook,
    run_cell,
    running_lab,
    wait_until_idle,
    wait_until_run,
    write_notebook,
)

pytestmark = pytest.mark.browser

CELLS = [
    "%load_ext gpuviz\nimport gpuviz\ngpu = gpuviz.SimulatedGPU(memory=1 << 30)",
    "%gpuviz start --simulated gpu",
    "x = gpu.empty(64 << 20)\ngpu.copy_to_device(x)\ngpu.synchronize()",
    "%gpuviz stop",
    "%gpuviz dashboard",
    "%%gpuviz --simulated gpu\ny = gpu.empty(32 << 20)",
]
PLOT = ".js-plotly-plot"
TITLE = f"{PLOT} .gtitle"
FITS = f"""() => {{
    const plot = document.querySelector("{PLOT}");
    return plot.querySelector("svg").clientWidth === plot.parentElement.clientWidth;
}}"""
WIDTH = f"""document.querySelector("{PLOT} svg").clientWidth"""


def test_charts_are_as_wide_as_their_place_and_outlive_the_next_recording(
    chromium: Browser, tmp_path
):
    write_notebook(tmp_path, "charts.ipynb", CELLS)
    with running_lab(tmp_path) as url:
        page = chromium.new_context(viewport={"width": 1200, "height": 1000}).new_page()
        complaints = note_complaints(page)
        open_notebook(page, url, "charts.ipynb")
        for cell in range(5):
            run_cell(page, cell)
            wait_until_run(page, cell)
        page.get_by_role("button", name="Charts", exact=True).click()
        page.locator(TITLE).wait_for(timeout=60_000)
        choice = page.get_by_label("Chart", exact=True)
        for name in ("Copies by direction", "Free blocks by size", "Lines by memory at the peak"):
            choice.select_option(name)
        page.get_by_text("Memory at the peak by line").wait_for()
        page.wait_for_function(FITS)
        beside_the_files = page.evaluate(WIDTH)
        command(page, "application:toggle-left-area")
        page.wait_for_function(f"{WIDTH} > {beside_the_files}")
        page.wait_for_function(FITS)
        plot = page.locator(PLOT).element_handle()
        run_cell(page, 5)
        wait_until_run(page, 5)
        wait_until_idle(page)
        page.locator(PLOT).get_by_text("y = gpu.empty(32 << 20)").wait_for()
        assert plot.is_visible()
        # What lived before, in a segment of its own, is not counted as an event.
        counts = page.locator(".gpuviz-live__counts")
        # What is out of sight is drawn when it comes into sight.
        counts.scroll_into_view_if_needed()
        counts.get_by_text("2 memory events").wait_for()
        page.context.close()
    assert complaints == []
