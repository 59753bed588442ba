"""Allocation and free of raw memory by address."""

from typing import TYPE_CHECKING

from gpuviz.allocator.memory import caching_allocator, caching_allocators, chosen_device
from gpuviz.out_of_memory.failure_report import explaining
from gpuviz.recording.stream_handle import known_handle

if TYPE_CHECKING:
    import cupy


def caching_allocator_alloc(
    size: int,
    device: int | None = None,
    stream: "cupy.cuda.Stream | int | None" = None,
) -> int:
    """Allocate ``size`` bytes and return their address; free it with `caching_allocator_delete`.

    Args:
        size: Bytes; 0 returns the address 0.
        device: Its ordinal; CuPy's current device by default.
        stream: The stream that uses the memory, CuPy's or a raw handle; the current one by default.

    Raises:
        ValueError: ``size`` is negative.
        TypeError: ``stream`` is neither a stream nor an integer.
        MemoryError: The device, or the allowed fraction of it, is full.
        DeviceUnavailableError: CuPy or a usable driver is missing.
    """
    if size < 0:
        raise ValueError(f"Invalid memory size: {size}. It must be 0 bytes or more.")
    ordinal = chosen_device(device)
    with explaining:
        return caching_allocator(ordinal).allocate(size, _stream_handle(stream, ordinal))


def _stream_handle(stream: "cupy.cuda.Stream | int | None", device: int) -> int:
    if stream is None:
        from gpuviz.frameworks.cupy import current_stream

        stream = current_stream(device)
    handle = getattr(stream, "ptr", stream)
    if not isinstance(handle, int) or isinstance(handle, bool):
        raise TypeError(f"stream must be a cupy.cuda.Stream or an int, got {type(stream).__name__}")
    return known_handle(handle)


def caching_allocator_delete(address: int) -> None:
    """Free memory of `caching_allocator_alloc`, on any device; the address 0 does nothing.

    Raises:
        ValueError: No live allocation begins at ``address``.
    """
    for allocator in caching_allocators().values():
        if allocator.owns(address):
            allocator.free(address)
            return
    if address:
        raise ValueError(f"invalid device pointer: {address:#x} begins no live allocation")
