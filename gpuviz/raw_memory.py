"""Memory by its address, and arrays that several streams use."""

from typing import TYPE_CHECKING, Any

from gpuviz.allocator import caching_allocator, caching_allocators, chosen_device
from gpuviz.failure import explaining
from gpuviz.stream_handle import known_handle

if TYPE_CHECKING:
    import cupy

# When the memory is freed an event is recorded on each; the driver crashes on one that is gone.
_kept_streams: dict[int, Any] = {}


def record_stream(array: "cupy.ndarray", stream: "cupy.cuda.Stream") -> None:
    """Keep an array's memory until ``stream`` is done with what it has queued by the array's free.

    Needed when another stream uses the array than the one it was made on, the only one known to
    the allocator. The memory must come from gpuviz's allocator; a view counts for the whole. The
    stream is not destroyed before the process ends; an ``ExternalStream`` must live as long.

    Raises:
        ValueError: The memory is not gpuviz's, so nothing would hold it back.
    """
    memory = array.data.mem
    allocator = caching_allocators().get(memory.device_id)
    if allocator is None or not allocator.owns(memory.ptr):
        raise ValueError(
            "record_stream needs memory of gpuviz's allocator; this array was made before "
            "recording, or by another allocator",
        )
    _kept_streams.setdefault(stream.ptr, stream)
    allocator.record_stream(memory.ptr, known_handle(stream.ptr))


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
