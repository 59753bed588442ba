"""The streams that an allocator takes for one, because they had the same handle in turn."""

import numpy as np

from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.stream_handle import NO_HANDLE


class StreamHandles:
    """The streams of a recording when one of them requested memory.

    Allocators know a stream by its handle, which another one may get when it is destroyed, together
    with its cached memory. Each stream is replaced by the last one that had its handle by then.

    Args:
        recording: The recording.
        stream: The id of the stream that requested memory.
        time_ns: When.
    """

    def __init__(self, recording: RecordingData, stream: int, time_ns: int) -> None:
        streams = recording.tables["streams"]
        names = ("id", "device", "handle", "created", "destroyed")
        ids, devices, handles, created, destroyed = (plain(streams[name]) for name in names)
        keys = list(zip(devices.tolist(), handles.tolist(), strict=True))
        existed = (created <= time_ns) & (handles != NO_HANDLE)
        holders = {keys[row]: int(ids[row]) for row in np.flatnonzero(existed).tolist()}
        for row in np.flatnonzero(ids == stream).tolist():
            holders[keys[row]] = stream
        self._holder = {
            each: holders.get(key, each) for each, key in zip(ids.tolist(), keys, strict=True)
        }
        self._destroyed = set(ids[(destroyed >= 0) & (destroyed <= time_ns)].tolist())

    def holders(self, streams: np.ndarray) -> np.ndarray:
        """Return the last stream that had the handle of each stream, by ids of ``streams``."""
        distinct, place = np.unique(streams, return_inverse=True)
        found = [self._holder.get(each, each) for each in distinct.tolist()]
        return np.array(found, streams.dtype)[place]

    def is_destroyed(self, stream: int) -> bool:
        """Return whether the stream had been destroyed."""
        return stream in self._destroyed
