"""The uses of a device's blocks, by block and by call."""

import re
from collections.abc import Callable

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.analysis.launches import have_frame, stacks_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import distinct, plain
from gpuviz.data.strings import are_named


class BlockUses:
    """The rows of `gpuviz.analysis.touches.Touches` that are about a device's blocks.

    Args:
        device: The blocks.

    Attributes:
        touch: The row of the touches.
        block: The block that each row uses.
        call: The row of ``api_calls`` that uses it.
        mode: ``mode`` of ``launch_blocks`` as a code.
        at_begin: Whether it got the first address of the block.
        activity: The row of ``activities`` that does; -1 if there is none.
        work: The number in the schedule of that activity; -1 if there is none.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        used = device.used
        place = device.place[used.block]
        rows = np.flatnonzero(place >= 0)
        self.touch, self.at_begin = rows, used.at_begin[rows]
        self._device = device
        self.block, self.call, self.mode = place[rows], used.call[rows], used.mode[rows]
        self.activity = used.activity[rows]
        numbers = device.schedule.number[np.maximum(self.activity, 0)]
        self.work = np.where(self.activity >= 0, numbers, -1)
        self._by_block = np.argsort(self.block, kind="stable")
        self._blocks = self.block[self._by_block]
        self._by_call = np.argsort(self.call, kind="stable")
        self._calls = self.call[self._by_call]

    def are_within(self, matches: Callable[[Frame], bool]) -> np.ndarray:
        """Return whether the call stack of each row has a frame for which a function is true."""
        recording = self._device.recording
        return have_frame(recording, stacks_of(recording.tables, self.call), matches)

    def are_of(self, pattern: re.Pattern[str]) -> np.ndarray:
        """Return whether the name of the activity of each row matches; not without one."""
        tables = self._device.recording.tables
        names = plain(tables["activities"]["name"])[np.maximum(self.activity, 0)]
        found: np.ndarray = (self.activity >= 0) & are_named(tables, names, pattern.search)
        return found

    def of_block(self, block: int) -> np.ndarray:
        """Return the rows of a block, in their order."""
        rows: np.ndarray = self._by_block[_equal(self._blocks, block)]
        return rows

    def of_call(self, row: int) -> np.ndarray:
        """Return the rows with the call of a row, with itself."""
        rows: np.ndarray = self._by_call[_equal(self._calls, int(self.call[row]))]
        return rows

    def beside(self, row: int) -> np.ndarray:
        """Return the other blocks that the call of a row uses."""
        blocks = self.block[self.of_call(row)]
        return distinct(blocks[blocks != self.block[row]])


def _equal(ascending: np.ndarray, value: int) -> slice:
    """Return where ascending values are equal to one."""
    return slice(*np.searchsorted(ascending, (value, value + 1)).tolist())
