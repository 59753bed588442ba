"""What JupyterLab's panel asks of a real kernel, on a subshell, and what it is told."""

import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.notebook.kernel import Kernel, running_kernel

OFFER = (
    "__import__('sys').modules.get('gpuviz') and "
    "__import__('gpuviz.notebook.panel', fromlist=['offer_panel']).offer_panel()"
)
SIMULATED = """
import time, gpuviz
from gpuviz.notebook.control import shared_control
gpu = gpuviz.SimulatedGPU()
shared_control().start(device=gpu)
"""
BUSY = """
blocks = []
for _ in range(30):
    blocks.append(gpu.empty(1 << 20))
    gpu.launch("work", writes=[blocks[-1]], duration=0.05)
    time.sleep(0.1)
gpu.synchronize()
"""


class Page:
    """A page of JupyterLab that speaks with a kernel on a subshell of its own."""

    def __init__(self, kernel: Kernel) -> None:
        self._client = kernel.client
        self._viewer = uuid.uuid4().hex
        self._comm = uuid.uuid4().hex
        self._subshell = self._on_control("create_subshell_request", {})["subshell_id"]

    def offer(self) -> str:
        """Return what the kernel answers when asked for gpuviz, as Python would print it."""
        content = {"code": "", "silent": True, "user_expressions": {"gpuviz": OFFER}}
        sent = self._send("execute_request", content)
        while True:
            reply = self._client.get_shell_msg(timeout=20)
            if reply["parent_header"].get("msg_id") == sent:
                return reply["content"]["user_expressions"]["gpuviz"]["data"]["text/plain"]

    def open(self) -> None:
        content = {"comm_id": self._comm, "target_name": "gpuviz.notebook", "data": {}}
        self._send("comm_open", content)

    def ask(self, kind: str, **more: Any) -> None:
        data = {"kind": kind, "viewer": self._viewer, "id": kind, **more}
        self._send("comm_msg", {"comm_id": self._comm, "data": data})

    def told(self, seconds: float) -> list[tuple[float, dict[str, Any]]]:
        """Return what the panel says within some time, and when."""
        until = time.monotonic() + seconds
        messages = []
        while (left := until - time.monotonic()) > 0:
            try:
                message = self._client.get_iopub_msg(timeout=left)
            except Exception:  # noqa: BLE001 - nothing more came
                break
            data = message["content"].get("data", {})
            if message["msg_type"] == "comm_msg" and data.get("gpuviz") == "panel":
                messages.append((time.monotonic(), data))
        return messages

    def answer(self, kind: str) -> dict[str, Any]:
        for _, data in self.told(1.5):
            if data["kind"] == "done" and data["id"] == kind:
                return data
        raise TimeoutError(kind)

    def _send(self, kind: str, content: dict[str, Any]) -> str:
        message = self._client.session.msg(kind, content)
        message["header"]["subshell_id"] = self._subshell
        self._client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def _on_control(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        message = self._client.session.msg(kind, content)
        self._client.control_channel.send(message)
        while True:
            reply = self._client.get_control_msg(timeout=20)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return reply["content"]


@pytest.fixture
def kernel(tmp_path, monkeypatch) -> Iterator[Kernel]:
    monkeypatch.chdir(tmp_path)
    with running_kernel() as kernel:
        yield kernel


def test_a_kernel_without_gpuviz_says_so_and_is_left_as_it_was(kernel):
    page = Page(kernel)

    assert page.offer() == "None"
    assert kernel.run("import sys; print('gpuviz' in sys.modules)").streams == "False\n"


def test_a_page_sees_memory_and_busy_share_once_a_second_while_a_cell_runs(kernel):
    kernel.run(SIMULATED)
    page = Page(kernel)
    assert "0.1" in page.offer()
    page.open()
    cell = kernel.client.execute(BUSY)
    page.ask("show")
    told = page.told(3)
    kernel.wait(cell)
    states = [data for _, data in told if data["kind"] == "state"]
    times = [when for when, _ in told]
    allocated = [each["devices"][0]["allocated"] for each in states if each["devices"]]

    assert 2 <= len(states) <= 4
    assert min(after - before for before, after in pairwise(times)) > 0.8
    assert allocated == sorted(set(allocated))
    assert states[-1]["recording"] is True
    assert 0.2 < states[-1]["devices"][0]["busy"] < 0.8


def test_a_page_that_hides_is_told_nothing_more_and_no_thread_stays(kernel):
    kernel.run(SIMULATED)
    page = Page(kernel)
    page.offer()
    page.open()
    page.ask("show")
    page.told(1.5)
    page.ask("hide")
    page.told(1.5)

    assert page.told(2) == []
    threads = "import threading; print([t.name for t in threading.enumerate()])"
    assert "gpuviz-panel" not in kernel.run(threads).streams


def test_a_page_stops_and_saves_while_a_cell_runs(kernel, tmp_path):
    kernel.run(SIMULATED)
    page = Page(kernel)
    page.offer()
    page.open()
    page.ask("show")
    cell = kernel.client.execute("time.sleep(12)")
    time.sleep(0.5)
    began = time.monotonic()
    page.ask("snapshot", path="one.gpuviz")
    saved = page.answer("snapshot")
    page.ask("snapshot", path="one.gpuviz")
    refused = page.answer("snapshot")
    page.ask("report", path="one.html", redact=True)
    reported = page.answer("report")
    page.ask("stop")
    stopped = page.answer("stop")
    took = time.monotonic() - began
    kernel.wait(cell)

    assert took < 8
    failed = [each["failed"] for each in (saved, refused, reported, stopped)]
    assert failed == [False, True, False, False]
    assert "redacted" in (tmp_path / "one.html").read_text().lower()
    assert (tmp_path / "one.gpuviz").is_file()
    assert "exists" in refused["text"]
