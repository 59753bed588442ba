"""Arrays of a simulated GPU, and buffers of its host."""

from gpuviz import _core
from gpuviz.allocator.failure_report import explaining
from gpuviz.allocator.non_copyable import NonCopyable


class SimulatedArray(NonCopyable):
    """Memory of a `SimulatedGPU` without contents, freed with the last reference to it.

    Attributes:
        gpu: The GPU that it belongs to.
        nbytes: Size in bytes.
        ptr: Address.
    """

    # Slots can be read without running Python code, during `gpuviz.holders`.
    __slots__ = ("__weakref__", "_allocator", "gpu", "nbytes", "ptr")

    def __init__(
        self,
        native: _core.SimulatedGpu,
        allocator: _core.CachingAllocator,
        nbytes: int,
        stream: int,
    ) -> None:
        self.gpu = native
        self._allocator = allocator
        self.nbytes = nbytes
        self.ptr = 0
        with explaining:
            self.ptr = native.allocate(allocator, nbytes, stream)

    def __del__(self) -> None:
        if self.ptr:
            self.gpu.free(self._allocator, self.ptr)

    def __repr__(self) -> str:
        return f"<SimulatedArray of {self.nbytes} bytes at {self.ptr:#x}>"


class SimulatedPinnedArray(NonCopyable):
    """Pinned host memory of a `SimulatedGPU` without contents, freed with the last reference to it.

    It is reused once the copies from and to it are done.

    Attributes:
        gpu: The GPU that it belongs to.
        nbytes: Size in bytes.
        ptr: Address.
    """

    __slots__ = ("__weakref__", "_allocator", "gpu", "nbytes", "ptr")

    def __init__(
        self, native: _core.SimulatedGpu, allocator: _core.HostAllocator, nbytes: int
    ) -> None:
        self.gpu = native
        self._allocator = allocator
        self.nbytes = nbytes
        self.ptr = 0
        self.ptr = native.allocate_host(allocator, nbytes)

    def __del__(self) -> None:
        if self.ptr:
            self.gpu.free_host(self._allocator, self.ptr)

    def __repr__(self) -> str:
        return f"<SimulatedPinnedArray of {self.nbytes} bytes at {self.ptr:#x}>"


def check_arrays(gpu: _core.SimulatedGpu, *arrays: SimulatedArray) -> None:
    """Check that arrays are those of a GPU.

    Raises:
        TypeError: One is no array.
        ValueError: One belongs to another GPU.
    """
    for array in arrays:
        if not isinstance(array, SimulatedArray):
            raise TypeError(f"array must be a SimulatedArray, got {type(array).__name__}")
        if array.gpu is not gpu:
            raise ValueError("array belongs to another SimulatedGPU")


def check_pinned(
    gpu: _core.SimulatedGpu, host: SimulatedPinnedArray | None, array: SimulatedArray
) -> None:
    """Check an array of a GPU, and the pinned memory that is copied from or to it, if any.

    Raises:
        TypeError: One is no array.
        ValueError: One belongs to another GPU, or the pinned memory is smaller than the array.
    """
    check_arrays(gpu, array)
    if host is None:
        return
    if not isinstance(host, SimulatedPinnedArray):
        raise TypeError(f"host must be a SimulatedPinnedArray, got {type(host).__name__}")
    if host.gpu is not gpu:
        raise ValueError("host belongs to another SimulatedGPU")
    if host.nbytes < array.nbytes:
        raise ValueError(
            f"host must have at least the array's {array.nbytes} bytes, got {host.nbytes}",
        )
