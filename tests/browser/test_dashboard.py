"""The live dashboard in a real JupyterLab and in a real Notebook 7, in a real browser."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.lab import (
    LAB,
    NOTEBOOK,
    Application,
    note_complaints,
    open_notebook,
    prompt,
    run_cell,
    running_lab,
    wait_until_run,
    write_notebook,
)
from tests.browser.test_live import counts, wait_for_state, window
from tests.browser.test_report import MAP, point

pytestmark = pytest.mark.browser

LOAD, SHOW, START, PROGRAM, STOP = range(5)
CELLS = [
    "%load_ext gpuviz\nimport time, gpuviz\ngpu = gpuviz.SimulatedGPU(memory=4 << 30)",
    "%gpuviz dashboard",
    "%gpuviz start --simulated gpu",
    """
weights = gpu.empty(1 << 30)
gpu.launch("fill", writes=[weights], duration=1e-3)
kept, begun = [], time.monotonic()
while time.monotonic() - begun < 10:
    kept.append(gpu.empty(32 << 20))
    scratch = gpu.empty(96 << 20)
    gpu.copy_to_device(scratch, pinned=True)
    gpu.launch("scale", reads=[scratch], writes=[kept[-1]], duration=20e-3)
    gpu.synchronize()
    del scratch
    gpu.work_on_host(0.1)
""",
    "%gpuviz stop",
]


@pytest.fixture(scope="module", params=[LAB, NOTEBOOK], ids=["lab", "notebook"])
def application(request: pytest.FixtureRequest) -> Application:
    return request.param


@pytest.fixture(scope="module")
def url(application: Application, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("dashboards")
    write_notebook(folder, "live.ipynb", CELLS)
    with running_lab(folder, application=application) as url:
        yield url


@pytest.fixture
def notebook(chromium: Browser, application: Application, url: str) -> Iterator[Page]:
    """Yield an open notebook; an error in the browser's console fails the test."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1100})
    page = context.new_page()
    complaints = note_complaints(page)
    open_notebook(page, url, "live.ipynb", application)
    if application is NOTEBOOK:
        # Notebook 7.6 itself lacks a settings schema at startup, with any notebook.
        page.wait_for_timeout(1000)
        complaints.clear()
    yield page
    context.close()
    assert complaints == []


def button(page: Page, name: str) -> Locator:
    return page.locator(".gpuviz-live").get_by_role("button", name=name, exact=True)


def allocated(page: Page) -> str:
    return page.locator(".gpuviz-numbers__value").first.inner_text()


def select_a_block(page: Page) -> str:
    """Click on the segment map until a block is selected, and return its description."""
    selected = page.locator(".gpuviz-selected")
    for share in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3):
        page.mouse.click(*point(page, MAP, 0.5, share))
        if "Block of" in selected.inner_text():
            # Its call stack may arrive with a later batch than the block.
            expect(selected).to_contain_text("In [4]:")
            return selected.inner_text()
    raise AssertionError(f"no block was hit: {selected.inner_text()}")


def test_the_dashboard_moves_is_zoomed_and_finds_a_line_while_a_cell_runs_ten_seconds(notebook):
    for cell in (LOAD, SHOW, START):
        run_cell(notebook, cell)
        wait_until_run(notebook, cell)
    wait_for_state(notebook, "Recording")
    run_cell(notebook, PROGRAM)
    notebook.locator(".gpuviz-plot").nth(MAP).wait_for(timeout=10_000)
    seen = []
    for _ in range(3):
        notebook.wait_for_timeout(700)
        picture = notebook.locator(".gpuviz-plot").nth(MAP).screenshot()
        seen.append((counts(notebook), allocated(notebook), picture))
    notebook.get_by_role("button", name="Zoom in").first.click()
    zoomed = window(notebook)
    story = select_a_block(notebook)
    notebook.wait_for_timeout(700)
    still_zoomed = window(notebook)
    while_running = prompt(notebook, PROGRAM)
    button(notebook, "Stop").click()
    wait_until_run(notebook, PROGRAM)
    wait_for_state(notebook, "Recording stopped")

    batches, numbers, pictures = (len(set(each)) for each in zip(*seen, strict=True))
    assert (batches, pictures) == (3, 3)
    # Numbers may be refreshed less often on a busy machine, as they use at most 1 % of the time.
    assert numbers >= 2
    assert min(seen) == seen[0]
    assert re.match(r"Block of (1\.00 GiB|32\.0 MiB|96\.0 MiB)", story)
    assert re.search(r"allocated at .* In \[4\]:[156] <module>\n.*gpu\.empty\(", story)
    assert re.search(r"Launches that touched it: [1-9]", story)
    assert zoomed.split(" of ")[0] == still_zoomed.split(" of ")[0]
    assert while_running == "[*]:"
    assert button(notebook, "Start").is_enabled()
