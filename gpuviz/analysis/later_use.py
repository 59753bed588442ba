"""Whether the work of the GPU used blocks after the iteration that allocated them."""

from typing import Literal

import numpy as np

from gpuviz.analysis.lifetimes import Lifetimes
from gpuviz.analysis.touches import Touches, touches
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData

Use = Literal["unused", "partly", "used", "unknown"]

# A block that was not used for fewer iterations may be used by the next one.
LEAST_AGE = 3


class LaterUse:
    """The use of a recording's blocks after their own iterations.

    Args:
        recording: The recording.
        blocks: Its blocks.
        used: What `gpuviz.analysis.touches.touches` returns for it, if that is known.
    """

    def __init__(self, recording: RecordingData, blocks: Lifetimes, used: Touches | None) -> None:
        self._recording, self._blocks = recording, blocks
        self._used, self._is_use_known = used, used is not None
        self._end = blocks.end_or_never
        self._last: np.ndarray | None = None

    def of(self, live: np.ndarray, marks: np.ndarray) -> tuple[Use, int | None, np.ndarray]:
        """Return which of the old ones of some blocks were used after their own iteration.

        Use after the last mark counts too, as when all parts are joined at the end.
        """
        own = np.searchsorted(marks, self._blocks.begin[live])
        old = live[own < len(marks) - LEAST_AGE]
        own = own[own < len(marks) - LEAST_AGE]
        if not old.size or not self._knows_uses():
            return "unknown", None, old[:0]
        again = marks[np.minimum(own + 1, len(marks) - 1)]
        is_used = self._last_touch()[old] > again
        opaque = self._opaque_times()
        ends = self._end[old]
        is_open = np.searchsorted(opaque, again, side="right") < np.searchsorted(opaque, ends)
        if (is_open & ~is_used).any():
            return "unknown", None, old[:0]
        unused = int(self._blocks.size[old[~is_used]].sum())
        if not is_used.any():
            return "unused", unused, old[:0]
        return "used" if is_used.all() else "partly", unused, old[is_used]

    def _knows_uses(self) -> bool:
        if not self._is_use_known:
            self._used, self._is_use_known = touches(self._recording), True
        return self._used is not None and not self._recording.dropped

    def _last_touch(self) -> np.ndarray:
        """Return when each block was last given to the GPU; -1 if never."""
        if self._last is None:
            assert self._used is not None  # noqa: S101 - see _knows_uses
            self._last = np.full(len(self._blocks), -1, np.int64)
            self._last[self._used.block] = self._call_times()[self._used.call]
        return self._last

    def _opaque_times(self) -> np.ndarray:
        assert self._used is not None  # noqa: S101 - see _knows_uses
        times: np.ndarray = self._call_times()[self._used.opaque]
        return times

    def _call_times(self) -> np.ndarray:
        return plain(self._recording.tables["api_calls"]["time"])
