"""The module cupy, and the current device and stream of the calling thread."""

import importlib
from types import ModuleType

from gpuviz.allocator.driver import cuda_driver, driver_version
from gpuviz.errors import DeviceUnavailableError
from gpuviz.installation import cuda_requirements, pip_install


def import_cupy() -> ModuleType:
    """Return the module cupy.

    Raises:
        DeviceUnavailableError: CuPy is not installed or finds no GPU.
    """
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceUnavailableError(
            f"CuPy cannot be imported ({error}): "
            f"`{pip_install(*cuda_requirements(driver_version() // 1000))}`. "
            "Loading recordings, reports and `gpuviz demo` work without it.",
        ) from error
    return cupy


def current_device() -> int:
    """Return the ordinal of the calling thread's current device.

    Raises:
        DeviceUnavailableError: There is no CuPy or no usable driver.
    """
    cuda_driver()
    return int(import_cupy().cuda.runtime.getDevice())


def current_stream(device: int) -> int:
    """Return the handle of the calling thread's current stream on a device."""
    return int(import_cupy().cuda.get_current_stream(device).ptr)
