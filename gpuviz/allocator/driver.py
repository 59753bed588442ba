"""The CUDA driver, which is opened on first use."""

from functools import cache

from gpuviz import _core
from gpuviz.errors import DeviceUnavailableError


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
            f"{error} Loading recordings, reports and `gpuviz demo` work without a GPU.",
        ) from None
