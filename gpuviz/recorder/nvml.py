"""GPUs as reported by NVML, which creates no CUDA context."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_COMPUTE_MODES = {1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU of this machine, visible to CUDA or not.

    Attributes:
        index: Its position in the order of the PCI bus.
        total: Bytes of memory; 0 if unknown.
        used: Bytes in use by all processes; 0 if unknown.
        processes: Bytes by process; None if unknown, as in most containers.
        mig: Whether MIG is enabled.
        compute_mode: A restriction of its use; empty if there is none.
    """

    index: int
    name: str
    uuid: str
    total: int = 0
    used: int = 0
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

    GPUs with unknown memory are omitted. Keys: ``uuid`` and ``name``; ``total`` and ``used`` in
    bytes; ``processes``, each with ``pid``, ``used`` in bytes (None if unknown) and ``own``,
    whether it is this process. In a container the process ids may be those of its host.
    """
    found = gpus()
    return [
        {
            "uuid": gpu.uuid,
            "name": gpu.name,
            "total": gpu.total,
            "used": gpu.used,
            "processes": [
                {"pid": pid, "used": used, "own": pid == os.getpid()} for pid, used in gpu.processes
            ],
        }
        for gpu in (() if isinstance(found, str) else found)
        if gpu.total
    ]


def _gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def query(function: Callable[[Any], Any]) -> Any:
        """Return the result of a query, or None if the GPU does not support it."""
        try:
            return function(handle)
        except nvml.NVMLError:
            return None

    memory = query(nvml.nvmlDeviceGetMemoryInfo)
    running = query(nvml.nvmlDeviceGetComputeRunningProcesses) or []
    mig = query(nvml.nvmlDeviceGetMigMode)
    mode = query(nvml.nvmlDeviceGetComputeMode)
    return Gpu(
        index=index,
        name=str(query(nvml.nvmlDeviceGetName) or "unnamed"),
        uuid=str(query(nvml.nvmlDeviceGetUUID) or ""),
        total=0 if memory is None else int(memory.total),
        used=0 if memory is None else int(memory.used),
        processes=tuple((each.pid, each.usedGpuMemory) for each in running),
        mig=bool(mig and mig[0]),
        compute_mode=_COMPUTE_MODES.get(mode, ""),
    )
