"""`SimulatedGPU`: a GPU in software, with an interface like CuPy's."""

import gc
import time
from collections.abc import Iterable, Sequence

from gpuviz import _core
from gpuviz.allocator.arguments import integer, text
from gpuviz.allocator.non_copyable import NonCopyable
from gpuviz.data.tables import DICTIONARIES
from gpuviz.recorder import ranges
from gpuviz.recorder.prevention import NO_PREVENTION, Prevention
from gpuviz.recorder.tracer import TracerOptions
from gpuviz.simulation.arrays import (
    SimulatedArray,
    SimulatedPinnedArray,
    check_arrays,
    check_pinned,
)
from gpuviz.simulation.known_gpus import announce
from gpuviz.simulation.launch_arguments import (
    accesses,
    content,
    count,
    dimensions,
    nanoseconds,
)
from gpuviz.simulation.source import DEVICE, SimulatedSource
from gpuviz.simulation.stream import CurrentStream, SimulatedEvent, SimulatedStream
from gpuviz.simulation.tracer import SimulatedTracer

_COPIES = DICTIONARIES["activities", "copy_kind"]


class SimulatedGPU(NonCopyable):
    """A GPU in software, on any machine: memory, streams, kernels and copies.

    Its interface is similar to CuPy's, and it is recorded in the same way::

        gpu = gpuviz.SimulatedGPU(memory=16 << 30)
        with gpuviz.record(device=gpu) as recorder:
            stream = gpu.Stream(non_blocking=True)
            with stream:
                x = gpu.empty(64 << 20)
                y = gpu.empty(64 << 20)
                gpu.copy_to_device(x, pinned=True)
                gpu.launch("scale", reads=[x], writes=[y], duration=200e-6)
            stream.synchronize()

    Memory comes from gpuviz's caching allocator. Kernels take the given time. Copies run at the
    speed of PCIe 5 (55 GB/s from and to pinned memory, 8 GB/s pageable), one at a time in each
    direction, concurrently with kernels; kernels run concurrently while their shares of the GPU
    fit. Streams, events and the default stream order work as in CUDA, and waits take real time, so
    that live views behave as usual.

    Any thread may use it. Each thread has its own current stream.

    Args:
        memory: Size of the memory in bytes.
        settings: Settings of the caching allocator, as for `gpuviz.set_allocator_settings`.
        real_time: Whether waiting takes real time. Otherwise a simulated clock advances only while
            the program waits, so that programs finish immediately and deterministically.

    Raises:
        ValueError: ``settings`` has an unknown key or a bad value, or ``memory`` is 0.
    """

    def __init__(
        self,
        memory: int = 16 << 30,
        *,
        settings: str = "",
        real_time: bool = True,
    ) -> None:
        if integer("memory", memory, "a number of bytes") < 1:
            raise ValueError(f"memory must be at least 1 byte, got {memory}")
        self._native = _core.SimulatedGpu(DEVICE, real_time=real_time)
        self._real_time = real_time
        self._allocator = _core.CachingAllocator(
            _core.ScheduledDevice(self._native, memory),
            _core.AllocatorSettings.parse(text("settings", settings)),
        )
        self._allocator.set_last_resort(lambda: gc.collect() > 0)
        self._host_allocator = self._native.host_allocator(
            self._allocator.device, self._allocator.settings
        )
        self._current = CurrentStream(self._native, self._allocator, self._host_allocator)
        announce(self, self._allocator)

    def __del__(self) -> None:
        # The allocator releases its memory on deletion, which would wait for all work.
        if hasattr(self, "_native"):
            self._native.abandon()

    def Stream(  # noqa: N802 - as cupy.cuda.Stream
        self, *, non_blocking: bool = False, priority: int = 0
    ) -> SimulatedStream:
        """Return a new stream, destroyed with the last reference to it.

        Args:
            non_blocking: Do not synchronize with the default stream.
            priority: Kernels of streams with lower numbers run first.
        """
        handle = self._native.create_stream(non_blocking, priority)
        return SimulatedStream(self._native, self._current, handle, owned=True)

    def Event(self) -> SimulatedEvent:  # noqa: N802 - as cupy.cuda.Event
        """Return a new event."""
        return SimulatedEvent(self._native, self._current)

    @property
    def current_stream(self) -> SimulatedStream:
        """The stream of the innermost ``with stream:`` of this thread, else the default stream."""
        return self._current.stream

    @property
    def null_stream(self) -> SimulatedStream:
        """The legacy default stream, which synchronizes with all blocking streams."""
        return self._current.null

    def empty(self, nbytes: int) -> SimulatedArray:
        """Return an array of ``nbytes``, allocated on the current stream.

        Raises:
            OutOfMemoryError: The device is full, even after every retry (a ``MemoryError``).
        """
        size = integer("nbytes", nbytes, "a number of bytes")
        return SimulatedArray(self._native, self._allocator, size, self.current_stream.ptr)

    def empty_pinned(self, nbytes: int) -> SimulatedPinnedArray:
        """Return ``nbytes`` of pinned host memory, as ``cupyx.empty_pinned``, for `copy_to_device`.

        It comes from a caching allocator like torch's, with the settings ``pinned_max_...``.

        Raises:
            MemoryError: The driver has no more pinned memory.
        """
        size = integer("nbytes", nbytes, "a number of bytes")
        return SimulatedPinnedArray(self._native, self._host_allocator, size)

    def launch(  # noqa: PLR0913 - the parameters of a launch
        self,
        name: str,
        *,
        duration: float,
        reads: Iterable[SimulatedArray] = (),
        writes: Iterable[SimulatedArray] = (),
        scalars: Iterable[float] | None = None,
        share: float = 1.0,
        grid: Sequence[int] = (132,),
        block: Sequence[int] = (256,),
        registers: int = 32,
        shared_memory: int = 0,
    ) -> None:
        """Run a kernel on the current stream; the host does not wait.

        Args:
            name: Name of the kernel.
            duration: Duration in seconds, 1e-9 to 1e9.
            reads: The arrays that it reads.
            writes: The arrays that it writes; an array may be in both.
            scalars: The numbers that it receives. By default none, or unknown ones if it has the
                name of a function of CuPy with a scalar, ``cupy_add__float32_float_float32``.
            share: The share of the GPU that it occupies, above 0 and at most 1. Kernels on
                different streams run concurrently while their shares fit.
            grid: Up to three numbers of blocks.
            block: Up to three numbers of threads.
            registers: Registers per thread.
            shared_memory: Dynamic shared memory per block, in bytes.

        Raises:
            ValueError: A number is out of range.
        """
        for each, given in (("reads", reads), ("writes", writes)):
            if isinstance(given, SimulatedArray):
                raise TypeError(f"{each} must be a list of arrays, got an array")
        reads, writes = tuple(reads), tuple(writes)
        check_arrays(self._native, *reads, *writes)
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {share}")
        kernel = _core.GpuKernel(
            name=name,
            duration_ns=nanoseconds("duration", duration),
            multiprocessors=max(1, round(share * _core.SimulatedGpu.multiprocessors)),
            grid=dimensions("grid", grid),
            block=dimensions("block", block),
            registers=count("registers", registers),
            dynamic_shared_memory=count("shared_memory", shared_memory),
            accesses=accesses(name, reads, writes),
            arguments=content(name, scalars),
        )
        self.current_stream.launch(kernel)

    def copy_to_device(
        self,
        array: SimulatedArray,
        *,
        host: SimulatedPinnedArray | None = None,
        pinned: bool = False,
        blocking: bool = False,
    ) -> None:
        """Copy from the host into ``array`` on the current stream.

        Args:
            array: The array to write completely.
            host: The host memory, of at least the array's size. It implies ``pinned``, and is not
                reused before the copy is done.
            pinned: Whether the host memory is pinned, so that the host continues immediately. For
                pageable memory it waits for the copy, unless that is small (64 KiB).
            blocking: Copy on the default stream and always wait, like ``cudaMemcpy``.

        Raises:
            ValueError: ``host`` is smaller than the array.
        """
        check_pinned(self._native, host, array)
        pinned = pinned or host is not None
        self._copy("host_to_device", array.nbytes, None, array, pinned=pinned, blocking=blocking)
        self._use_host(host, blocking=blocking)

    def copy_to_host(
        self,
        array: SimulatedArray,
        *,
        host: SimulatedPinnedArray | None = None,
        pinned: bool = False,
        blocking: bool = False,
    ) -> None:
        """Copy ``array`` to the host on the current stream; see `copy_to_device`."""
        check_pinned(self._native, host, array)
        pinned = pinned or host is not None
        self._copy("device_to_host", array.nbytes, array, None, pinned=pinned, blocking=blocking)
        self._use_host(host, blocking=blocking)

    def copy(self, source: SimulatedArray, destination: SimulatedArray) -> None:
        """Copy an array into another on the current stream; the host does not wait.

        Raises:
            ValueError: The sizes differ.
        """
        if source.nbytes != destination.nbytes:
            raise ValueError(
                f"source and destination must have the same size, got {source.nbytes} and "
                f"{destination.nbytes} bytes",
            )
        self._copy("device_to_device", source.nbytes, source, destination)

    def fill(self, array: SimulatedArray) -> None:
        """Set all bytes of ``array`` on the current stream; the host does not wait."""
        self.current_stream.check_not_capturing("a fill")
        check_arrays(self._native, array)
        self._native.fill(self.current_stream.ptr, array.ptr, array.nbytes)

    def synchronize(self) -> None:
        """Wait until all streams have finished."""
        self._native.synchronize_device()

    def work_on_host(self, duration: float) -> None:
        """Keep the host busy for ``duration`` seconds while the GPU continues."""
        duration_ns = nanoseconds("duration", duration)
        if self._real_time:
            time.sleep(duration)
        else:
            self._native.wait_until(self._native.now_ns + duration_ns)

    def compile(self, kernel: str, *, duration: float, cached: bool = False) -> None:
        """Keep the host busy as CuPy does before the first launch of a kernel.

        Args:
            kernel: Its name.
            duration: How long it takes, in seconds.
            cached: Whether it is loaded from the cache on the disk instead of compiled.
        """
        name = kernel.encode()
        loading = ranges.begin(name, ranges.LOAD)
        compiling = None if cached else ranges.begin(name, ranges.COMPILE)
        self.work_on_host(duration)
        ranges.end(compiling)
        ranges.end(loading)

    def record_stream(self, array: SimulatedArray, stream: SimulatedStream) -> None:
        """Delay the reuse of the memory of ``array`` until ``stream`` has passed this point."""
        check_arrays(self._native, array)
        if not isinstance(stream, SimulatedStream):
            raise TypeError(f"stream must be a SimulatedStream, got {type(stream).__name__}")
        if not stream.belongs_to(self._native):
            raise ValueError("stream belongs to another SimulatedGPU")
        if array.ptr:
            self._allocator.record_stream(array.ptr, stream.ptr)

    def empty_cache(self) -> None:
        """Release memory that no array uses; waits until the device is idle."""
        self._native.empty_cache(self._allocator)

    def memory_stats(self) -> dict[str, int]:
        """Return the allocator's statistics, like `gpuviz.memory_stats`."""
        return self._allocator.memory_stats()

    def host_memory_stats(self) -> dict[str, int]:
        """Return the statistics of pinned memory, like `gpuviz.host_memory_stats`."""
        return self._host_allocator.memory_stats()

    def source(self, prevention: Prevention = NO_PREVENTION) -> SimulatedSource:
        """Return a source of its memory events for one recording."""
        return SimulatedSource(
            self._native,
            self._allocator,
            self._host_allocator,
            real_time=self._real_time,
            prevention=prevention,
        )

    def tracer(self, options: TracerOptions) -> SimulatedTracer:
        """Return a tracer of its streams for one recording."""
        return SimulatedTracer(self._native, options)

    def _use_host(self, host: SimulatedPinnedArray | None, *, blocking: bool) -> None:
        if host is not None and host.ptr:
            stream = 0 if blocking else self.current_stream.ptr
            self._host_allocator.record_event(host.ptr, self._allocator.device, stream)

    def _copy(  # noqa: PLR0913 - the parameters of a copy
        self,
        kind: str,
        nbytes: int,
        source: SimulatedArray | None,
        destination: SimulatedArray | None,
        *,
        pinned: bool = True,
        blocking: bool = False,
    ) -> None:
        self.current_stream.check_not_capturing("a copy")
        check_arrays(self._native, *(array for array in (source, destination) if array is not None))
        self._native.copy(
            self.current_stream.ptr,
            _COPIES.index(kind),
            nbytes,
            0 if source is None else source.ptr,
            0 if destination is None else destination.ptr,
            pinned,
            blocking,
        )
