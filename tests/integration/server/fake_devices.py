"""A fake module ``pynvml`` with two GPUs, which are described in a file."""

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MODULE = '''
"""Tells what the file beside it says, and counts in another how often it was asked."""
import json
import time
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).parent


class NVMLError(Exception):
    pass


def said():
    return json.loads((HERE / "said.json").read_text())


def nvmlInit():
    with (HERE / "asked").open("a") as asked:
        asked.write(".")
    while said()["is_held"]:
        time.sleep(0.01)
    if said()["failure"] == "no driver":
        raise NVMLError("Driver Not Loaded")
    if said()["failure"]:
        raise RuntimeError(said()["failure"])


def nvmlShutdown():
    pass


def nvmlDeviceGetCount():
    return len(said()["devices"])


def nvmlDeviceGetHandleByIndex(index):
    return said()["devices"][index]


def nvmlDeviceGetMemoryInfo(device):
    return SimpleNamespace(total=device["total"], used=device["used"])


def nvmlDeviceGetUUID(device):
    return device["uuid"]


def nvmlDeviceGetName(device):
    return device["name"]


def nvmlDeviceGetComputeRunningProcesses(device):
    return [
        SimpleNamespace(pid=each["pid"], usedGpuMemory=each["used"])
        for each in device["processes"]
    ]


def nvmlDeviceGetMigMode(device):
    raise NVMLError("Not Supported")


def nvmlDeviceGetComputeMode(device):
    return 0
'''
GIB = 1 << 30
# Larger than any process id of Linux.
FIRST_PID = 1 << 30


def two_devices() -> list[dict[str, Any]]:
    """Return the default devices of the fake."""
    return [
        {
            "uuid": "GPU-aaaa",
            "name": "NVIDIA H100 80GB HBM3",
            "total": 80 * GIB,
            "used": 53 * GIB,
            "processes": [
                {"pid": FIRST_PID, "used": 12 * GIB},
                {"pid": FIRST_PID + 1, "used": 40 * GIB},
            ],
        },
        {
            "uuid": "GPU-bbbb",
            "name": "NVIDIA L4",
            "total": 24 * GIB,
            "used": 3 * GIB,
            "processes": [{"pid": FIRST_PID + 2, "used": None}],
        },
    ]


@dataclass
class FakeDevices:
    """Writes the module into a folder, to be put on the path of Python.

    Attributes:
        is_held: Whether calls wait until this is false.
        failure: The error of all calls; ``"no driver"`` is NVML's own error.
    """

    folder: Path
    devices: list[dict[str, Any]] = field(default_factory=two_devices)
    is_held: bool = False
    failure: str = ""

    def __post_init__(self) -> None:
        (self.folder / "pynvml.py").write_text(MODULE)
        (self.folder / "asked").touch()
        self.tell()

    def tell(self, **changed: Any) -> None:
        """Change the module's devices, after earlier readings have expired."""
        for name, value in changed.items():
            setattr(self, name, value)
        said = {name: value for name, value in asdict(self).items() if name != "folder"}
        written = self.folder / "said.json.new"
        written.write_text(json.dumps(said))
        written.rename(self.folder / "said.json")
        time.sleep(1.1)

    @property
    def times_asked(self) -> int:
        return len((self.folder / "asked").read_text())
