"""A real IPython shell in this process, with gpuviz loaded."""

from dataclasses import dataclass
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import gpuviz
from gpuviz.notebook.control import shared_control
from gpuviz.recorder.recorder import Recorder
from tests.unit.ipython_shells import new_shell


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of running a cell."""

    result: Any
    stdout: str
    stderr: str
    shown: list[dict[str, Any]]

    @property
    def text(self) -> str:
        return "\n".join(bundle["text/plain"] for bundle in self.shown)


class Shell:
    """Runs cells in a shell, each with a number."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.names = shell.user_ns

    def run(self, cell: str) -> Ran:
        with capture_output() as captured:
            result = self.shell.run_cell(cell, store_history=True)
        shown = [output.data for output in captured.outputs]
        return Ran(result, captured.stdout, captured.stderr, shown)


@pytest.fixture
def plain_shell():
    with new_shell() as shell:
        yield Shell(shell)
        gpuviz.unload_ipython_extension(shell)
        shared_control().end()
        if Recorder.active() is not None:
            Recorder.active().stop()


@pytest.fixture
def shell(plain_shell):
    """A shell with the extension, and ``gpu``, a simulated GPU that does not wait in real time."""
    plain_shell.run("%load_ext gpuviz")
    plain_shell.run("import gpuviz\ngpu = gpuviz.SimulatedGPU(real_time=False)")
    return plain_shell


@pytest.fixture
def dashboard(shell):
    dashboard = gpuviz.dashboard()
    shell.names["board"] = dashboard
    yield dashboard
    dashboard.close()
