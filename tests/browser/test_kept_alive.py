"""The dashboard's list of what keeps memory alive, and its buttons, in a real JupyterLab."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.lab import (
    leave,
    open_notebook,
    run,
    run_cell,
    running_lab,
    wait_until_run,
    watched_page,
    write_notebook,
)

pytestmark = pytest.mark.browser

PROGRAM, OUTPUT, FAILURE, SHOW, USED, WAIT = range(6)
CELLS = [
    """
%load_ext gpuviz
import gpuviz
gpu = gpuviz.SimulatedGPU(memory=4 << 30)
weights = gpu.empty(40 << 20)
def train():
    batch = gpu.empty(30 << 20)
    1 / 0
""",
    "gpu.empty(20 << 20)",
    "train()",
    "%gpuviz dashboard",
    "gpu.memory_stats()['allocated_bytes.all.current'] >> 20",
    "import time\ntime.sleep(3)\nweights.nbytes >> 20",
]


@pytest.fixture
def notebook(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("kept_alive")
    write_notebook(folder, "leaks.ipynb", CELLS)
    with running_lab(folder) as url, watched_page(chromium, 1100, at_end=leave) as page:
        open_notebook(page, url, "leaks.ipynb")
        yield page


def output(page: Page, cell: int) -> str:
    """Return what a cell that has been started shows at its end."""
    wait_until_run(page, cell)
    return page.locator(".jp-CodeCell").nth(cell).locator(".jp-OutputArea-output").inner_text()


def test_leaks_lists_holders_and_a_button_frees_what_it_says(notebook):
    for cell in (PROGRAM, OUTPUT, FAILURE, SHOW):
        run(notebook, cell)
    buttons = notebook.locator(".gpuviz-widget .gpuviz-button")
    buttons.get_by_text("Leaks", exact=True).click()
    listed = notebook.locator(".gpuviz-holders")
    expect(listed).to_contain_text("90.0 MiB of GPU memory in use.")
    rows = listed.locator("tbody tr")

    texts = [row.inner_text() for row in rows.all()]
    assert [text.split("\t")[0] for text in texts] == ["40.0 MiB", "30.0 MiB", "20.0 MiB"]
    assert texts[0].split("\t")[2:] == ["weights", "only holder"]
    assert "local `batch` of train() line 7" in texts[1]
    assert texts[2].split("\t")[2:] == ["Out[2]", "only holder"]

    forget = buttons.filter(has_text="Forget the last exception")
    expect(forget).to_have_text(re.compile("30.0 MiB$"))
    forget.click()
    expect(notebook.get_by_text("Freed 30.0 MiB.")).to_be_visible()
    expect(rows).to_have_count(2)
    expect(forget).to_have_count(0)

    buttons.get_by_text("Drop Out[2]: 20.0 MiB", exact=True).click()
    expect(notebook.get_by_text("Freed 20.0 MiB.")).to_be_visible()
    run_cell(notebook, USED)
    assert output(notebook, USED) == "40"

    run_cell(notebook, WAIT)
    buttons.get_by_text("Delete weights: 40.0 MiB", exact=True).click()
    # The variable is there until the cell has ended.
    assert output(notebook, WAIT) == "40"
    expect(notebook.get_by_text("Freed 40.0 MiB.")).to_be_visible()
