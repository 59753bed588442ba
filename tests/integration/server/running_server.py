"""A real Jupyter server on this machine, with a token and a base URL."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STARTING_S = 60
TOKEN = "told-to-the-test"  # noqa: S105 - of a server that lives as long as a test
BASE = "/user/ada/"


@dataclass(frozen=True, slots=True)
class Answer:
    """The status and JSON of a response."""

    status: int
    content: Any


@dataclass(frozen=True, slots=True)
class Server:
    """The URL of a server, and its process."""

    origin: str
    pid: int

    def ask(
        self, path: str, *, base: str = BASE, token: str = TOKEN, sent: dict[str, Any] | None = None
    ) -> Answer:
        """Return the response to a GET, or to a POST if there is a body."""
        headers = {"Authorization": f"token {token}"} if token else {}
        body = None if sent is None else json.dumps(sent).encode()
        request = urllib.request.Request(f"{self.origin}{base}{path}", body, headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:  # noqa: S310 - this machine
                return Answer(reply.status, json.load(reply))
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read().decode())

    def fetch(self, path: str, *, token: str = TOKEN, **headers: str) -> tuple[int, bytes]:
        """Return the status and body of a GET."""
        headers |= {"Authorization": f"token {token}"} if token else {}
        request = urllib.request.Request(f"{self.origin}{BASE}{path}", None, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=20) as reply:  # noqa: S310 - this machine
            return reply.status, reply.read()


@contextmanager
def running_server(folder: Path, *options: str) -> Iterator[Server]:
    """Yield a Jupyter server that finds the modules in a folder before all others."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "HOME": str(folder),
        "PYTHONPATH": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PATH": str(folder / "data"),
    }
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"]
    where = [f"--port={port}", f"--ServerApp.base_url={BASE}", f"--notebook-dir={folder}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, *where, f"--IdentityProvider.token={TOKEN}", *options],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        server = Server(f"http://127.0.0.1:{port}", process.pid)
        try:
            wait_for(server, folder / "log")
            yield server
        finally:
            process.terminate()
            process.wait(timeout=30)


def wait_for(server: Server, log: Path) -> None:
    give_up = time.monotonic() + STARTING_S
    while True:
        try:
            server.ask("api")
        except OSError as error:
            if time.monotonic() > give_up:
                raise RuntimeError(log.read_text()) from error
            time.sleep(0.2)
        else:
            return
