"""A headless Firefox, controlled through WebDriver BiDi.

Playwright starts Debian's Firefox, but then asks it to emulate media features, which it refuses.
"""

import json
import re
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from websocket import WebSocket, create_connection

from tests.patience import PATIENCE_S, wait_until

PROGRAMS = ("firefox-esr", "firefox")
# Firefox looks for nothing by itself, and pages have no network.
PREFERENCES = {
    "app.normandy.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.manage-offline-status": False,
    "network.online": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
SIZE = {"width": 1440, "height": 900}
CONTROL, ESCAPE = "\ue009", "\ue00c"

Point = tuple[float, float]


class Firefox:
    """The only page of a Firefox."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._requests = 0
        self.complaints: list[str] = []
        self._request("session.new", capabilities={})
        self._request("session.subscribe", events=["log.entryAdded"])
        [tab] = self._request("browsingContext.getTree")["contexts"]
        self._tab = tab["context"]
        self._request("browsingContext.setViewport", context=self._tab, viewport=SIZE)

    def open(self, path: Path) -> None:
        """Open a file, and wait until it is loaded."""
        self._request(
            "browsingContext.navigate", context=self._tab, url=path.as_uri(), wait="complete"
        )

    def evaluate(self, function: str, *arguments: object) -> object:
        """Return the result of a JavaScript function; it and its arguments travel as JSON.

        Raises:
            ValueError: The function throws; the message is what it throws.
        """
        answer = self._request(
            "script.callFunction",
            functionDeclaration="async (text) => JSON.stringify("
            f"(await ({function})(...JSON.parse(text))) ?? null)",
            arguments=[{"type": "string", "value": json.dumps(arguments)}],
            target={"context": self._tab},
            awaitPromise=True,
        )
        if answer["type"] == "exception":
            raise ValueError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def wait_for(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        wait_until(lambda: self.evaluate(f"() => {condition}"), what=condition)

    def text(self, selector: str) -> str:
        """Return the text of the first element that a selector matches."""
        return str(self.evaluate("(each) => document.querySelector(each).innerText", selector))

    def point(self, selector: str, x_share: float = 0.5, y_share: float = 0.5) -> Point:
        """Return a point of the first element that a selector matches, by shares of its size."""
        found = self.evaluate(
            "(each) => document.querySelector(each).getBoundingClientRect().toJSON()", selector
        )
        x, y, width, height = (found[name] for name in ("x", "y", "width", "height"))
        return x + x_share * width, y + y_share * height

    def move(self, place: Point) -> None:
        self._act("pointer", _moved_to(place))

    def drag(self, start: Point, end: Point) -> None:
        """Press the mouse's button at a place, and release it at another."""
        pressed = {"type": "pointerDown", "button": 0}
        released = {"type": "pointerUp", "button": 0}
        self._act("pointer", _moved_to(start), pressed, _moved_to(end), released)

    def click(self, selector: str) -> None:
        place = self.point(selector)
        self.drag(place, place)

    def turn_wheel(self, place: Point, by_px: int) -> None:
        """Turn the mouse's wheel at a place while Ctrl is down."""
        x, y = map(round, place)
        self._act("key", {"type": "keyDown", "value": CONTROL})
        self._act("wheel", {"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": by_px})
        self._act("key", {"type": "keyUp", "value": CONTROL})

    def press(self, *keys: str) -> None:
        """Press keys together."""
        down = [{"type": "keyDown", "value": key} for key in keys]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self._act("key", *down, *up)

    def print(self) -> bytes:
        """Return the page as a PDF."""
        return b64decode(self._request("browsingContext.print", context=self._tab)["data"])

    def _act(self, source: str, *actions: dict[str, object]) -> None:
        sources = [{"type": source, "id": source, "actions": actions}]
        self._request("input.performActions", context=self._tab, actions=sources)

    def _request(self, method: str, **parameters: object) -> dict:
        self._requests += 1
        request = {"id": self._requests, "method": method, "params": parameters}
        self._socket.send(json.dumps(request))
        while (message := json.loads(self._socket.recv())).get("id") != self._requests:
            if message.get("method") == "log.entryAdded":
                self.complaints.append(message["params"]["text"])
        if message["type"] == "error":
            raise ValueError(f"{method}: {message['message']}")
        return message["result"]


def _moved_to(place: Point) -> dict[str, object]:
    x, y = map(round, place)
    return {"type": "pointerMove", "x": x, "y": y}


@contextmanager
def running_firefox(profile: Path) -> Iterator[Firefox]:
    """Yield a Firefox with a new profile in a folder.

    Raises:
        FileNotFoundError: Firefox is missing.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise FileNotFoundError("Firefox is missing: apt-get install -y firefox-esr")
    lines = [
        f"user_pref({json.dumps(name)}, {json.dumps(PREFERENCES[name])});\n" for name in PREFERENCES
    ]
    (profile / "user.js").write_text("".join(lines))
    log = profile / "log.txt"
    arguments = ["--headless", "--profile", str(profile), "--remote-debugging-port", "0"]
    with (
        log.open("wb") as output,
        subprocess.Popen([program, *arguments], stdout=output, stderr=output) as process,
    ):
        try:
            found = wait_until(lambda: re.search(r"BiDi listening on (\S+)", log.read_text()))
            # Firefox refuses connections with an origin, which are those of pages.
            socket = create_connection(
                f"{found[1]}/session", timeout=PATIENCE_S, suppress_origin=True
            )
            with closing(socket):
                yield Firefox(socket)
        finally:
            process.terminate()
