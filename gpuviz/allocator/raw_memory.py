"""Allocation and free of raw memory by address."""

from typing import TYPE_CHECKING

from gpuviz.allocator.arguments import integer
from gpuviz.allocator.failure_report import explaining
from gpuviz.allocator.memory import caching_allocator, caching_allocators, chosen_device
from gpuviz.data.stream_handle import known_handle
from gpuviz.frameworks.cupy_current import current_stream

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
        ValueError: ``size`` is negative or 2**64 or more, or there is no such device or stream.
        TypeError: ``size`` or ``device`` is no integer, or ``stream`` neither that nor a stream.
        MemoryError: The device, or the allowed fraction of it, is full.
        DeviceUnavailableError: CuPy or a usable driver is missing.
    """
    size = integer("size", size, "a number of bytes")
    ordinal = chosen_device(device)
    with explaining:
        return caching_allocator(ordinal).allocate(size, _stream_handle(stream, ordinal))


def _stream_handle(stream: "cupy.cuda.Stream | int | None", device: int) -> int:
    if stream is None:
        stream = current_stream(device)
    handle = getattr(stream, "ptr", stream)
    return known_handle(integer("stream", handle, "a cupy.cuda.Stream or a handle as int"))


def caching_allocator_delete(address: int) -> None:
    """Free memory of `caching_allocator_alloc`, on any device; the address 0 does nothing.

    Raises:
        TypeError: ``address`` is no integer.
        ValueError: No live allocation begins at ``address``.
    """
    address = integer("address", address, "an address as int")
    for allocator in caching_allocators().values():
        if allocator.owns(address):
            allocator.free(address)
            return
    if address:
        raise ValueError(f"invalid device pointer: {address:#x} begins no live allocation")
