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
        used: Bytes in use by anybody; 0 if unknown.
        processes: Bytes by process; None where the library does not tell, as in containers.
        mig: Whether it is divided into instances.
        compute_mode: Who may use it; empty for everybody.
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
    """Return all GPUs, or why they cannot be told."""
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
    memory = _answer(pynvml.nvmlDeviceGetMemoryInfo, handle)
    running = _answer(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
    mig = _answer(pynvml.nvmlDeviceGetMigMode, handle)
    mode = _answer(pynvml.nvmlDeviceGetComputeMode, handle)
    return Gpu(
        index=index,
        name=str(_answer(pynvml.nvmlDeviceGetName, handle) or "unnamed"),
        uuid=str(_answer(pynvml.nvmlDeviceGetUUID, handle) or ""),
        total=0 if memory is None else int(memory.total),
        used=0 if memory is None else int(memory.used),
        processes=tuple((each.pid, each.usedGpuMemory) for each in running),
        mig=bool(mig and mig[0]),
        compute_mode=_COMPUTE_MODES.get(mode, ""),
    )


def _answer(question: Callable[[Any], Any], handle: Any) -> Any:
    """Return what a GPU answers, None if it does not support the question."""
    try:
        return question(handle)
    except pynvml.NVMLError:
        return None
