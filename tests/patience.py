"""Waiting for what a busy machine does late, and for nothing longer than it takes."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

# Longer than anything takes on a machine that is ten times as slow.
PATIENCE_S = 120
PAUSE_S = 0.05

T = TypeVar("T")


def wait_until(
    read: Callable[[], T], *, pause: Callable[[float], object] = time.sleep, what: str = ""
) -> T:
    """Return the first true result of a function.

    Raises:
        TimeoutError: There was none.
    """
    give_up = time.monotonic() + PATIENCE_S
    while not (result := read()):
        if time.monotonic() > give_up:
            raise TimeoutError(f"{what or 'the condition'} still is {result!r}")
        pause(PAUSE_S)
    return result


def wait_until_asleep(process: int) -> None:
    """Wait until the main thread of a program that then does nothing else sleeps."""

    def is_asleep() -> bool:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "S"

    for _ in range(4):  # it may also wait for another thread for a moment
        wait_until(is_asleep)
        time.sleep(PAUSE_S)


def address_of(server: subprocess.Popen, runtime: Path, log: Path) -> str:
    """Return the URL of a Jupyter server started with ``--port=0``, once it answers.

    Raises:
        RuntimeError: It has ended; the message is its log.
    """

    def answering() -> str:
        if server.poll() is not None:
            raise RuntimeError(log.read_text())
        try:
            # The server also writes other files, and this one not at once.
            told = json.loads((runtime / f"jpserver-{server.pid}.json").read_text())
            address = f"http://127.0.0.1:{told['port']}"
            with urllib.request.urlopen(f"{address}{told['base_url']}api", timeout=20):  # noqa: S310
                return address
        except urllib.error.HTTPError:
            return address  # it wants a token
        except (OSError, ValueError):
            return ""

    return wait_until(answering, what="the server's address")
