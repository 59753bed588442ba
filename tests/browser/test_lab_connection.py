"""The side panel when messages are lost, and when the connection to the kernel is."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, WebSocketRoute

from tests.browser.lab import (
    LoadedLab,
    card_of,
    open_in_lab,
    prompt,
    run,
    run_cell,
    until,
    wait_until_run,
    write_notebook,
)

pytestmark = pytest.mark.browser

START = (
    "import gpuviz\n%load_ext gpuviz\ngpu = gpuviz.SimulatedGPU()\n%gpuviz start --simulated gpu"
)
SETUP, LATE = range(2)
ASKS = b"offer_panel"
OPENS_A_COMM = b'"gpuviz.notebook"'
# The page waits as long for a kernel before it asks for gpuviz without knowing its features.
LONGEST_WAIT_MS = 3000
# A panel without a message for as long asks again.
LONGEST_SILENCE_MS = 15_000
Filter = Callable[[WebSocketRoute, bytes], bool]


@pytest.fixture
def pipe(folder: Path, request: pytest.FixtureRequest) -> Path:
    """Return a pipe for which the second cell of the notebook waits."""
    path = folder / f"{abs(hash(request.node.name))}.pipe"
    os.mkfifo(path)
    return path


@pytest.fixture
def name(folder: Path, pipe: Path) -> str:
    """Return the name of a notebook that only this test opens."""
    name = f"{pipe.stem}.ipynb"
    late = f"open({str(pipe)!r}).read()\n{START}\nopen({str(pipe)!r}).read()"
    write_notebook(folder, name, [START, late])
    return name


def passes_all(_socket: WebSocketRoute, _message: bytes) -> bool:
    return True


class Connections:
    """A page's connections to kernels, which drop messages for which a function returns false."""

    def __init__(self) -> None:
        self.pass_all()

    def pass_all(self) -> None:
        self.is_sent: Filter = passes_all
        self.is_received: Filter = passes_all

    def follow(self, page: Page) -> None:
        page.route_web_socket("**/api/kernels/*/channels*", self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        # A connection to the kernel of an earlier test keeps the functions of that test.
        is_sent, is_received = self.is_sent, self.is_received

        def send(message: bytes | str) -> None:
            if is_sent(socket, bytes_of(message)):
                server.send(message)

        def receive(message: bytes | str) -> None:
            if is_received(socket, bytes_of(message)):
                socket.send(message)

        socket.on_message(send)
        server.on_message(receive)


@pytest.fixture(scope="module")
def all_connections() -> Connections:
    return Connections()


@pytest.fixture(scope="module")
def loaded_lab(chromium: Browser, lab: str, all_connections: Connections) -> Iterator[LoadedLab]:
    """Yield JupyterLab in a page whose clock can be advanced."""

    def prepare(page: Page) -> None:
        page.clock.install()
        all_connections.follow(page)

    loaded = LoadedLab(chromium, lab, prepare=prepare)
    yield loaded
    loaded.discard()


@pytest.fixture
def page(lab_page: Page) -> Page:
    return lab_page


@pytest.fixture
def connections(all_connections: Connections) -> Iterator[Connections]:
    """Yield the connections to a test's kernel, which drop nothing yet."""
    yield all_connections
    all_connections.pass_all()


def bytes_of(message: bytes | str) -> bytes:
    return message if isinstance(message, bytes) else message.encode()


def shown_card(page: Page, name: str) -> Locator:
    open_in_lab(page, name)
    return card_of(page, name)


def losing_the_first(lost: bytes, dropped: list[bytes]) -> Filter:
    """Drop the first message with these bytes, and add it to a list."""

    def is_sent(_: WebSocketRoute, message: bytes) -> bool:
        is_first = lost in message and not dropped
        if is_first:
            dropped.append(message)
        return not is_first

    return is_sent


def test_a_lost_question_is_asked_again(page, connections, name):
    dropped: list[bytes] = []
    connections.is_sent = losing_the_first(ASKS, dropped)
    card = shown_card(page, name)
    until(page, lambda: dropped)
    page.clock.fast_forward(LONGEST_SILENCE_MS)

    card.get_by_text("gpuviz is not loaded").wait_for()


def test_a_panel_that_the_kernel_was_not_asked_to_open_is_opened(page, connections, name):
    dropped: list[bytes] = []
    connections.is_sent = losing_the_first(OPENS_A_COMM, dropped)
    card = shown_card(page, name)
    run(page, SETUP)
    until(page, lambda: dropped)
    page.clock.fast_forward(LONGEST_SILENCE_MS)

    card.get_by_text("Recording for").wait_for()


def test_a_question_that_a_closing_connection_loses_is_asked_again(page, connections, name):
    closed: list[WebSocketRoute] = []

    def is_sent(socket: WebSocketRoute, message: bytes) -> bool:
        if ASKS in message and not closed:
            closed.append(socket)
            socket.close(code=1011)
        return socket not in closed

    connections.is_sent = is_sent
    card = shown_card(page, name)
    card.get_by_text("gpuviz is not loaded").wait_for()
    run(page, SETUP)
    card.get_by_text("Recording for").wait_for()

    assert len(closed) == 1


def test_a_connection_on_which_replies_are_lost_is_replaced(page, connections, name):
    asking: list[WebSocketRoute] = []

    def is_sent(socket: WebSocketRoute, message: bytes) -> bool:
        if ASKS in message and socket not in asking:
            asking.append(socket)
        return True

    def is_received(socket: WebSocketRoute, message: bytes) -> bool:
        return socket not in asking[:1] or b"execute_reply" not in message

    connections.is_sent, connections.is_received = is_sent, is_received
    card = shown_card(page, name)

    def is_replaced() -> bool:
        page.clock.fast_forward(LONGEST_WAIT_MS)
        return len(asking) > 1

    until(page, is_replaced)
    card.get_by_text("gpuviz is not loaded").wait_for()
    run(page, SETUP)
    card.get_by_text("Recording for").wait_for()

    assert asking[0].url == asking[1].url


def test_gpuviz_is_found_late_in_a_long_cell(page, connections, name, pipe):
    asked: list[bytes] = []

    def is_sent(_: WebSocketRoute, message: bytes) -> bool:
        if ASKS in message:
            asked.append(message)
        return True

    connections.is_sent = is_sent
    card = shown_card(page, name)
    card.get_by_text("gpuviz is not loaded").wait_for()
    run_cell(page, LATE)
    before = len(asked)
    until(page, lambda: len(asked) > before + 1)
    pipe.write_text("")
    card.get_by_text("Recording for").wait_for()
    running = prompt(page, LATE)
    pipe.write_text("")
    wait_until_run(page, LATE)

    assert running == "[*]:"
