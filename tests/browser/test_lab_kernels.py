"""The side panel with kernels that are shared, die, are interrupted, or run elsewhere."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, WebSocket

import gpuviz
from tests.browser.lab import (
    LoadedLab,
    add_kernel,
    begin_cell,
    card_of,
    holding,
    kernels_of,
    leave,
    listed_file,
    open_in_lab,
    open_notebook,
    palette,
    prompt,
    run,
    run_cell,
    running_lab,
    until,
    wait_until_run,
    watched_page,
    write_notebook,
)

pytestmark = pytest.mark.browser

SETUP, PROGRAM, DIE, ALL_IN_ONE, UNSEEN, LATER = range(6)
# Until it is interrupted.
WORK = """
kept = []
while True:
    kept.append(gpu.empty(1 << 20))
    gpu.launch("work", writes=[kept[-1]], duration=0.02)
    time.sleep(0.05)
"""
START = "import time, gpuviz\n%load_ext gpuviz\ngpu = gpuviz.SimulatedGPU()\n"
PANEL = "from gpuviz.notebook.panel import shared_panel"
CELLS = [
    f"{START}%gpuviz start --simulated gpu",
    WORK,
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    f"{START}gpuviz.record(device=gpu).start()\n{WORK}",
    f"{PANEL}\nwhile shared_panel()._is_watched(): time.sleep(0.01)",
    "time.sleep(3)  # three times as long as between two states",
]
NEWS = b'"gpuviz": "panel"'
ELAPSED = re.compile(rb'"elapsedNs": (\d+)')
MESSAGES = 4
FLAT = """
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import launch_new_instance
IPythonKernel._supports_kernel_subshells = False
launch_new_instance()
"""
# A gateway refuses JupyterLab's protocol, and keeps the refused connection with the session of the
# next one. Either may get the kernel's replies: now and then JupyterLab itself cannot run a cell.
WITHOUT_PROTOCOL = """
window.WebSocket = class extends WebSocket {
  constructor(url) {
    super(url);
  }
};
"""
OFFER = b"offer_panel"
# The page waits as long for the answer of a kernel before it goes on without.
LONGEST_WAIT_MS = 3000
# The panel gets about one state a second, and never more.
SHORTEST_NS = 800_000_000


@pytest.fixture
def name(folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the name of a notebook that only this test opens."""
    name = f"{request.node.name[5:30]}.ipynb"
    write_notebook(folder, name, CELLS)
    return name


@pytest.fixture(scope="module")
def loaded_lab(folder: Path, chromium: Browser, lab: str) -> Iterator[LoadedLab]:
    """Yield JupyterLab, which learns as it starts of which kernels there are."""
    add_kernel(folder / ".home" / "data", "flat", "-c", FLAT)
    loaded = LoadedLab(chromium, lab)
    yield loaded
    loaded.discard()


@pytest.fixture
def page(lab_page: Page, name: str) -> Page:
    """Return a page with a new notebook."""
    open_in_lab(lab_page, name)
    return lab_page


@pytest.fixture
def own_page(chromium: Browser) -> Iterator[Page]:
    """Yield a new page; an error in its console fails the test."""
    with watched_page(chromium, is_ours=is_ours) as page:
        yield page


@pytest.fixture(scope="module")
def never_restarting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Yield folder and address of a JupyterLab, also a gateway, where dead kernels stay dead."""
    folder = tmp_path_factory.mktemp("never_restarting")
    options = ["--AsyncIOLoopKernelRestarter.restart_limit=0"]
    options.append("--ServerApp.disable_check_xsrf=True")
    with running_lab(folder, more_options=options) as url:
        yield folder, url


def is_ours(complaint: str) -> bool:
    """Return whether a message is not JupyterLab's own when its server ends."""
    ended = "Failed to load resource: net::ERR_CONNECTION_RE"  # FUSED or SET
    return not complaint.startswith(("WebSocket connection to", ended))


def interrupt(page: Page) -> None:
    page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=interrupt]").first.click()


def follow_news(page: Page, lab: str) -> list[int]:
    """Return a list to which the time of each of the panel's messages is added, in ns.

    It is the kernel's, since its recording began. A page has two connections to a kernel, which
    receive the same. A kernel of an earlier test still sends messages to the pages of that test,
    which closed without notice.
    """
    times: list[int] = []
    heard: list[WebSocket] = []
    others = kernels_of(page, lab)

    def follow(socket: WebSocket) -> None:
        if not any(other in socket.url for other in others):
            socket.on("framereceived", lambda frame: hear(socket, frame))

    def hear(socket: WebSocket, frame: bytes | str) -> None:
        text = frame if isinstance(frame, bytes) else frame.encode()
        if NEWS in text and (elapsed := ELAPSED.search(text)):
            heard.append(socket)
            if heard[0] is socket:
                times.append(int(elapsed[1]))

    page.on("websocket", follow)
    return times


def test_two_pages_on_one_kernel_get_each_state_once_and_one_may_leave(
    own_page, lab_page, lab, name
):
    times = follow_news(lab_page, lab)
    open_notebook(own_page, lab, name)
    open_in_lab(lab_page, name)
    cards = [card_of(page, name) for page in (own_page, lab_page)]
    run_cell(own_page, SETUP)
    for card in cards:
        card.get_by_text("Recording for").wait_for()
    run_cell(own_page, PROGRAM)
    cards[1].get_by_text("GPU busy").wait_for()
    with_two = next_of(lab_page, times)
    # The page whose comm carries the messages is closed without notice.
    own_page.close()
    alone = next_of(lab_page, times)
    cards[1].get_by_role("button", name="Stop").click()
    cards[1].get_by_text("Not recording").wait_for()
    interrupt(lab_page)

    assert min(np.diff(with_two)) > SHORTEST_NS
    assert min(np.diff(alone)) > SHORTEST_NS


def next_of(page: Page, times: list[int]) -> list[int]:
    """Return the next times, of messages that only the passing of time causes."""
    begin = len(times)
    until(page, lambda: len(times) >= begin + MESSAGES)
    return times[begin : begin + MESSAGES]


def test_a_page_that_cannot_be_seen_is_sent_nothing(lab_page, lab, name):
    page = lab_page
    times = follow_news(page, lab)
    open_in_lab(page, name)
    run(page, SETUP)
    card_of(page, name).get_by_text("Recording for").wait_for()
    until(page, lambda: times)
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    run(page, UNSEEN)
    before = len(times)
    run(page, LATER)
    hidden = len(times) - before
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    until(page, lambda: len(times) > before)

    assert hidden == 0


def test_a_recording_that_begins_in_a_long_cell_shows_while_that_runs(page, name):
    card = card_of(page, name)
    card.get_by_text("gpuviz is not loaded").wait_for()
    run_cell(page, ALL_IN_ONE)
    card.get_by_text("GPU busy").wait_for()
    running = prompt(page, ALL_IN_ONE)
    interrupt(page)
    wait_until_run(page, ALL_IN_ONE)
    card.get_by_text("Recording for").wait_for()

    assert running == "[*]:"


def test_a_kernel_without_subshells_is_connected(lab_page, name, folder):
    page = lab_page
    write_notebook(folder, name, CELLS, kernel="flat")
    open_in_lab(page, name)
    card = card_of(page, name)
    card.get_by_text("gpuviz is not loaded").wait_for()
    run(page, SETUP)
    card.get_by_text("Recording for").wait_for()


def test_a_kernel_that_is_killed_is_met_anew_when_it_is_back(page, name):
    card = card_of(page, name)
    run_cell(page, SETUP)
    card.get_by_text("Recording for").wait_for()
    begin_cell(page, DIE)
    page.locator(".jp-Dialog").get_by_role("button", name="Ok").click()
    card.get_by_text("gpuviz is not loaded").wait_for()
    buttons = card.get_by_role("button").all_inner_texts()
    run_cell(page, SETUP)
    card.get_by_text("Recording for").wait_for()

    assert buttons == ["Load gpuviz in this kernel"]


def test_a_kernel_that_is_slow_at_first_answers_while_a_cell_runs(
    loaded_lab, own_page, lab, name, folder
):
    pipe = folder / f"{name}.pipe"
    os.mkfifo(pipe)
    write_notebook(folder, name, [CELLS[SETUP], holding(pipe) + WORK])
    first = loaded_lab.page()
    open_in_lab(first, name)
    run(first, 0)
    run_cell(first, 1)
    until(first, pipe.with_suffix(".begun").exists)
    loaded_lab.discard()
    page = own_page
    asked: list[bool] = []

    def hear(frame: bytes | str) -> None:
        asked.append(isinstance(frame, bytes) and OFFER in frame)

    page.on("websocket", lambda socket: socket.on("framesent", hear))

    def has_given_up() -> bool:
        page.clock.fast_forward(LONGEST_WAIT_MS)
        return any(asked)

    try:
        page.clock.install()
        page.goto(f"{lab}/lab/tree/{name}?reset")
        card = card_of(page, name)
        until(page, has_given_up)
    finally:
        pipe.write_text("")
    card.get_by_text("GPU busy").wait_for()
    while_running = card.inner_text()
    interrupt(page)  # else the cell would not end

    assert "Recording for" in while_running


def test_a_kernel_that_stays_dead_is_said_to_be(own_page, never_restarting):
    page = own_page
    folder, url = never_restarting
    write_notebook(folder, "dead.ipynb", CELLS)
    open_notebook(page, url, "dead.ipynb")
    card = card_of(page, "dead.ipynb")
    run_cell(page, SETUP)
    card.get_by_text("Recording for").wait_for()
    begin_cell(page, DIE)
    card.get_by_text("The kernel died.").wait_for()
    shown = card.get_by_role("button").count()
    page.keyboard.press("Escape")
    page.locator("#gpuviz-panel").get_by_text("No running kernels.").wait_for()
    palette(page, "Restart Kernel…")
    card.get_by_text("gpuviz is not loaded").wait_for()

    assert shown == 0


def test_a_kernel_on_another_machine_is_shown_and_writes_there(
    own_page, never_restarting, tmp_path
):
    page = own_page
    page.add_init_script(WITHOUT_PROTOCOL)
    there, gateway = never_restarting
    write_notebook(tmp_path, "far.ipynb", CELLS)
    with running_lab(tmp_path, more_options=[f"--gateway-url={gateway}"]) as url:
        open_notebook(page, url, "far.ipynb")
        card = card_of(page, "far.ipynb")
        run_cell(page, SETUP)
        card.get_by_text("Recording for").wait_for()
        run_cell(page, PROGRAM)
        card.get_by_text("GPU busy").wait_for()
        card.get_by_role("button", name="Save").click()
        card.get_by_text("Wrote").wait_for()
        interrupt(page)
        (written,) = there.glob("far-*.gpuviz")
        offers = card.get_by_role("button", name="Open").count()
        listed = listed_file(page, "far-").count()
        leave(page)

    assert gpuviz.load(written).table("memory_events").num_rows > 0
    assert (offers, listed) == (0, 0)
