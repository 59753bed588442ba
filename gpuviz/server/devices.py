"""HTTP handler for the devices of the server's machine."""

import platform
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from gpuviz.server.kernel_processes import KernelProcesses
from gpuviz.server.shared_reading import SharedReading


class DevicesHandler(APIHandler):
    """Returns the usage of each GPU of the server's machine, and the processes that use it.

    The response has ``machine``, the host name, and ``devices``, as from `device_totals`. Each
    process also has ``kernel``, the id of this server's kernel that it belongs to, or None.
    """

    auth_resource = "gpuviz"
    # An open panel must not prevent the shutdown of an idle server.
    _track_activity = False

    def initialize(self, reading: SharedReading[list[dict[str, Any]]]) -> None:
        """Set the source of the devices."""
        self._reading = reading

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Respond with JSON."""
        devices = await self._reading.latest()
        kernels = KernelProcesses(self.kernel_manager)
        reported = [
            device | {"processes": [_process(each, kernels) for each in device["processes"]]}
            for device in devices
        ]
        self.finish({"machine": platform.node(), "devices": reported})


def _process(process: dict[str, Any], kernels: KernelProcesses) -> dict[str, Any]:
    pid, used = process["pid"], process["used"]
    return {"pid": pid, "used": used, "kernel": kernels.kernel_of(pid)}
