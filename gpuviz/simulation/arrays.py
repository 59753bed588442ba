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
