"""A real Jupyter server on this machine, with a token and a base URL."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.patience import PATIENCE_S, address_of

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
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:  # noqa: S310 - this machine
                return Answer(reply.status, json.load(reply))
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read().decode())

    def begin_to_ask(self, path: str) -> HTTPConnection:
        """Return a connection on which a GET was sent; it closes when its response is read."""
        connection = HTTPConnection(urlsplit(self.origin).netloc, timeout=PATIENCE_S)
        headers = {"Authorization": f"token {TOKEN}", "Connection": "close"}
        connection.request("GET", f"{BASE}{path}", headers=headers)
        return connection

    def fetch(self, path: str, *, token: str = TOKEN, **headers: str) -> tuple[int, bytes]:
        """Return the status and body of a GET."""
        headers |= {"Authorization": f"token {token}"} if token else {}
        request = urllib.request.Request(f"{self.origin}{BASE}{path}", None, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:  # noqa: S310 - this machine
            return reply.status, reply.read()


@contextmanager
def running_server(folder: Path, *options: str) -> Iterator[Server]:
    """Yield a Jupyter server that finds the modules in a folder before all others."""
    environment = os.environ | {
        "HOME": str(folder),
        "PYTHONPATH": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PATH": str(folder / "data"),
    }
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"]
    where = ["--port=0", f"--ServerApp.base_url={BASE}", f"--notebook-dir={folder}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, *where, f"--IdentityProvider.token={TOKEN}", *options],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            yield Server(address_of(process, folder / "runtime", folder / "log"), process.pid)
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)
