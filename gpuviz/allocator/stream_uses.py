"""`gpuviz.record_stream`: arrays used on other streams than their own."""

from typing import TYPE_CHECKING, Any

from gpuviz.allocator.memory import caching_allocators
from gpuviz.data.stream_handle import known_handle

if TYPE_CHECKING:
    import cupy

# By handle and class: a wrapper of a handle must not replace the stream that owns it. A free
# records an event on each; the driver crashes on a destroyed stream.
_kept_streams: dict[tuple[int, type], Any] = {}


def record_stream(array: "cupy.ndarray", stream: "cupy.cuda.Stream") -> None:
    """Delay the reuse of an array's memory until ``stream`` has finished its work.

    Needed if the array is used on another stream than the one on which it was allocated, which is
    the only one that the allocator knows. Once the array is freed, its memory is reused only after
    the work that ``stream`` has queued by then. The memory must come from gpuviz's allocator; a
    view stands for its whole array. The stream is kept until the process ends; an
    ``ExternalStream`` must live as long.

    Raises:
        TypeError: ``array`` is no array of CuPy, or ``stream`` no stream.
        ValueError: The memory does not come from gpuviz's allocator, or the stream belongs to
            another device.
    """
    memory = getattr(getattr(array, "data", None), "mem", None)
    if memory is None:
        raise TypeError(f"array must be a cupy.ndarray, got {type(array).__name__}")
    if not isinstance(getattr(stream, "ptr", None), int):
        raise TypeError(f"stream must be a cupy.cuda.Stream, got {type(stream).__name__}")
    if getattr(stream, "device_id", -1) not in {-1, memory.device_id}:
        raise ValueError(
            f"stream belongs to device {stream.device_id}, but array to device {memory.device_id}"
        )
    allocator = caching_allocators().get(memory.device_id)
    if allocator is None or not allocator.owns(memory.ptr):
        raise ValueError(
            "record_stream needs memory of gpuviz's allocator; this array was allocated before the "
            "recording, or by another allocator",
        )
    _kept_streams[stream.ptr, type(stream)] = stream
    allocator.record_stream(memory.ptr, known_handle(stream.ptr))
