"""The side panel with kernels that are shared, die, are interrupted, or run elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocket

import gpuviz
from tests.browser.lab import (
    gpu_panel,
    leave,
    listed_file,
    note_complaints,
    open_notebook,
    palette,
    prompt,
    run_cell,
    running_lab,
    wait_until_run,
    write_notebook,
)

pytestmark = pytest.mark.browser

SETUP, PROGRAM, DIE, ALL_IN_ONE = range(4)
WORK = """
kept, began = [], time.monotonic()
while time.monotonic() - began < 40:
    kept.append(gpu.empty(1 << 20))
    gpu.launch("work", writes=[kept[-1]], duration=0.02)
    time.sleep(0.05)
"""
START = "import time, gpuviz\n%load_ext gpuviz\ngpu = gpuviz.SimulatedGPU()\n"
CELLS = [
    f"{START}%gpuviz start --simulated gpu",
    WORK,
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    f"{START}gpuviz.record(device=gpu).start()\n{WORK}",
]
NEWS = b'"gpuviz": "panel"'
SECONDS = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def lab(folder: Path) -> Iterator[str]:
    with running_lab(folder) as url:
        yield url


@pytest.fixture
def name(folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the name of a notebook that only this test opens."""
    name = f"{request.node.name[5:30]}.ipynb"
    write_notebook(folder, name, CELLS)
    return name


@pytest.fixture
def pages(chromium: Browser) -> Iterator[list[Page]]:
    """Yield two pages; an error in the console of one fails the test."""
    contexts = [chromium.new_context(viewport={"width": 1400, "height": 900}) for _ in range(2)]
    pages = [context.new_page() for context in contexts]
    complaints = [note_complaints(page) for page in pages]
    yield pages
    for context in contexts:
        context.close()
    assert [each for told in complaints for each in told if not is_jupyterlabs(each)] == []


def is_jupyterlabs(complaint: str) -> bool:
    """Return whether a message is JupyterLab's own, with two pages or when its server ends."""
    # The comm with which a page requests widgets is also closed on the other page.
    ended = "Failed to load resource: net::ERR_CONNECTION_RE"  # FUSED or SET
    return complaint.startswith(("Comm not found", "WebSocket connection to", ended))


def card_of(page: Page, name: str):
    gpu_panel(page)
    return page.locator("#gpuviz-panel .gpuviz-card").filter(has_text=name)


def interrupt(page: Page) -> None:
    page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=interrupt]").first.click()


def count_news(page: Page, lab: str) -> list[int]:
    """Return a list with the number of the panel's messages for each connection to a new kernel.

    A kernel of an earlier test still tells the pages of that test, which closed without notice.
    """
    counts: list[int] = []
    others = [kernel["id"] for kernel in page.request.get(f"{lab}/api/kernels").json()]

    def follow(socket: WebSocket) -> None:
        if any(other in socket.url for other in others):
            return
        index = len(counts)
        counts.append(0)

        def hear(frame: bytes | str) -> None:
            counts[index] += NEWS in (frame if isinstance(frame, bytes) else frame.encode())

        socket.on("framereceived", hear)

    page.on("websocket", follow)
    return counts


def test_two_pages_on_one_kernel_are_told_once_a_second_and_one_may_leave(pages, lab, name):
    counts = count_news(pages[1], lab)
    cards = []
    for page in pages:
        open_notebook(page, lab, name)
        cards.append(card_of(page, name))
    run_cell(pages[0], SETUP)
    for card in cards:
        card.get_by_text("Recording for").wait_for(timeout=30_000)
    run_cell(pages[0], PROGRAM)
    cards[1].get_by_text("GPU busy").wait_for(timeout=20_000)
    before = counts.copy()
    pages[1].wait_for_timeout(1000 * SECONDS)
    told = [after - first for first, after in zip(before, counts, strict=True)]
    # The page whose comm carries the messages is closed without notice.
    pages[0].close()
    alone = max(counts)
    pages[1].wait_for_timeout(1000 * SECONDS)
    told_alone = max(counts) - alone
    cards[1].get_by_role("button", name="Stop").click()
    cards[1].get_by_text("Not recording").wait_for(timeout=10_000)
    interrupt(pages[1])

    assert SECONDS // 2 <= max(told) <= SECONDS + 1
    assert SECONDS // 2 <= told_alone <= SECONDS + 1


def test_a_page_that_cannot_be_seen_is_told_nothing(pages, lab, name):
    page = pages[0]
    counts = count_news(page, lab)
    open_notebook(page, lab, name)
    run_cell(page, SETUP)
    card_of(page, name).get_by_text("Recording for").wait_for(timeout=30_000)
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.wait_for_timeout(2500)
    before = sum(counts)
    page.wait_for_timeout(3000)
    hidden = sum(counts) - before
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(2500)

    assert before > 0
    assert hidden == 0
    assert sum(counts) > before


def test_a_recording_that_begins_in_a_long_cell_shows_while_that_runs(pages, lab, name):
    page = pages[0]
    open_notebook(page, lab, name)
    card = card_of(page, name)
    card.get_by_text("gpuviz is not loaded").wait_for(timeout=20_000)
    run_cell(page, ALL_IN_ONE)
    card.get_by_text("GPU busy").wait_for(timeout=30_000)
    running = prompt(page, ALL_IN_ONE)
    interrupt(page)
    wait_until_run(page, ALL_IN_ONE)
    card.get_by_text("Recording for").wait_for(timeout=10_000)

    assert running == "[*]:"


def test_a_kernel_that_is_killed_is_met_anew_when_it_is_back(pages, lab, name):
    page = pages[0]
    open_notebook(page, lab, name)
    card = card_of(page, name)
    run_cell(page, SETUP)
    card.get_by_text("Recording for").wait_for(timeout=30_000)
    run_cell(page, DIE)
    page.locator(".jp-Dialog").get_by_role("button", name="Ok").click(timeout=30_000)
    card.get_by_text("gpuviz is not loaded").wait_for(timeout=30_000)
    buttons = card.get_by_role("button").all_inner_texts()
    run_cell(page, SETUP)
    card.get_by_text("Recording for").wait_for(timeout=30_000)

    assert buttons == ["Load gpuviz in this kernel"]


def test_a_kernel_that_stays_dead_is_said_to_be(pages, tmp_path):
    page = pages[0]
    write_notebook(tmp_path, "dead.ipynb", CELLS)
    never = "--AsyncIOLoopKernelRestarter.restart_limit=0"
    with running_lab(tmp_path, more_options=[never]) as url:
        open_notebook(page, url, "dead.ipynb")
        card = card_of(page, "dead.ipynb")
        run_cell(page, SETUP)
        card.get_by_text("Recording for").wait_for(timeout=30_000)
        run_cell(page, DIE)
        card.get_by_text("The kernel died.").wait_for(timeout=30_000)
        shown = card.get_by_role("button").count()
        page.keyboard.press("Escape")
        page.locator("#gpuviz-panel").get_by_text("No running kernels.").wait_for(timeout=30_000)
        palette(page, "Restart Kernel…")
        card.get_by_text("gpuviz is not loaded").wait_for(timeout=30_000)

    assert shown == 0


def test_a_kernel_on_another_machine_is_shown_and_writes_there(pages, tmp_path):
    page = pages[0]
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    write_notebook(here, "far.ipynb", CELLS)
    with (
        running_lab(there, more_options=["--ServerApp.disable_check_xsrf=True"]) as gateway,
        running_lab(here, more_options=[f"--gateway-url={gateway}"]) as url,
    ):
        open_notebook(page, url, "far.ipynb")
        card = card_of(page, "far.ipynb")
        run_cell(page, SETUP)
        card.get_by_text("Recording for").wait_for(timeout=30_000)
        run_cell(page, PROGRAM)
        card.get_by_text("GPU busy").wait_for(timeout=30_000)
        card.get_by_role("button", name="Save").click()
        card.get_by_text("Wrote").wait_for(timeout=60_000)
        interrupt(page)
        (written,) = there.glob("far-*.gpuviz")
        offers = card.get_by_role("button", name="Open").count()
        listed = listed_file(page, "far-").count()
        leave(page)

    assert gpuviz.load(written).table("memory_events").num_rows > 0
    assert (offers, listed) == (0, 0)
