"""The live dashboard in a real JupyterLab and in a real Notebook 7, in a real browser."""

import re
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import gpuviz
from tests.browser.lab import (
    LAB,
    NOTEBOOK,
    Application,
    open_notebook,
    prompt,
    run,
    run_cell,
    running_lab,
    until,
    wait_until_run,
    watched_page,
    write_notebook,
)
from tests.browser.test_live import wait_for_more, wait_for_state, window
from tests.browser.test_report import MAP, TRAINING, point
from tests.browser.widget_page import kernel, show_widget
from tests.patience import wait_until

pytestmark = pytest.mark.browser

LOAD, SHOW, START, PROGRAM, STOP = range(5)
CELLS = [
    """
%load_ext gpuviz
import gpuviz
from pathlib import Path
gpu = gpuviz.SimulatedGPU(memory=4 << 30)
""",
    "%gpuviz dashboard",
    "%gpuviz start --simulated gpu",
    """
weights = gpu.empty(1 << 30)
gpu.launch("fill", writes=[weights], duration=1e-3)
kept = []
while not Path("END").exists():
    kept = [*kept[-60:], gpu.empty(32 << 20)]
    scratch = gpu.empty(96 << 20)
    gpu.copy_to_device(scratch, pinned=True)
    gpu.launch("scale", reads=[scratch], writes=[kept[-1]], duration=20e-3)
    gpu.synchronize()
    del scratch
    gpu.work_on_host(0.1)
""",
    "%gpuviz stop",
]


@pytest.fixture(params=[LAB, NOTEBOOK], ids=["lab", "notebook"])
def notebook(
    chromium: Browser, tmp_path: Path, end: Path, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """Yield an open notebook; an error in the browser's console fails the test."""
    application: Application = request.param
    write_notebook(tmp_path, "live.ipynb", [cell.replace("END", str(end)) for cell in CELLS])
    with (
        running_lab(tmp_path, application=application) as url,
        watched_page(chromium, 1100) as page,
    ):
        open_notebook(page, url, "live.ipynb", application)
        yield page


def button(page: Page, name: str) -> Locator:
    return page.locator(".gpuviz-live").get_by_role("button", name=name, exact=True)


def allocated(page: Page) -> str:
    return page.locator(".gpuviz-numbers__value").first.inner_text()


def select_a_block(page: Page) -> str:
    """Click on the segment map until a block in use is selected, and return its description."""
    selected = page.locator(".gpuviz-selected")
    heights = cycle((0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3))

    def is_hit() -> bool:
        # In the middle of the window the program may not have allocated anything yet.
        page.mouse.click(*point(page, MAP, 0.95, next(heights)))
        page.evaluate("new Promise(requestAnimationFrame)")
        return "not freed" in selected.inner_text()

    # A busy machine may draw what was clicked only after the next click; the program goes on.
    until(page, is_hit)
    # Its call stack and its launches may arrive with a later batch than the block.
    expect(selected).to_contain_text("In [4]:")
    expect(selected).to_contain_text(re.compile("Launches that touched it: [1-9]"))
    return selected.inner_text()


def test_the_dashboard_moves_is_zoomed_and_finds_a_line_while_a_cell_runs(notebook, end):
    for cell in (LOAD, SHOW, START):
        run(notebook, cell)
    wait_for_state(notebook, "Recording")
    started = time.monotonic()
    run_cell(notebook, PROGRAM)
    notebook.locator(".gpuviz-plot").nth(MAP).wait_for()
    until_allocated = time.monotonic() - started
    pictures = set()
    for _ in range(3):
        wait_for_more(notebook)
        pictures.add(notebook.locator(".gpuviz-plot").nth(MAP).screenshot())
    # "Zoom in" keeps the middle half of the recording, and the program began to run late in it.
    until(notebook, lambda: time.monotonic() > started + 2 * until_allocated)
    before = allocated(notebook)
    expect(notebook.locator(".gpuviz-numbers__value").first).not_to_have_text(before)
    notebook.get_by_role("button", name="Zoom in").first.click()
    zoomed = window(notebook)
    story = select_a_block(notebook)
    expect(notebook.locator(".gpuviz-selected")).not_to_have_text(story, use_inner_text=True)
    wait_for_more(notebook)
    still_zoomed = window(notebook)
    while_running = prompt(notebook, PROGRAM)
    button(notebook, "Stop").click()
    end.touch()
    wait_until_run(notebook, PROGRAM)
    wait_for_state(notebook, "Recording stopped")

    assert len(pictures) == 3
    assert re.match(r"Block of (1\.00 GiB|32\.0 MiB|96\.0 MiB)", story)
    assert re.search(r"allocated at .* In \[4\]:[156] <module>\n.*gpu\.empty\(", story)
    assert re.search(r"Launches that touched it: [1-9]", story)
    assert zoomed.split(" of ")[0] == still_zoomed.split(" of ")[0]
    assert while_running == "[*]:"
    assert button(notebook, "Start").is_enabled()


@pytest.mark.parametrize("width", [780, 1100])
def test_the_headline_is_at_most_two_lines(page, monkeypatch, width):
    page.set_viewport_size({"width": width, "height": 900})
    with kernel(monkeypatch):
        dashboard = gpuviz.dashboard(gpuviz.load(TRAINING))
    wait_until(lambda: dashboard.sections)
    show_widget(page, dashboard)
    numbers = page.locator(".gpuviz-numbers__number")

    numbers.filter(has_text="GPU idle").wait_for()
    lines = {number.bounding_box()["y"] for number in numbers.all()}
    fragmentation = numbers.filter(has_text="Fragmentation")
    dashboard.close()

    assert len(lines) <= 2
    assert "outside the largest free block" in fragmentation.get_attribute("title")


@pytest.mark.parametrize("width", [780, 1100, 1440])
def test_charts_stay_where_they_are_when_numbers_and_findings_come(page, monkeypatch, width):
    page.set_viewport_size({"width": width, "height": 900})
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    recorder = gpuviz.record(device=gpu)
    with kernel(monkeypatch):
        dashboard = gpuviz.dashboard(recorder)
    show_widget(page, dashboard)
    found = page.locator(".gpuviz-live__text--findings")
    found.get_by_text("Findings appear here after each cell.").wait_for()
    screen, widget = page.locator(".gpuviz-screen"), page.locator(".gpuviz-widget")

    empty = [screen.bounding_box(), widget.bounding_box()["height"]]
    with recorder:
        kept = [gpu.empty(8 << 20) for _ in range(20)]
        gpu.copy_to_device(kept[0], pinned=False)
        gpu.launch("scale", reads=kept[:1], writes=kept[1:2], duration=3e-3)
        gpu.synchronize()
        found.get_by_text("Findings in the first").wait_for()
        wait_for_state(page, "Recording")
        recording = [screen.bounding_box(), widget.bounding_box()["height"]]
    wait_for_state(page, "Recording stopped")
    wait_until(lambda: dashboard.sections)
    stopped = [screen.bounding_box(), widget.bounding_box()["height"]]
    dashboard.close()

    assert recording == empty
    assert stopped == empty
    assert empty[0]["height"] == 640
