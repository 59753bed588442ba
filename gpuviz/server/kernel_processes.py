"""Kernels of this server by process id."""

import os
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner


class KernelProcesses:
    """The kernels that this server runs on its own machine, and their child processes.

    jupyter_client starts each kernel as the leader of a session; processes started by the kernel,
    or by a script around it, belong to the same session. Kernels on other machines are ignored.
    """

    def __init__(self, kernel_manager: Any) -> None:
        self._kernels = {
            provisioner.pid: kernel_id
            for kernel_id in kernel_manager.list_kernel_ids()
            if isinstance(
                provisioner := getattr(kernel_manager.get_kernel(kernel_id), "provisioner", None),
                LocalProvisioner,
            )
            and provisioner.has_process
        }

    def kernel_of(self, pid: int) -> str | None:
        """Return the id of the kernel that a process belongs to; None if there is none."""
        try:
            return self._kernels.get(os.getsid(pid))
        except OSError:
            return None
