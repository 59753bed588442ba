"""The steps of a new user: install, start JupyterLab, run the tour, save and open the result."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.lab import (
    LAB,
    gpu_panel,
    leave,
    listed_file,
    open_notebook,
    run,
    run_cell,
    running_lab,
    until,
    wait_until_run,
    watched_page,
)

pytestmark = pytest.mark.browser

TOUR = Path(__file__).parents[2] / "notebooks" / "tour.ipynb"
LOOP = "for number in range(40)"


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a new environment with `gpuviz[lab]` installed."""
    environment = tmp_path_factory.mktemp("walk") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    install = [*pip, "install", "-q", "--no-compile", f"{wheel}[lab]"]
    subprocess.run(install, check=True, capture_output=True)
    return python


def cell_with(page: Page, text: str) -> int:
    """Return the index of the code cell with this text."""
    cells = "[...window.jupyterapp.shell.currentWidget.content.model.cells]"
    sources = page.evaluate(
        f"{cells}.filter(c => c.type === 'code').map(c => c.sharedModel.source)"
    )
    return next(number for number, source in enumerate(sources) if text in source)


def memory_mib(text: str) -> float:
    found = re.search(r"Allocated\s+([\d.]+) MiB", text)
    return 0.0 if found is None else float(found[1])


def test_a_new_user_records_the_tour_with_the_panel_live_and_opens_what_was_saved(
    chromium: Browser, python: Path, tmp_path: Path
):
    shutil.copy(TOUR, tmp_path)
    application = replace(LAB, python=str(python), kernel=str(python))
    with (
        running_lab(tmp_path, application=application) as url,
        watched_page(chromium, at_end=leave) as page,
    ):
        open_notebook(page, url, "tour.ipynb")
        card = gpu_panel(page)
        card.get_by_text("gpuviz is not loaded").wait_for()
        loop = cell_with(page, LOOP)
        for number in range(loop):
            run(page, number)
        card.get_by_text("Recording for").wait_for()
        run_cell(page, loop)
        card.get_by_text("GPU busy").wait_for()
        wait_until_run(page, loop)
        # The eight results of 8 MiB that `history` keeps, and the weights of the previous cell.
        until(page, lambda: memory_mib(card.inner_text()) >= 64)
        card.get_by_role("button", name="Report").click()
        card.get_by_text(".html").wait_for()
        card.get_by_role("button", name="Save").click()
        card.get_by_text(".gpuviz").wait_for()
        page.locator(".jp-SideBar [data-id='filebrowser']").click()
        listed_file(page, "tour-").filter(has_text=".gpuviz").dblclick()
        shown = page.locator(".gpuviz-recording:visible")
        shown.get_by_role("region", name="Memory over time").wait_for()
        counts = shown.locator(".gpuviz-recording__counts").inner_text()
        reports = list(tmp_path.glob("tour-*.html"))

    assert len(reports) == 1
    assert "memory events" in counts
