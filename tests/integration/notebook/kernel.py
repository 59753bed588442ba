"""A real kernel that runs cells like a notebook's front end."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.manager import KernelManager

from tests.patience import PATIENCE_S

BEGUN = "the cell has begun"
SAY_BEGUN = f"print({BEGUN!r})"


@dataclass(slots=True)
class Outputs:
    """The outputs of a cell, in order."""

    status: str
    bundles: list[dict[str, Any]] = field(default_factory=list)
    streams: str = ""
    errors: list[str] = field(default_factory=list)
    widget_values: list[str] = field(default_factory=list)


class Kernel:
    """Runs cells, and interrupts them."""

    def __init__(self, manager: KernelManager, client: Any) -> None:
        self.manager = manager
        self.client = client

    def run(self, cell: str) -> Outputs:
        return self.wait(self.client.execute(cell))

    def begin(self, cell: str) -> str:
        """Return the id of a cell's message once the cell has printed `BEGUN`."""
        message_id = self.client.execute(cell)
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            is_its = message["parent_header"].get("msg_id") == message_id
            if is_its and BEGUN in message["content"].get("text", ""):
                return message_id

    def wait(self, message_id: str) -> Outputs:
        outputs = Outputs("")
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            if message["msg_type"] == "comm_msg":
                # A thread's messages belong to the cell that started it.
                state = message["content"]["data"].get("state", {})
                outputs.widget_values.append(str(state.get("numbers", "")))
            if message["parent_header"].get("msg_id") != message_id:
                continue
            if self._add(outputs, message["msg_type"], message["content"]):
                reply = self.client.get_shell_msg(timeout=PATIENCE_S)
                while reply["parent_header"].get("msg_id") != message_id:
                    reply = self.client.get_shell_msg(timeout=PATIENCE_S)
                outputs.status = reply["content"]["status"]
                return outputs

    @staticmethod
    def _add(outputs: Outputs, kind: str, content: dict[str, Any]) -> bool:
        """Add a message, and return whether the cell is done."""
        if kind in {"display_data", "execute_result"}:
            outputs.bundles.append(content["data"])
        elif kind == "stream":
            outputs.streams += content["text"]
        elif kind == "error":
            outputs.errors.append(content["ename"])
        return kind == "status" and content["execution_state"] == "idle"


@contextmanager
def running_kernel() -> Iterator[Kernel]:
    """Yield a kernel, which is ended in any case."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
