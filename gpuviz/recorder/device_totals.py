"""Memory of each GPU by process."""

import os
from typing import Any


def device_totals() -> list[dict[str, Any]]:
    """Return a row for each GPU that NVML knows; none where there is no NVML.

    No CUDA context is made. Keys: ``uuid`` and ``name``; ``total`` and ``used`` in bytes;
    ``processes``, each with ``pid``, ``used`` in bytes (None where the driver does not tell) and
    ``own``, whether it is this one. In a container their ids may be those of its host.
    """
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [
            _totals(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index))
            for index in range(pynvml.nvmlDeviceGetCount())
        ]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _totals(nvml: Any, handle: Any) -> dict[str, Any]:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return {
        "uuid": str(nvml.nvmlDeviceGetUUID(handle)),
        "name": str(nvml.nvmlDeviceGetName(handle)),
        "total": int(memory.total),
        "used": int(memory.used),
        "processes": [
            {"pid": each.pid, "used": each.usedGpuMemory, "own": each.pid == os.getpid()}
            for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        ],
    }
