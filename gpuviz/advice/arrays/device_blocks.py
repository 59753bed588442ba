"""The blocks of a device, and where the program makes, uses and frees each."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gpuviz.advice.arrays.allocated_blocks import AllocatedBlocks
from gpuviz.advice.arrays.block_lines import BlockLines
from gpuviz.advice.arrays.bounded_collections import may_be_needed, used_in_any_order
from gpuviz.advice.arrays.collected import collected_blocks
from gpuviz.advice.arrays.elementwise import Elementwise
from gpuviz.advice.arrays.handed_over import handed_over
from gpuviz.advice.arrays.other_users import are_shared, are_used_at_any_time
from gpuviz.advice.arrays.replacements import Replacements, replacements
from gpuviz.advice.arrays.superseded import superseded
from gpuviz.advice.arrays.training_blocks import TrainingBlocks
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.source.callers import Callers
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.categories import is_training
from gpuviz.analysis.growing_lines import GrowingLine, growing_lines
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.touches import Touches, touches
from gpuviz.data.codes import ACTIONS
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData

_OOM = ACTIONS.index("oom")


class DeviceBlocks(AllocatedBlocks):
    """The blocks of a device and the work that used them.

    Args:
        recording: The recording.
        device: Ordinal.
        used: Which work used the recording's blocks.
        schedule: The recording's calls and work; made on demand if None.

    Attributes:
        is_freed: Whether the recording has the free of each block, and no failed request is between
            its last use and that: the program might have used it again without the failure.
        is_used: Whether each block was used, or may have been.
        is_shared: Whether another or an unknown stream than the block's own used it. Then it must
            live until that work has ended, which its place in the order of calls does not tell.
        is_used_at_any_time: Whether each block belongs to a graph or is a library's workspace.
    """

    def __init__(
        self,
        recording: RecordingData,
        device: int,
        used: Touches,
        schedule: Schedule | None = None,
    ) -> None:
        super().__init__(recording, device, used)
        self._schedule = schedule
        self.is_freed = (used.blocks.end[self.number] >= 0) & ~self._is_left_by_failure()
        self.is_used = used.used[self.number]
        self.is_shared = are_shared(recording, used)[self.number]
        self.is_used_at_any_time = are_used_at_any_time(recording, used)[self.number]

    def _is_left_by_failure(self) -> np.ndarray:
        """Return which blocks a failed request finds allocated that nothing uses after it."""
        events, blocks = self.recording.tables["memory_events"], self.used.blocks
        rows = self.events[codes(events["action"], ACTIONS)[self.events] == _OOM]
        failed = np.append(-1, rows)
        latest = failed[np.searchsorted(failed, blocks.free[self.number]) - 1]
        used = np.append(self.call_times, -1)[self.used.last[self.number]]
        left: np.ndarray = plain(events["time"])[latest] > used
        left &= latest > blocks.alloc[self.number]
        return left

    @cached_property
    def first(self) -> np.ndarray:
        """The place before the line that first used each block; its end if there is none.

        Its begin if that is unknown.
        """
        calls = self.used.first[self.number]
        first = np.clip(self.before_lines(calls), self.begin, self.end)
        is_known = ~self.is_initial & self._is_known(calls)
        return np.where(is_known, np.where(self.is_used, first, self.end), self.begin)

    @cached_property
    def last(self) -> np.ndarray:
        """As `after_use`, but the end of what torch keeps itself."""
        if self.training is None:
            return self.after_use
        return np.where(self.training.is_held, self.end, self.after_use)

    @cached_property
    def after_use(self) -> np.ndarray:
        """The place after the line that last used each block; its begin if there is none.

        Its end if that is unknown. A program can free a block there, but not within the line. Of a
        line that makes array after array, the place where the second one after it is made.
        """
        calls = self.used.last[self.number]
        last = np.clip(self.after_lines(calls), self.begin, self.end)
        last = np.where(self.is_used, last, self.begin)
        is_known = ~self.is_shared & self._is_known(calls) & ~self._may_be_needed_again()
        until = self.statements.go_on_until(calls)
        is_known &= ~self.is_freed | (self.used.blocks.end[self.number] > until)
        return np.where(is_known, np.minimum(last, self._superseded[0]), self.end)

    @property
    def is_kept(self) -> np.ndarray:
        """Whether something else than the variable of a loop keeps each block after its last use.

        Such as a list: the same calls have made two more arrays meanwhile.
        """
        return self._superseded[1]

    @cached_property
    def _superseded(self) -> tuple[np.ndarray, np.ndarray]:
        return superseded(self)

    @property
    def first_needed(self) -> np.ndarray:
        """As `first`, but for ``needed``; if the block is handed over, it leaves one to wait."""
        return self._handed_over[1]

    @property
    def is_handed_over(self) -> np.ndarray:
        """Whether another thread than its maker first needs each block, as of many of its line."""
        return self._handed_over[0]

    @cached_property
    def _handed_over(self) -> tuple[np.ndarray, np.ndarray]:
        """Which blocks threads hand over, and the place of each block's first need then."""
        calls = self.needed.first[self.number]
        is_needed = self.needed.used[self.number]
        is_known = ~self.is_initial & self._is_known(calls)
        needed = np.clip(self.before_lines(calls), self.begin, self.end)
        needed = np.where(is_known, np.where(is_needed, needed, self.end), self.begin)
        # What another stream fills is there in time, while kernels run.
        needed = np.where(self.is_shared, np.minimum(self.first, needed), needed)
        events, table = (self.recording.tables[name] for name in ("memory_events", "api_calls"))
        makers = plain(events["thread"])[self.used.blocks.alloc[self.number]]
        is_other = is_needed & is_known & (makers != plain(table["thread"])[calls])
        return handed_over(is_other, self.site, self.begin, self.end, needed)

    def _is_known(self, calls: np.ndarray) -> np.ndarray:
        """Return whether it is known where the line of a call begins and ends that uses each block.

        Not without a call stack, nor of blocks that are used at any time.
        """
        known = plain(self.recording.tables["api_calls"]["stack"])[calls] != 0
        is_known: np.ndarray = ~self.is_used_at_any_time & known
        return is_known

    @cached_property
    def is_unread(self) -> np.ndarray:
        """Whether the program itself allocates and frees each block, and nothing reads it.

        It is not used, or only filled.
        """
        unread: np.ndarray = ~self.needed.used[self.number] & self.is_freed & ~self.is_initial
        unread &= ~self.is_shared
        unread &= is_own(self.recording, self.stack)
        return unread

    def _may_be_needed_again(self) -> np.ndarray:
        """Return which blocks a collection keeps whose program cannot tell what it needs again."""
        returned = np.flatnonzero(self.is_returned)
        calls = self.used.last[self.number[returned]]
        is_called = calls >= 0
        site, begin = self.site[returned].astype(np.int64), self.begin[returned]
        made, runs = self.used.blocks.begin[self.number[returned]], self.made_until[returned]
        used = np.where(is_called, self.call_times[calls], -1)
        found = np.zeros(len(self.size), bool)
        found[returned] = used_in_any_order(site, begin, made, runs, used)
        used = np.where(is_called, self.line_runs(calls), -1)
        found[returned] |= may_be_needed(site, begin, self.end[returned], made, used)
        return found

    def keep_filled_by(self, activities: Sequence[int]) -> None:
        """Take the arrays that some work fills, and others of their lines, for ones to be kept.

        Args:
            activities: Rows of ``activities``.
        """
        place = self.place[self.used.block[np.isin(self.used.activity, activities)]]
        self._is_to_keep |= np.isin(self.site, self.site[place[place >= 0]])

    @cached_property
    def _is_to_keep(self) -> np.ndarray:
        return np.zeros(len(self.size), bool)

    @cached_property
    def is_stuck(self) -> np.ndarray:
        """Whether each block is to be kept, or its last statement reaches the peak before it ends.

        Of blocks at the peak: nothing can delete them within the statement.
        """
        dead = self.at_peak & (self.last <= self.peak_place) & self.is_freed & self.is_used
        stuck = self._is_to_keep.copy()
        for site in np.unique(self.site[dead & (self.stack != 0)]).tolist():
            blocks = np.flatnonzero(dead & (self.site == site))
            stuck[blocks] |= self.lines.are_in_statement_of_peak(blocks)
        return stuck

    @cached_property
    def is_collected(self) -> np.ndarray:
        """Whether only the garbage collector frees each block, as others of its line."""
        collected = np.zeros(len(self.size), bool)
        collected[collected_blocks(self)] = True
        return collected

    @cached_property
    def is_seen(self) -> np.ndarray:
        """Whether all work on the GPU while each block lived names the blocks that it uses."""
        blocks = self.used.blocks
        unknown = self.call_times[self.used.opaque]
        ends = np.where(blocks.end < 0, np.iinfo(np.int64).max, blocks.end)
        before = np.searchsorted(unknown, blocks.begin)
        seen = before == np.searchsorted(unknown, ends, side="right")
        of_device: np.ndarray = seen[self.number]
        return of_device

    @cached_property
    def last_known(self) -> np.ndarray:
        """The row of ``api_calls`` that is the last known to use each block; -1 without one.

        Work that may use a block without naming it does not count.
        """
        place = self.place[self.used.block]
        last = np.full(len(self.size), -1)
        last[place[place >= 0]] = self.used.call[place >= 0]
        return last

    @cached_property
    def after_known_use(self) -> np.ndarray:
        """The place after the last call that is known to use each block; its begin without one.

        Within a line, only a library can free the block there.
        """
        return self._after_known(self.after_calls(self.last_known))

    @cached_property
    def after_known_line(self) -> np.ndarray:
        """The place after the last line that is known to use each block; its begin without one."""
        return self._after_known(self.after_lines(self.last_known))

    def _after_known(self, places: np.ndarray) -> np.ndarray:
        return np.where(self.last_known >= 0, np.clip(places, self.begin, self.end), self.begin)

    @cached_property
    def replacements(self) -> Replacements:
        """Which blocks the lines replace that make others."""
        return replacements(self)

    @cached_property
    def is_used_only_when_made(self) -> np.ndarray:
        """Whether nothing uses each block after the run of the line that makes it."""
        used = np.append(self.call_times, -1)[self.used.last[self.number]]
        only: np.ndarray = used < self.made_until
        return only

    @cached_property
    def is_for_later(self) -> np.ndarray:
        """Whether each block was made for a later use that others of its calls had, and it has not.

        As the best result so far, or a state to go back to: the program cannot know that it will
        find a better one, or how far it will go back.
        """
        is_unused = self.is_used_only_when_made
        return is_unused & np.isin(self.stack, self.stack[~is_unused])

    @cached_property
    def schedule(self) -> Schedule:
        """The calls and the work of the recording."""
        return self._schedule or Schedule(self.recording)

    @cached_property
    def training(self) -> TrainingBlocks | None:
        """The blocks as those of a training program; None if the recording is of another one."""
        return TrainingBlocks(self) if is_training(self.recording) else None

    @cached_property
    def growing(self) -> list[GrowingLine]:
        """The lines of the device whose live memory grows."""
        found = growing_lines(self.recording, self.used)
        return [line for line in found if line.device == self.device and line.growth is not None]

    @cached_property
    def elementwise(self) -> Elementwise:
        """The launches of elementwise functions of the recording."""
        return Elementwise(self.recording, self.used)

    @property
    def lines(self) -> BlockLines:
        """The lines of the program; not kept, since they refer to the blocks."""
        return BlockLines(self)

    @cached_property
    def callers(self) -> Callers:
        """The lines that the blocks belong to."""
        last = self.used.last[self.number]
        stacks = stacks_of(self.recording.tables, np.maximum(last, 0))
        return Callers(self.recording, self.stack, np.where(last >= 0, stacks, 0))

    @cached_property
    def site(self) -> np.ndarray:
        """A number for each block, equal for blocks of the same line of the program."""
        return self.callers.numbers


def device_blocks(recording: RecordingData, schedule: Schedule | None = None) -> list[DeviceBlocks]:
    """Return the blocks of each device whose memory and work were recorded without a gap."""
    if recording.dropped:
        return []
    used = touches(recording) if schedule is None else schedule.touches
    if used is None:
        return []
    devices = [DeviceBlocks(recording, device, used, schedule) for device in recording.devices]
    return [device for device in devices if device.is_consistent and device.peak.bytes]
