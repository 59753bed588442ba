"""GPUs as reported by NVML, which creates no CUDA context."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MEMINFO = Path("/proc/meminfo")
_COMPUTE_MODES = {1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU of this machine, visible to CUDA or not.

    Attributes:
        index: Its position in the order of the PCI bus.
        total: Bytes of memory; 0 if unknown.
        used: Bytes in use by all processes; 0 if unknown.
        shares_host_memory: Whether it has no memory of its own, as GB10; ``total`` and ``used`` are
            those of the host's memory then.
        processes: Bytes by process; None if unknown, as in most containers.
        mig: Whether MIG is enabled.
        compute_mode: A restriction of its use; empty if there is none.
    """

    index: int
    name: str
    uuid: str
    total: int = 0
    used: int = 0
    shares_host_memory: bool = False
    processes: tuple[tuple[int, int | None], ...] = ()
    mig: bool = False
    compute_mode: str = ""


def gpus() -> list[Gpu] | str:
    """Return all GPUs, or the reason why they are unknown."""
    try:
        import pynvml
    except ImportError as error:
        return str(error)
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    try:
        return [_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        return str(error)
    finally:
        pynvml.nvmlShutdown()


def device_totals() -> list[dict[str, Any]]:
    """Return the memory of each GPU by process, as JSON values.

    Keys: ``uuid`` and ``name``; ``total`` and ``used`` in bytes, 0 if unknown;
    ``sharesHostMemory``, see `Gpu`; ``processes``, each with ``pid``, ``used`` in bytes (None
    if unknown) and ``own``, whether it is this process. In a container the process ids may be those
    of its host.
    """
    found = gpus()
    return [
        {
            "uuid": gpu.uuid,
            "name": gpu.name,
            "total": gpu.total,
            "used": gpu.used,
            "sharesHostMemory": gpu.shares_host_memory,
            "processes": [
                {"pid": pid, "used": used, "own": pid == os.getpid()} for pid, used in gpu.processes
            ],
        }
        for gpu in (() if isinstance(found, str) else found)
    ]


def _gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def query(function: Callable[[Any], Any]) -> Any:
        """Return the result of a query, or None if the GPU does not support it."""
        try:
            return function(handle)
        except nvml.NVMLError:
            return None

    total, used, is_shared = _memory(nvml, handle)
    running = query(nvml.nvmlDeviceGetComputeRunningProcesses) or []
    mig = query(nvml.nvmlDeviceGetMigMode)
    mode = query(nvml.nvmlDeviceGetComputeMode)
    return Gpu(
        index=index,
        name=str(query(nvml.nvmlDeviceGetName) or "unnamed"),
        uuid=str(query(nvml.nvmlDeviceGetUUID) or ""),
        total=total,
        used=used,
        shares_host_memory=is_shared,
        processes=tuple((each.pid, each.usedGpuMemory) for each in running),
        mig=bool(mig and mig[0]),
        compute_mode=_COMPUTE_MODES.get(mode, ""),
    )


def _memory(nvml: Any, handle: Any) -> tuple[int, int, bool]:
    """Return total and used bytes, 0 if unknown, and whether they are of the host's memory."""
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as error:
        has_none = error.value == nvml.NVML_ERROR_NOT_SUPPORTED
        return (*_host_memory(), True) if has_none and _uses_ats(nvml, handle) else (0, 0, False)
    return int(memory.total), int(memory.used), False


def _uses_ats(nvml: Any, handle: Any) -> bool:
    """Whether the GPU translates addresses with the host's page tables."""
    try:
        mode = nvml.nvmlDeviceGetAddressingMode(handle)
        return bool(mode == nvml.NVML_DEVICE_ADDRESSING_MODE_ATS)
    except (nvml.NVMLError, AttributeError):  # drivers and bindings before 2025 lack it
        return False


def _host_memory() -> tuple[int, int]:
    found = dict(
        re.findall(r"^(\w+): +(\d+) kB", _MEMINFO.read_text(encoding="ascii"), re.MULTILINE)
    )
    total, available = (int(found[name]) << 10 for name in ("MemTotal", "MemAvailable"))
    return total, total - available
