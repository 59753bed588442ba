"""The activities of each stream in the order of their launches."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpuviz.advice.replay.trace import Trace

# Waits for all streams of a device consider at most this many.
_MOST_STREAMS = 64


class LaunchOrder:
    """The activities of a recording by their streams and launches.

    Args:
        trace: The recording's calls and activities.

    Attributes:
        activities: All of them, those of a stream one after the other.
        streams: Their streams.
    """

    def __init__(self, trace: "Trace") -> None:
        self._trace = trace
        keys = _pairs(trace.stream, trace.launch)
        self.activities = np.argsort(keys, kind="stable")
        self._keys = keys[self.activities]
        self.streams = self._keys >> 32

    def most_used_streams(self) -> list[tuple[int, int]]:
        """Return the device and the number of each stream, those with most activities first."""
        trace = self._trace
        keys, counts = np.unique(_pairs(trace.device, trace.stream), return_counts=True)
        most = keys[np.argsort(-counts, kind="stable")[:_MOST_STREAMS]].tolist()
        return [(key >> 32, key & 0xFFFFFFFF) for key in most]

    def last_until(
        self, streams: np.ndarray, launched: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the last activity launched on each stream up to a call, and where there is one."""
        places = np.searchsorted(self._keys, _pairs(streams, launched), side="right") - 1
        there = (places >= 0) & (launched != 0)
        there[there] = self.streams[places[there]] == streams[there]
        known = np.flatnonzero(there)
        return self.activities[places[known]], known

    def first_after(
        self, streams: np.ndarray, launched: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the first activity launched on each stream after a call, and where it is."""
        places = np.searchsorted(self._keys, _pairs(streams, launched), side="right")
        there = (places < len(self._keys)) & (launched != 0)
        there[there] = self.streams[places[there]] == streams[there]
        known = np.flatnonzero(there)
        return self.activities[places[known]], known


def _pairs(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    pairs: np.ndarray = (high.astype(np.int64) << 32) | low.astype(np.int64)
    return pairs
