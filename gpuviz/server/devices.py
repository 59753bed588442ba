"""HTTP handler for the devices of the server's machine."""

import platform
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from gpuviz.server.kernel_processes import KernelProcesses
from gpuviz.server.shared_reading import SharedReading


class DevicesHandler(APIHandler):
    """Tells those who may use the server how much of each GPU of its machine is in use, by whom.

    The answer has ``machine``, its name, and ``devices``, as of `device_totals`, but that
    processes have ``kernel``, the id of the kernel of this server that they belong to, or None.
    """

    auth_resource = "gpuviz"
    # A panel that is left open must not keep a server from being ended for want of use.
    _track_activity = False

    def initialize(self, reading: SharedReading[list[dict[str, Any]]]) -> None:
        """Take what tells of the devices."""
        self._reading = reading

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with JSON."""
        devices = await self._reading.latest()
        kernels = KernelProcesses(self.kernel_manager)
        told = [
            device | {"processes": [_process(each, kernels) for each in device["processes"]]}
            for device in devices
        ]
        self.finish({"machine": platform.node(), "devices": told})


def _process(process: dict[str, Any], kernels: KernelProcesses) -> dict[str, Any]:
    pid, used = process["pid"], process["used"]
    return {"pid": pid, "used": used, "kernel": kernels.kernel_of(pid)}
