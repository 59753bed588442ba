"""A Chromium without a network."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from gpuviz.recording import Recording, load
from tests.browser.lab import LoadedLab, running_lab
from tests.conftest import shared_folder
from tests.patience import PATIENCE_S
from tests.unit.report.recordings import make_recording

CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# The shell has the same engine and no user interface, which takes half of a page's CPU time.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")

FOLDER = Path(__file__).parent


def chromium_program() -> str | None:
    """Return the path of Chromium; None if it is missing."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a test wait several times for as long as a busy machine may take."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    program = chromium_program()
    if program is None:
        pytest.fail("Chromium is missing: apt-get install -y chromium-headless-shell fonts-dejavu")
    expect.set_options(1000 * PATIENCE_S)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=CHROMIUM_ARGUMENTS, timeout=1000 * PATIENCE_S
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a module's JupyterLab."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def lab(folder: Path) -> Iterator[str]:
    """Yield the address of a JupyterLab that serves the folder."""
    with running_lab(folder) as url:
        yield url


@pytest.fixture(scope="module")
def loaded_lab(chromium: Browser, lab: str) -> Iterator[LoadedLab]:
    """Yield JupyterLab in a page for all tests of a module."""
    loaded = LoadedLab(chromium, lab)
    yield loaded
    loaded.discard()


@pytest.fixture
def lab_page(loaded_lab: LoadedLab, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Yield JupyterLab with nothing open; an error in the browser's console fails the test."""
    failed = request.session.testsfailed
    yield loaded_lab.page()
    if request.session.testsfailed > failed:
        loaded_lab.discard()
    else:
        loaded_lab.clear()


@pytest.fixture
def end(tmp_path: Path) -> Path:
    """Return the path of a file whose existence ends the program."""
    return tmp_path / "end"


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """Yield an offline page; console messages, exceptions and requests fail the test."""
    with offline_page(chromium) as page:
        yield page


@contextmanager
def offline_page(browser: Browser) -> Iterator[Page]:
    """Yield an offline page; at its end it asserts that it wrote and requested nothing."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, offline=True)
    context.set_default_timeout(1000 * PATIENCE_S)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith("file:") or request.url.startswith("blob:")
            else complaints.append(f"request: {request.url}")
        ),
    )
    yield page
    context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def report_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Return a function that writes the report of a recording, once for all tests."""

    def report(path: Path) -> Path:
        with shared_folder(tmp_path_factory, "reports") as folder:
            written = folder / f"{path.parent.name}-{path.stem}.html"
            if not written.exists():
                load(path).report(written)
        return written

    return report


@pytest.fixture
def recording() -> Recording:
    return make_recording()
