"""The lines of the program that allocate and use a device's blocks, for sentences."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.finding import named
from gpuviz.advice.replay.trace import MOST_SHOWN
from gpuviz.advice.source.callers import Returned
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import distinct, plain
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from gpuviz.advice.arrays.device_blocks import DeviceBlocks

# Half of the window that shows a moment: a share of the recording, and at least a microsecond.
_AROUND = 0.02
_LEAST_NS = 1000


class BlockLines:
    """The lines of the program that allocate and use blocks.

    Args:
        device: The blocks.
    """

    def __init__(self, device: "DeviceBlocks") -> None:
        self._device = device
        self._recording, self._used, self._callers = device.recording, device.used, device.callers

    @property
    def peak_stack(self) -> int:
        """The call stack of the allocation that reached the peak; 0 if unknown."""
        return int(self._device.stack[self._device.of_peak[0]]) if len(self._device.of_peak) else 0

    @property
    def peak_line(self) -> tuple[str, str]:
        """The call site and the source line of the allocation that reached the peak."""
        at = self._device.of_peak
        return (self._callers.line(int(at[0])) if len(at) else None) or self._site_of(0)

    def _site_of(self, stack: int) -> tuple[str, str]:
        return self._recording.call_stacks.call_site(stack)

    def first_use(self, blocks: np.ndarray) -> tuple[str, str]:
        """Return the call site and the source line of the first use of some blocks."""
        return self._earliest(blocks, self._used.first[self._device.number[blocks]])

    def first_need(self, blocks: np.ndarray) -> tuple[str, str]:
        """Return the call site and the source line of the first use that is not a fill."""
        return self._earliest(blocks, self._device.needed.first[self._device.number[blocks]])

    def _earliest(self, blocks: np.ndarray, calls: np.ndarray) -> tuple[str, str]:
        first = int(np.argmin(self._device.call_times[calls]))
        return self.line_of_use(int(blocks[first]), int(calls[first]))

    def last_use(self, blocks: np.ndarray) -> tuple[str, str]:
        """Return the call site and the source line of the last use of most of some blocks."""
        calls = self._used.last[self._device.number[blocks]]
        order = np.argsort(self._device.call_times[calls], kind="stable")
        blocks, calls = blocks[order], calls[order]
        pairs, first, number, counts = np.unique(
            np.stack([self._device.site[blocks], stacks_of(self._recording.tables, calls)]),
            axis=1,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        lines = [self.line_of_use(int(blocks[row]), int(calls[row])) for row in first.tolist()]
        latest = np.zeros(pairs.shape[1], np.int64)
        np.maximum.at(latest, number.ravel(), np.arange(len(calls)))
        # Of lines with as many, the latest.
        uses: dict[tuple[str, str], tuple[int, int]] = {}
        for line, count, place in zip(lines, counts.tolist(), latest.tolist(), strict=True):
            known, before = uses.get(line, (0, -1))
            uses[line] = known + count, max(before, place)
        return max(uses, key=lambda line: uses[line])

    def have_one_last_line(self, blocks: np.ndarray) -> bool:
        """Return whether one line of the program last uses all of some blocks."""
        calls = self._used.last[self._device.number[blocks]]
        used = np.stack([self._device.site[blocks], stacks_of(self._recording.tables, calls)])
        rows = np.unique(used, axis=1, return_index=True)[1].tolist()
        return len({self.line_of_use(int(blocks[row]), int(calls[row])) for row in rows}) == 1

    def named_use(self, block: int, call: int) -> str:
        """Return the line of a block's use by a row of ``api_calls``, for a sentence.

        If that line has called a function in which the peak is reached as well, what has made the
        block cannot delete or allocate it between the two: then it is the line of that function.
        """
        if self.is_in_call_of_peak(block, call):
            return self._named_inner_use(block, call)
        return named(*self.line_of_use(block, call))

    def _named_inner_use(self, block: int, call: int) -> str:
        outer = named(*self.line_of_use(block, call))
        stack = int(plain(self._recording.tables["api_calls"]["stack"])[call])
        inner = named(*self._site_of(stack))
        return outer if inner == outer else f"{inner}, within {outer}"

    def after_last_use(self, blocks: np.ndarray) -> str:
        """Return the line after which blocks of a line can be deleted, for a sentence."""
        block, call = self._latest_use(blocks)
        if self.are_held_at_peak(blocks) or self._is_freed_by_its_last_line(block, call):
            return self._named_inner_use(block, call)
        return named(*self.last_use(blocks))

    def _is_freed_by_its_last_line(self, block: int, call: int) -> bool:
        """Return whether a line that last uses a block frees it already, as in ``x = f(x)``."""
        events = self._recording.tables["memory_events"]
        row = int(self._used.blocks.free[self._device.number[block]])
        site = self.line_of_use(block, call)[0]
        return row < events.num_rows and self._is_called_from(
            site, int(plain(events["stack"])[row])
        )

    def is_used_again_by_its_last_line(self, block: int) -> bool:
        """Return whether the line that uses a block last has used it before, as in a loop."""
        number = self._device.number[block]
        stacks = plain(self._recording.tables["api_calls"]["stack"])
        calls = distinct(self._used.call[self._used.block == number])
        return int(np.count_nonzero(stacks[calls] == stacks[self._used.last[number]])) > 1

    def returned_to(self, blocks: np.ndarray) -> Returned | None:
        """Return the line to which a function had returned blocks before the peak.

        None unless all of them were returned to one line, after their last use.
        """
        number = self._device.number[blocks]
        there = self._device.number[np.append(blocks, self._device.of_peak[:1])]
        made = self._used.blocks.alloc[there]
        threads = np.unique(plain(self._recording.tables["memory_events"]["thread"])[made])
        if len(threads) > 1 or not self.peak_stack:
            return None
        used = stacks_of(self._recording.tables, self._used.last[number])
        return self._callers.returned_to(blocks, used, self.peak_stack)

    def are_held_at_peak(self, blocks: np.ndarray) -> bool:
        """Whether the peak is reached before the call returns that last uses blocks of a line."""
        return self.is_in_call_of_peak(*self._latest_use(blocks))

    def _latest_use(self, blocks: np.ndarray) -> tuple[int, int]:
        calls = self._used.last[self._device.number[blocks]]
        latest = int(np.argmax(self._device.call_times[calls]))
        return int(blocks[latest]), int(calls[latest])

    def is_in_call_of_peak(self, block: int, call: int) -> bool:
        """Return whether the line of a block's use goes on, or what it calls, up to the peak."""
        return self._reaches_peak(self.line_of_use(block, call)[0], call)

    def are_in_statement_of_peak(self, blocks: np.ndarray) -> bool:
        """Whether the statement that last uses blocks of a line reaches the peak before it ends.

        Nothing can be deleted within it.
        """
        _, call = self._latest_use(blocks)
        stack = int(plain(self._recording.tables["api_calls"]["stack"])[call])
        innermost = self._recording.call_stacks.user_frames(stack)[:1]
        return bool(innermost) and self._reaches_peak(innermost[0].site, call)

    def is_returned_within(self, blocks: np.ndarray) -> bool:
        """Whether the last line calls a function whose ``return`` is the last use of blocks."""
        _, call = self._latest_use(blocks)
        stack = int(plain(self._recording.tables["api_calls"]["stack"])[call])
        frames = self._recording.call_stacks.user_frames(stack)[:1]
        return any(frame.source.startswith("return ") for frame in frames)

    def have_views(self, blocks: np.ndarray) -> bool:
        """Whether some calls that use blocks get addresses within them."""
        of_blocks = np.isin(self._used.block, self._device.number[blocks])
        return bool((of_blocks & ~self._used.at_begin).any())

    def is_at_peak(self, site: str) -> bool:
        """Return whether a line of the program, or what it calls, reaches the peak."""
        return self._is_called_from(site, self.peak_stack)

    def _reaches_peak(self, site: str, call: int) -> bool:
        """Return whether a line that makes a call, or what it calls, goes on up to the peak."""
        if not self._is_called_from(site, self.peak_stack):
            return False
        tables = self._recording.tables
        api, events = tables["api_calls"], tables["memory_events"]
        begin, end = sorted((int(self._device.call_times[call]), self._device.peak.time_ns))
        thread, stacks = int(plain(api["thread"])[call]), set[int]()
        for table in (api, events):
            times, known = plain(table["time"]), plain(table["stack"])
            inside = (times >= begin) & (times <= end) & (known != 0)
            inside &= plain(table["thread"]) == thread
            stacks.update(np.unique(known[inside]).tolist())
        return all(self._is_called_from(site, each) for each in stacks)

    def _is_called_from(self, site: str, stack: int) -> bool:
        return any(frame.site == site for frame in self._recording.call_stacks.user_frames(stack))

    def line_of_use(self, block: int, call: int) -> tuple[str, str]:
        """Return the call site and the source line of a block's use by a row of ``api_calls``."""
        stack = int(plain(self._recording.tables["api_calls"]["stack"])[call])
        return self._callers.line_of_use(block, stack)

    def evidence(self, blocks: np.ndarray) -> Evidence:
        """Return the allocations of the largest of some blocks, and a time around the peak."""
        start, end = self._recording.time_range
        half = max(int((end - start) * _AROUND), _LEAST_NS)
        window = max(self._device.peak.time_ns - half, start), self._device.peak.time_ns + half
        once = distinct(blocks)
        largest = once[np.argsort(-self._device.size[once], kind="stable")[:MOST_SHOWN]]
        rows = np.sort(self._used.blocks.alloc[self._device.number[largest]])
        return Evidence("memory_events", tuple(rows.tolist()), window)

    def line_of(self, blocks: np.ndarray) -> Line:
        """Return the line that allocated some blocks, with their bytes and number."""
        stack = int(self._device.stack[blocks[0]])
        size = format_bytes(int(self._device.size[blocks].sum()))
        line = self._callers.line(int(blocks[0])) or self._site_of(stack)
        return Line(*line, f"{size} in {format_counted(len(blocks), 'array')}", stack)

    def holding_line_of(self, blocks: np.ndarray) -> Line:
        """Return the line that keeps some blocks of one line, with their bytes and number.

        It is the line that allocated them, unless functions return all of them to another one.
        """
        line = self.line_of(blocks)
        held = {self._callers.holding_line(block) for block in blocks.tolist()}
        known = held.pop() if len(held) == 1 else None
        return line if known is None else replace(line, site=known[0], source=known[1])

    def lines_of(self, blocks: np.ndarray) -> tuple[Line, ...]:
        """Return the lines that allocated some blocks, most bytes first."""
        sites, rows = np.unique(self._device.site[blocks], return_inverse=True)
        sums = np.bincount(rows.ravel(), self._device.size[blocks], len(sites))
        order = np.argsort(-sums, kind="stable")
        return tuple(self.line_of(blocks[rows.ravel() == each]) for each in order)
