"""Numba on gpuviz's caching allocator; the only file that imports numba-cuda."""

import ctypes
import sys
import weakref
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from gpuviz import _core
from gpuviz.allocator.memory import caching_allocator
from gpuviz.errors import InstallationError
from gpuviz.frameworks.shared_pool import explained, import_library, shared_pool

# The modules with the interface for memory managers: that of numba-cuda and, with the same
# contents, that of numba-cuda-mlir.
DRIVERS = ("numba.cuda.cudadrv.driver", "numba_cuda_mlir.numba_cuda.cudadrv.driver")
_INTERFACE = 1
# CU_STREAM_LEGACY, which the allocator tells from 0, the stream of all allocations: a free waits.
_LEGACY = 1
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_TOO_LATE = (
    "Numba already has a context on a GPU, which keeps its memory manager. Call "
    "gpuviz.allocators.numba.install() before Numba first uses the GPU."
)
_SIMULATED = "Numba simulates CUDA (NUMBA_ENABLE_CUDASIM) and uses no GPU memory."


def install() -> None:
    """Let Numba allocate device arrays from gpuviz's caching allocator, as CuPy does.

    Call it before Numba first uses the GPU. It does nothing the second time. It applies to
    numba-cuda-mlir if that is imported, and to ``numba.cuda`` if that is imported or neither is.

    Raises:
        InstallationError: Numba has already used the GPU, or simulates CUDA.
        DeviceUnavailableError: Numba or a usable driver is missing.
    """
    for driver in _imported_drivers() or [import_library(DRIVERS[0], "numba-cuda")]:
        _install(driver)


def uninstall() -> None:
    """Let Numba use its own memory manager for GPUs that it has not used yet."""
    for driver in _imported_drivers():
        if _is_ours(driver):
            driver.set_memory_manager(driver.NumbaCUDAMemoryManager)


def is_installed() -> bool:
    """Return whether Numba allocates from gpuviz's caching allocator on GPUs it will use next."""
    drivers = _imported_drivers()
    return bool(drivers) and all(map(_is_ours, drivers))


def programs_choice() -> str:
    """Return the name of the memory manager that the program has set; empty without one."""
    for driver in _imported_drivers():
        own = (None, getattr(driver, "NumbaCUDAMemoryManager", None))
        if driver._memory_manager not in own:  # noqa: SLF001 - the only way to ask
            return str(driver._memory_manager.__qualname__)  # noqa: SLF001
        if driver.config.CUDA_MEMORY_MANAGER != "default":
            return str(driver.config.CUDA_MEMORY_MANAGER)
    return ""


def memory_manager() -> type:
    """Return the class for ``NUMBA_CUDA_MEMORY_MANAGER=gpuviz.allocators.numba``."""
    return _manager_of((_imported_drivers() or [import_library(DRIVERS[0], "numba-cuda")])[0])


def _imported_drivers() -> list[ModuleType]:
    return [sys.modules[name] for name in DRIVERS if name in sys.modules]


def _is_ours(driver: Any) -> bool:
    return driver._memory_manager is _manager_of(driver)  # noqa: SLF001 - the only way to ask


def _install(driver: Any) -> None:
    if not hasattr(driver, "HostOnlyCUDAMemoryManager"):
        raise InstallationError(_SIMULATED)
    if _is_ours(driver):
        return
    shared_pool()
    if any(device.primary_context is not None for device in driver.driver.devices.values()):
        raise InstallationError(_TOO_LATE)
    driver.set_memory_manager(_manager_of(driver))


@cache
def _manager_of(driver: Any) -> type:
    """Return the memory manager for a module of `DRIVERS`."""
    mixin, base = driver.GetIpcHandleMixin, driver.HostOnlyCUDAMemoryManager

    class GpuvizMemoryManager(mixin, base):  # type: ignore[misc, valid-type] # of a module as Any
        """Device memory from gpuviz's caching allocator.

        Numba does not report streams: memory is allocated for the default stream, and reused once
        all blocking streams have done the work queued until the free.
        """

        interface_version = _INTERFACE

        def initialize(self) -> None:
            """Do nothing: the allocator of a device is created when it is first used."""

        def memalloc(self, size: int) -> Any:
            """Return a pointer to ``size`` bytes of device memory."""
            device = self.context.device.id
            address = self._allocated(size, device)
            pointer = driver.AutoFreePointer(
                weakref.proxy(self.context),
                ctypes.c_void_p(address),
                size,
                finalizer=_finalizer(self.allocations, address, device),
            )
            self.allocations[address] = pointer
            return pointer.own()

        def _allocated(self, size: int, device: int) -> int:
            pool = shared_pool()
            try:
                return pool.allocate(size, device, 0, _core.Framework.numba)
            except MemoryError as error:
                if not len(self.deallocations):
                    raise self._out_of_memory(error) from None
            self.deallocations.clear()
            try:
                return pool.allocate(size, device, 0, _core.Framework.numba)
            except MemoryError as error:
                raise self._out_of_memory(error) from None

        @staticmethod
        def _out_of_memory(error: Exception) -> Exception:
            # Numba's own target reaches the driver by ctypes, where codes are integers.
            binding = getattr(driver, "binding", None)
            code = _OUT_OF_MEMORY if binding is None else binding.CUresult.CUDA_ERROR_OUT_OF_MEMORY
            failure: Exception = driver.CudaAPIError(code, explained(error))
            return failure

        def get_memory_info(self) -> Any:
            """Return the free and the total bytes of the device."""
            free, total = caching_allocator(self.context.device.id).device.memory_info()
            return driver.MemoryInfo(free=free, total=total)

    return GpuvizMemoryManager


def _finalizer(allocations: Any, address: int, device: int) -> Callable[[], None]:
    """Return the function that frees memory, which may run at any time until the process ends."""
    free_after = shared_pool().free_after

    def finalize() -> None:
        allocations.pop(address, None)
        free_after(address, device, _LEGACY)

    return finalize
