"""The JupyterLab extension in the oldest supported JupyterLab and in Notebook 7."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import gpuviz
from tests.browser.lab import (
    LAB,
    NOTEBOOK,
    Application,
    gpu_panel,
    leave,
    open_notebook,
    run_cell,
    running_lab,
    watched_page,
    write_notebook,
)

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
RECORDING = Path(gpuviz.__file__).parent / "commands" / "recordings" / "fft_filter.gpuviz"
CELLS = [
    "import gpuviz\n%load_ext gpuviz\ngpu = gpuviz.SimulatedGPU()",
    "%gpuviz start --simulated gpu",
    "kept = [gpu.empty(1 << 20) for _ in range(50)]",
]


def oldest_admitted() -> str:
    """Return the oldest minor version of JupyterLab that the metadata allow, such as ``4.2``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (needed,) = (each for each in project["optional-dependencies"]["lab"] if "jupyterlab" in each)
    found = re.fullmatch(r"jupyterlab>=(\d+\.\d+)", needed)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def oldest_lab(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """Install the oldest JupyterLab with the extension in a new environment."""
    environment = tmp_path_factory.mktemp("oldest") / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    wanted = f"jupyterlab=={oldest_admitted()}.*"
    install = [str(python), "-m", "pip", "install", "-q", "--no-compile", wanted]
    subprocess.run(install, check=True, capture_output=True)
    extensions = environment / "share" / "jupyter" / "labextensions"
    extensions.mkdir(parents=True, exist_ok=True)
    shutil.copytree(Path(gpuviz.__file__).parent / "labextension", extensions / "gpuviz")
    return replace(LAB, python=str(python))


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with watched_page(chromium) as page:
        yield page


@pytest.mark.deep  # installs it
def test_the_oldest_jupyterlab_opens_recordings_and_tells_of_kernels(oldest_lab, page, tmp_path):
    shutil.copy(RECORDING, tmp_path)
    write_notebook(tmp_path, "old.ipynb", CELLS)
    with running_lab(tmp_path, application=oldest_lab) as url:
        open_notebook(page, url, "old.ipynb")
        version = page.evaluate("window.jupyterapp.version")
        page.locator(f".jp-DirListing-item[title^='Name: {RECORDING.name}']").dblclick()
        shown = page.locator(".gpuviz-recording:visible")
        shown.get_by_role("region", name="Memory over time").wait_for()
        page.locator(".lm-TabBar-tab", has_text="old.ipynb").click()
        card = gpu_panel(page)
        card.get_by_text("gpuviz is not loaded").wait_for()
        run_cell(page, 0)
        card.get_by_text("Not recording").wait_for()
        run_cell(page, 1)
        card.get_by_text("Recording for").wait_for()
        run_cell(page, 2)
        card.get_by_text("50.0 MiB").first.wait_for()
        leave(page)

    assert version.startswith(oldest_admitted())


def test_notebook_7_opens_recordings_and_has_the_dashboard_in_its_toolbar(page, tmp_path):
    shutil.copy(RECORDING, tmp_path)
    write_notebook(tmp_path, "seven.ipynb", CELLS)
    with running_lab(tmp_path, application=NOTEBOOK) as url:
        page.goto(f"{url}/edit/{RECORDING.name}")
        page.locator(".gpuviz-recording").get_by_role("region", name="Memory over time").wait_for()
        open_notebook(page, url, "seven.ipynb", NOTEBOOK)
        run_cell(page, 0)
        run_cell(page, 1)
        run_cell(page, 2)
        page.get_by_text("Recording started.").first.wait_for()
        button = page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=gpuviz]").first
        is_shown = button.is_visible()
        leave(page)

    assert is_shown
