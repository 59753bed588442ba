"""`gpuviz.record_stream`: arrays used on other streams than their own."""

from typing import TYPE_CHECKING, Any

from gpuviz.allocator.memory import caching_allocators
from gpuviz.recording.stream_handle import known_handle

if TYPE_CHECKING:
    import cupy

# By handle and class: a wrapper of a handle must not take the place of the stream that owns it.
# When memory is freed an event is recorded on each; the driver crashes on one that is gone.
_kept_streams: dict[tuple[int, type], Any] = {}


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
    _kept_streams[stream.ptr, type(stream)] = stream
    allocator.record_stream(memory.ptr, known_handle(stream.ptr))
