"""The CUDA driver, which is opened on first use."""

from functools import cache

from gpuviz import _core
from gpuviz.errors import DeviceUnavailableError
from gpuviz.recorder.nvml import gpus


def driver_version() -> int:
    """Return the CUDA version that the driver supports, as 1000 * major + 10 * minor; 0 if none."""
    try:
        return _core.CudaDriver.open().version
    except _core.DeviceError:
        return 0


@cache
def cuda_driver() -> _core.CudaDriver:
    """Return the CUDA driver.

    Raises:
        DeviceUnavailableError: The driver is missing or too old, or there is no GPU.
    """
    try:
        return _core.CudaDriver.open()
    except _core.DeviceError as error:
        raise DeviceUnavailableError(
            f"{error} Loading recordings, reports, gpuviz.SimulatedGPU and `gpuviz demo` "
            "work without a GPU.",
        ) from None


def device_count() -> int | None:
    """Return how many GPUs there are; None if counting them would start CUDA."""
    if cuda_driver.cache_info().currsize:
        return cuda_driver().device_count()
    found = gpus()
    return None if isinstance(found, str) else len(found)
