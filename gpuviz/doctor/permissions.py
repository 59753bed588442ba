"""Permissions of this user on the GPU."""

import os
import re
from collections.abc import Iterator

from gpuviz.doctor.finding import Finding
from gpuviz.doctor.machine import Machine

_NODES = ("nvidiactl", "nvidia-uvm")
_WSL = "dxg"


def findings(machine: Machine) -> Iterator[Finding]:
    """Yield findings about device files and profiling permissions."""
    folder = machine.root / "dev"
    nodes = sorted(path.name for path in folder.glob("nvidia*") if not path.is_dir())
    if nodes or (machine.root / "proc/driver/nvidia").exists():
        yield _device_files(machine, nodes)
    elif (folder / _WSL).exists():
        yield Finding("device files", "ok", f"/dev/{_WSL} (Windows Subsystem for Linux)")
    restricted = re.search(
        r"^RmProfilingAdminOnly: (\d)", machine.text("proc/driver/nvidia/params"), re.MULTILINE
    )
    if restricted is not None:
        yield _profiling(machine, for_admins=restricted[1] == "1")


def _device_files(machine: Machine, nodes: list[str]) -> Finding:
    missing = [name for name in _NODES if name not in nodes]
    if not any(re.fullmatch(r"nvidia\d+", name) for name in nodes):
        missing.append("nvidia0")
    refused = [
        name for name in nodes if not os.access(machine.root / "dev" / name, os.R_OK | os.W_OK)
    ]
    if missing:
        found = f"{', '.join(f'/dev/{name}' for name in missing)} missing"
        meaning = "CUDA needs these files to use the GPU."
        remedy = "Start the container with --gpus all, or run nvidia-modprobe -u -c=0."
        return Finding("device files", "problem", found, meaning, remedy)
    if refused:
        found = f"{', '.join(f'/dev/{name}' for name in refused)} not accessible to this user"
        remedy = "Add the user to the group that owns them, usually video."
        return Finding("device files", "warning", found, "CUDA may fail to start.", remedy)
    return Finding("device files", "ok", ", ".join(f"/dev/{name}" for name in nodes))


def _profiling(machine: Machine, *, for_admins: bool) -> Finding:
    if not for_admins:
        return Finding("profiling", "ok", "allowed for every user")
    if machine.is_admin:
        return Finding(
            "profiling", "ok", "for administrators only; this process has administrator rights"
        )
    return Finding(
        "profiling",
        "warning",
        "for administrators only (RmProfilingAdminOnly: 1)",
        "Hardware counters are not available, but gpuviz does not use them; since CUDA 10.2 "
        "kernels and copies can be traced nevertheless.",
        "If streams are missing, set NVreg_RestrictProfilingToAdminUsers=0 for the kernel module "
        "nvidia in /etc/modprobe.d.",
    )
