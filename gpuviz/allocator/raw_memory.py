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
    """Return the address of ``size`` bytes, to be freed by `caching_allocator_delete`; 0 for 0.

    Args:
        size: Bytes.
        device: Its ordinal; CuPy's current device by default.
        stream: On which the memory is used, CuPy's or a raw handle; the current one by default.

    Raises:
        ValueError: ``size`` is negative.
        TypeError: ``stream`` is neither a stream nor an integer.
        MemoryError: The device, or its share, is full.
        DeviceUnavailableError: There is no CuPy or no usable driver.
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
    """Free what `caching_allocator_alloc` returned, on whichever device it is; 0 does nothing.

    Raises:
        ValueError: No live allocation begins at ``address``.
    """
    for allocator in caching_allocators().values():
        if allocator.owns(address):
            allocator.free(address)
            return
    if address:
        raise ValueError(f"invalid device pointer: {address:#x} begins no live allocation")
