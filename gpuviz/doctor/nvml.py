"""GPUs as reported by NVML, which creates no context."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

_COMPUTE_MODES = {1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU of this machine, visible to CUDA or not.

    Attributes:
        index: In the order of the PCI bus.
        total: Bytes of memory; 0 if unknown.
        used: Bytes in use by all processes; 0 if unknown.
        processes: Bytes by process; None if unknown, as in most containers.
        mig: Whether MIG is enabled.
        compute_mode: A restriction on its use; empty without one.
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
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    try:
        return [_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        return str(error)
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = _query(pynvml.nvmlDeviceGetMemoryInfo, handle)
    running = _query(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
    mig = _query(pynvml.nvmlDeviceGetMigMode, handle)
    mode = _query(pynvml.nvmlDeviceGetComputeMode, handle)
    return Gpu(
        index=index,
        name=str(_query(pynvml.nvmlDeviceGetName, handle) or "unnamed"),
        uuid=str(_query(pynvml.nvmlDeviceGetUUID, handle) or ""),
        total=0 if memory is None else int(memory.total),
        used=0 if memory is None else int(memory.used),
        processes=tuple((each.pid, each.usedGpuMemory) for each in running),
        mig=bool(mig and mig[0]),
        compute_mode=_COMPUTE_MODES.get(mode, ""),
    )


def _query(function: Callable[[Any], Any], handle: Any) -> Any:
    """Return the result of a query, or None if the GPU does not support it."""
    try:
        return function(handle)
    except pynvml.NVMLError:
        return None
