"""Devices and their memory by the driver, whatever library uses them."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from gpuviz import _core
from gpuviz.allocator.driver import cuda_driver


@cache
def _device(ordinal: int) -> _core.CudaDevice:
    return _core.CudaDevice(cuda_driver(), ordinal)


def used_bytes(devices: Iterable[int]) -> list[tuple[int, int]]:
    """Return each device, which must be in use, with the bytes used on it by all processes."""
    used = []
    for device in devices:
        free, total = _device(device).memory_info()
        used.append((device, total - free))
    return used


def device_rows(devices: Iterable[int]) -> list[dict[str, Any]]:
    """Return rows of the table ``devices``."""
    driver = cuda_driver()
    return [
        {
            "id": device,
            "name": driver.device_name(device),
            "total_memory": driver.total_memory(device),
            "kind": "cuda",
            "uuid": driver.device_uuid(device),
            "multiprocessors": driver.multiprocessors(device),
            "memory_bandwidth": driver.memory_bandwidth(device),
        }
        for device in sorted(devices)
    ]
