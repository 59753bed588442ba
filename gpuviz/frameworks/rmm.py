"""RMM, and with it cuDF and cuML, on gpuviz's caching allocator; the only file that imports rmm."""

from typing import Any

from gpuviz import _core
from gpuviz.allocator.memory import cuda_driver
from gpuviz.frameworks.shared_pool import explained, import_library, shared_pool


class _Process:
    """gpuviz's resources by device, and those that they have replaced."""

    ours: dict[int, Any] = {}  # noqa: RUF012 - one for the process
    previous: dict[int, Any] = {}  # noqa: RUF012


def install() -> None:
    """Let RMM allocate from gpuviz's caching allocator on all devices.

    Buffers that exist keep their memory resource. It does nothing the second time.

    Raises:
        DeviceUnavailableError: RMM or a usable driver is missing.
    """
    resources = _resources()
    for device in range(cuda_driver().device_count()):
        current = resources.get_per_device_resource(device)
        if current is _Process.ours.get(device):
            continue
        if device not in _Process.ours:
            _Process.ours[device] = _resource(resources, device)
        _Process.previous[device] = current
        resources.set_per_device_resource(device, _Process.ours[device])


def uninstall() -> None:
    """Restore the memory resources of the devices, where they are gpuviz's."""
    if not _Process.previous:
        return
    resources = _resources()
    for device, previous in _Process.previous.items():
        if resources.get_per_device_resource(device) is _Process.ours[device]:
            resources.set_per_device_resource(device, previous)
    _Process.previous.clear()


def is_installed() -> bool:
    """Return whether RMM allocates from gpuviz's caching allocator on all devices."""
    return bool(_Process.previous) and all(
        _resources().get_per_device_resource(device) is _Process.ours.get(device)
        for device in range(cuda_driver().device_count())
    )


def programs_choice() -> str:
    """Return the name of the memory resource that the program has set; empty without one."""
    resources = _resources()
    for device in range(cuda_driver().device_count()):
        current = resources.get_per_device_resource(device)
        if type(current) is not resources.CudaMemoryResource:
            return type(current).__qualname__
    return ""


def _resources() -> Any:
    return import_library("rmm", "rmm-cu13").mr


def _resource(resources: Any, device: int) -> Any:
    pool = shared_pool()

    def allocate(size: int, stream: Any) -> int:
        try:
            return pool.allocate(size, device, stream, _core.Framework.rmm)
        except MemoryError as error:
            raise MemoryError(explained(error)) from None

    def deallocate(address: int, _: int, stream: Any) -> None:
        pool.free_after(address, device, stream)

    return resources.CallbackMemoryResource(allocate, deallocate)
