"""The uses of a device's blocks in the order of their times."""

import re
from functools import cached_property

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.reductions.reduction_times import times_of_host_reads
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import are_named

_OF_TORCH = re.compile(r"\bat::native::")


class Uses:
    """What is asked of a device about each list of arrays.

    Args:
        device: All blocks.

    Attributes:
        device: The same.
        begin: When each block was allocated, in ns.
        opaque: When work that may have used anything was launched, in ns, ascending.
        rows: The rows of ``device.used`` in the order of their times.
        time: Their times in ns.
        calls: The rows of ``api_calls`` in the order of their times.
        called: Their times in ns.
        made: The blocks in the order of their allocations.
        born: When these were allocated, in ns.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        self.device, used = device, device.used
        times = plain(device.recording.tables["api_calls"]["time"])
        self.begin = used.blocks.begin[device.number]
        self.opaque = np.sort(times[used.opaque])
        self.rows = np.argsort(times[used.call], kind="stable")
        self.time = times[used.call[self.rows]]
        self.calls = np.argsort(times, kind="stable")
        self.called = times[self.calls]
        self.made = np.argsort(self.begin, kind="stable")
        self.born = self.begin[self.made]
        self._of_lines: dict[int, np.ndarray] = {}

    def makes_others(self, site: int, begin: int, end: int) -> bool:
        """Return whether a line allocates blocks between two times, in ns."""
        if site not in self._of_lines:
            self._of_lines[site] = np.sort(self.begin[self.device.site == site])
        first, until = np.searchsorted(self._of_lines[site], (begin + 1, end))
        return bool(first < until)

    @cached_property
    def reads(self) -> np.ndarray:
        """When the host calls copies to itself, in ns, ascending."""
        return times_of_host_reads(self.device)

    @cached_property
    def is_of_torch(self) -> np.ndarray:
        """Whether each activity is a kernel of PyTorch, whose arguments have unset bytes."""
        tables = self.device.recording.tables
        return are_named(tables, plain(tables["activities"]["name"]), _OF_TORCH.search)

    @cached_property
    def numbers(self) -> np.ndarray:
        """What the arguments of each call's launch say besides addresses; 0 if unknown."""
        tables = self.device.recording.tables
        content = plain(tables["launch_blocks"]["content"])
        known = np.flatnonzero(content)
        correlations = plain(tables["launch_blocks"]["correlation"])[known]
        rows = first_rows(correlations, plain(tables["api_calls"]["correlation"]))
        of_calls: np.ndarray = np.append(content[known], np.uint64(0))[rows]
        return of_calls
