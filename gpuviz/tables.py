"""The tables of a recording: their columns, types and meaning.

Times are nanoseconds since the recording's start. Ids start at 1; 0 means "none", except for
``device`` (an ordinal) and ``pool`` (see ``pools``).
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# In the order of gpuviz::Action in native/record/memory_event.hpp.
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "record_stream",
    "snapshot",
    "annotate",
)


@cache
def schemas() -> "dict[str, pa.Schema]":
    """Return the Arrow schema of every table that a file holds, by name.

    - ``memory_events``: one row for each allocator event, in the order in which they happened on a
      device. ``size`` is the rounded size of the block or the bytes of the segment,
      ``requested_size`` the caller's bytes (0 for segments). For ``oom``, ``address`` is the
      device's free memory. For ``record_stream``, ``stream`` is the stream that uses the block.
    - ``devices``: the GPUs seen.
    - ``streams``: ``id`` is what other tables call ``stream``; ``handle`` is the raw CUstream.
    - ``pools``: ``id`` is ``2 * n + (1 if large)``; n is 0 for the default pool, else the number of
      the MemPool. ``segment_type`` is ``small``, ``large`` or ``unknown`` (a foreign allocator's).
    - ``stacks``: ``frames`` are ids of ``frames``, innermost first.
    - ``frames``: ``source`` is the text of the line, empty where unknown; ``cell`` is the execution
      count of a notebook cell, 0 outside notebooks. ``filename`` is then ``In [7]``.
    - ``device_memory``: samples of what is ``used`` of a device, by all processes, in bytes.
    - ``threads``: ``id`` is the operating system's thread id.
    """
    import pyarrow as pa

    return {
        "memory_events": _memory_events(),
        "devices": pa.schema(
            [
                ("id", pa.int16()),
                ("name", pa.utf8()),
                ("total_memory", pa.int64()),
                ("kind", pa.utf8()),
            ]
        ),
        "streams": pa.schema(
            [
                ("id", pa.uint32()),
                ("device", pa.int16()),
                ("handle", pa.uint64()),
                ("name", pa.utf8()),
            ]
        ),
        "pools": pa.schema(
            [("id", pa.uint32()), ("owner", pa.uint32()), ("segment_type", pa.utf8())],
        ),
        "stacks": pa.schema([("id", pa.uint32()), ("frames", pa.list_(pa.uint32()))]),
        "frames": _frames(),
        "device_memory": pa.schema(
            [("time", pa.int64()), ("device", pa.int16()), ("used", pa.int64())],
        ),
        "threads": pa.schema([("id", pa.uint32()), ("name", pa.utf8())]),
    }


def _memory_events() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            ("time", pa.int64()),
            ("action", pa.dictionary(pa.int8(), pa.utf8())),
            ("address", pa.uint64()),
            ("size", pa.int64()),
            ("requested_size", pa.int64()),
            ("device", pa.int16()),
            ("stream", pa.uint32()),
            ("pool", pa.uint32()),
            ("stack", pa.uint32()),
            ("thread", pa.uint32()),
            ("range", pa.uint32()),
        ],
    )


def _frames() -> "pa.Schema":
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.utf8())
    return pa.schema(
        [
            ("id", pa.uint32()),
            ("name", text),
            ("filename", text),
            ("line", pa.int32()),
            ("cell", pa.int32()),
            ("source", text),
        ],
    )
