"""The repository's notebooks in a real JupyterLab, run with its command for all cells.

The tour runs in Notebook 7; `test_lab_walk` follows it in JupyterLab.
"""

import shutil
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Error, Page

from tests.browser.lab import (
    NOTEBOOK,
    open_in_lab,
    open_notebook,
    run_all,
    running_lab,
    save,
    until,
    watched_page,
)

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).parents[2] / "notebooks"
# They have no dashboard; the first one fails on purpose.
WITHOUT_DASHBOARD = {"why_is_memory_not_freed", "before_and_after", "cluster"}
TOUR = FOLDER / "tour.ipynb"
NOTEBOOKS = sorted(
    each for each in FOLDER.glob("*.ipynb") if each.stem not in WITHOUT_DASHBOARD and each != TOUR
)
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    for path in (*NOTEBOOKS, TOUR):
        shutil.copy(path, folder)
    return folder


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def show_dashboard(page):
    """Scroll to the dashboard; JupyterLab may replace its output in the meantime."""
    shown = page.locator(".gpuviz-live__counts").first

    def is_in_view() -> bool:
        try:
            shown.scroll_into_view_if_needed(timeout=3000)
            shown.get_by_text("activities").wait_for(timeout=3000)
        except Error:
            return False
        return True

    until(page, is_in_view)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_in_jupyterlab_with_their_outputs_and_no_error(lab_page, folder, path):
    lab_page.set_viewport_size({"width": 1400, "height": 1100})
    open_in_lab(lab_page, path.name)

    check_a_run(lab_page, folder / path.name)


def test_the_tour_runs_in_notebook_7_with_its_outputs_and_no_error(chromium, folder):
    with (
        running_lab(folder, application=NOTEBOOK) as url,
        watched_page(chromium, 1100) as page,
    ):
        open_notebook(page, url, TOUR.name, NOTEBOOK)

        check_a_run(page, folder / TOUR.name)


def check_a_run(page: Page, path: Path) -> None:
    """Run all cells of the open notebook, and look at what the saved file has."""
    run_all(page)
    show_dashboard(page)
    static_output = page.locator("[class^='gpuviz-static']")
    hidden = static_output.count() == 1 and not static_output.is_visible()
    save(page)
    saved = nbformat.read(path, as_version=4)

    ran = [cell for cell in saved.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in ran] == list(range(1, len(ran) + 1))
    assert [one for one in outputs(saved) if one.output_type == "error"] == []
    assert [one for one in outputs(saved) if one.get("name") == "stderr"] == []
    assert sum(WIDGET in one.get("data", {}) for one in outputs(saved)) == 1
    assert hidden
