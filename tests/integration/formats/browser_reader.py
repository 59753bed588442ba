"""The reader of pickles that JupyterLab's document tab has, run by node."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EXTENSION = Path(__file__).parents[3] / "extension"


class BrowserReader:
    """Asks a node process; its answers are what the TypeScript code gives, as JSON."""

    def __init__(self, process: subprocess.Popen[str], path: Path) -> None:
        """Keep the process and the path that pickles are written to."""
        self._process = process
        self.path = path

    def value(self, pickled: bytes) -> dict[str, Any]:
        """Return ``value``, tagged by kind, or ``error``."""
        return self._ask(pickled, "value ")

    def tables(self, pickled: bytes) -> dict[str, Any]:
        """Return a snapshot's ``tables``, ``initialEvents`` and ``durationNs``, or ``error``."""
        return self._ask(pickled, "")

    def _ask(self, pickled: bytes, prefix: str) -> dict[str, Any]:
        self.path.write_bytes(pickled)
        self._process.stdin.write(f"{prefix}{self.path}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def browser_reader(folder: Path) -> Iterator[BrowserReader]:
    """Yield the reader; node ends with the block."""
    command = [shutil.which("node"), EXTENSION / "pages" / "read_pickles.ts"]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield BrowserReader(process, folder / "asked.pickle")
        process.stdin.close()


def tagged(value: Any) -> Any:
    """Return a value as `BrowserReader.value` gives it."""
    if isinstance(value, dict):
        return {"dict": [tagged(each) for entry in value.items() for each in entry]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [tagged(each) for each in value]}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, int) and not isinstance(value, bool):
        fits = -(2**63) <= value < 2**64
        return {"integer": str(value)} if fits else {"other": True}
    return {"other": True} if isinstance(value, bytes | bytearray) else value
