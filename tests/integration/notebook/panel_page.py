"""A stand-in for a page of JupyterLab, for the panel in a kernel."""

import uuid
from typing import Any

from tests.integration.notebook.kernel import Kernel
from tests.patience import PATIENCE_S

OFFER = (
    "__import__('sys').modules.get('gpuviz') and "
    "__import__('gpuviz.notebook.panel', fromlist=['offer_panel']).offer_panel()"
)


class Page:
    """A page of JupyterLab that communicates with a kernel on a separate subshell."""

    def __init__(self, kernel: Kernel) -> None:
        self._client = kernel.client
        self._viewer = uuid.uuid4().hex
        self._comm = ""
        self._subshell = self._on_control("create_subshell_request", {})["subshell_id"]

    def offer(self) -> str:
        """Return the kernel's reply to the query for gpuviz, as printed by Python."""
        content = {"code": "", "silent": True, "user_expressions": {"gpuviz": OFFER}}
        sent = self._send("execute_request", content)
        while True:
            reply = self._client.get_shell_msg(timeout=PATIENCE_S)
            if reply["parent_header"].get("msg_id") == sent:
                return reply["content"]["user_expressions"]["gpuviz"]["data"]["text/plain"]

    def open(self) -> None:
        """Open a comm, and use it from now on."""
        self._comm = uuid.uuid4().hex
        content = {"comm_id": self._comm, "target_name": "gpuviz.notebook", "data": {}}
        self._send("comm_open", content)

    def ask(self, kind: str, **more: Any) -> None:
        data = {"kind": kind, "viewer": self._viewer, "id": kind, **more}
        self._send("comm_msg", {"comm_id": self._comm, "data": data})

    def next(self) -> dict[str, Any]:
        """Return the panel's next message."""
        while True:
            message = self._client.get_iopub_msg(timeout=PATIENCE_S)
            data = message["content"].get("data", {})
            if message["msg_type"] == "comm_msg" and data.get("gpuviz") == "panel":
                return data

    def answer(self, kind: str) -> dict[str, Any]:
        while True:
            data = self.next()
            if data["kind"] == "done" and data["id"] == kind:
                return data

    def _send(self, kind: str, content: dict[str, Any]) -> str:
        message = self._client.session.msg(kind, content)
        message["header"]["subshell_id"] = self._subshell
        self._client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def _on_control(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        message = self._client.session.msg(kind, content)
        self._client.control_channel.send(message)
        while True:
            reply = self._client.get_control_msg(timeout=PATIENCE_S)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return reply["content"]
