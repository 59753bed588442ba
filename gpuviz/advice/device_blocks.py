"""The blocks of a device, and where the program makes, uses and frees each."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz._core import EventPlaces
from gpuviz.advice.block_lines import BlockLines
from gpuviz.advice.bounded_collections import may_be_needed, used_in_any_order
from gpuviz.advice.callers import Callers
from gpuviz.advice.collected import collected_blocks
from gpuviz.advice.elementwise import Elementwise
from gpuviz.advice.handed_over import handed_over
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.peak_replay import Change, PeakReplay
from gpuviz.advice.schedule import Schedule
from gpuviz.advice.training import TrainingBlocks
from gpuviz.analysis.categories import block_categories, is_training
from gpuviz.analysis.growing_lines import growing_lines
from gpuviz.analysis.launches import have_frame, stacks_of
from gpuviz.analysis.peak import Peak, peak
from gpuviz.analysis.pools import private_pools
from gpuviz.analysis.statements import Statements
from gpuviz.analysis.touches import Touches, touches, without_touches
from gpuviz.data.codes import ACTIONS, CATEGORIES
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gpuviz.analysis.growing_lines import GrowingLine
    from gpuviz.data.call_stacks import Frame
    from gpuviz.data.recording_data import RecordingData

_KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_OOM = ACTIONS.index("oom")
_WORKSPACE = CATEGORIES.index("workspace")
_FFT_OF_CUPY, _PLAN = "/cupy/fft/", "cufft.Plan"
_WRITE = DICTIONARIES["launch_blocks", "mode"].index("write")


class DeviceBlocks:
    """The blocks of a device and the work that used them.

    A scale of *places* orders the device's memory events and the begins and ends of the lines that
    first and last used each block.

    Args:
        recording: The recording.
        device: Ordinal.
        used: Which work used the recording's blocks.
        schedule: The recording's calls and work; made on demand if None.

    Attributes:
        number: For each block of the device, its index in ``used.blocks``.
        begin: The place of each allocation.
        end: The place of each free.
        first: The place before the line that first used each block, or its end if there is none;
            its begin if that is unknown.
        last: The place after the line that last used each block, or its begin if there is none; its
            end if that is unknown, or if torch keeps it itself. A program can free a block
            there, but not within the line. Of a line that makes array after array, the place where
            the second one after it is made.
        after_use: The same, whether or not torch keeps it.
        needed: The uses without those that only fill a block: see `needed_touches`.
        first_needed: As ``first``, but for ``needed``.
        is_handed_over: Whether another thread than the one that makes each block is the first to
            need it, as of many of its line. ``first_needed`` then leaves one to wait.
        is_unread: Whether the program itself allocates the block, it is freed in the recording, and
            nothing reads it: it is not used, or only filled.
        size: Bytes, rounded by the allocator.
        requested: Bytes that the program asked for.
        stack: Ids of ``stacks``.
        is_initial: Whether each block was allocated before the recording, which then lacks its
            earlier uses.
        is_freed: Whether the recording has the free of each block, and no failed request is between
            its last use and that: the program might have used it again without the failure.
        is_used: Whether each block was used, or may have been.
        is_shared: Whether another or an unknown stream than the block's own used it. Then it must
            live until that work has ended, which its place in the order of calls does not tell.
        is_used_at_any_time: Whether each block belongs to a graph or is a library's workspace.
        is_kept: Whether something else than the variable of a loop keeps each block after its last
            use, such as a list: the same calls have made two more arrays meanwhile. What keeps most
            arrays of a line keeps its last two as well.
        peak: The recorded peak of the device.
        peak_place: The place of the event that reached it.
        replay: The peak after changes.
    """

    def __init__(
        self,
        recording: "RecordingData",
        device: int,
        used: Touches,
        schedule: Schedule | None = None,
    ) -> None:
        events = recording.tables["memory_events"]
        rows = np.flatnonzero(plain(events["device"]) == device)
        times = plain(events["time"])[rows]
        blocks = used.blocks
        self.recording, self.device, self.used = recording, device, used
        self._schedule = schedule
        self.number = np.flatnonzero(blocks.device == device)
        self.size = blocks.size[self.number]
        self.requested = blocks.requested[self.number]
        self.stack = blocks.stack[self.number]
        self.is_initial = blocks.alloc[self.number] < recording.manifest.initial_events
        self.is_freed = (blocks.end[self.number] >= 0) & ~self._is_left_by_failure(rows)
        self.is_used = used.used[self.number]
        self.is_shared = _shared(recording, used)[self.number]
        self.needed = needed_touches(recording, used)
        self._statements = Statements(recording)
        firsts = np.append(used.first[self.number], self.needed.first[self.number])
        self._places = EventPlaces(
            times,
            distinct(self._statements.of_calls(firsts)[0]),
            distinct(self._statements.of_calls(used.last[self.number])[1]),
        )
        events = np.asarray(self._places.of_events())
        self.begin = events[np.searchsorted(rows, blocks.alloc[self.number])]
        self.end = events[np.searchsorted(rows, blocks.free[self.number])]
        first, needed = (
            np.clip(self.before_lines(calls), self.begin, self.end) for calls in np.split(firsts, 2)
        )
        last = np.clip(self.after_lines(used.last[self.number]), self.begin, self.end)
        self.first = np.where(self.is_used, first, self.end)
        self.last = np.where(self.is_used, last, self.begin)
        # Without a call stack it is unknown where the line of a call begins and ends.
        unknown = plain(recording.tables["api_calls"]["stack"]) == 0
        self.is_used_at_any_time = _is_used_at_any_time(recording, used)[self.number]
        is_free = ~self.is_used_at_any_time
        is_first_known = ~self.is_initial & is_free & ~unknown[used.first[self.number]]
        is_last_known = ~self.is_shared & is_free & ~unknown[used.last[self.number]]
        self.first = np.where(is_first_known, self.first, self.begin)
        superseded, self.is_kept = self._superseded()
        is_last_known &= ~self._may_be_needed_again()
        until = self._statements.go_on_until(used.last[self.number])
        is_last_known &= ~self.is_freed | (blocks.end[self.number] > until)
        self.after_use = np.where(is_last_known, np.minimum(self.last, superseded), self.end)
        self.last = self.after_use
        if self.training is not None:
            self.last = np.where(self.training.is_held, self.end, self.last)
        is_needed = self.needed.used[self.number]
        known = ~self.is_initial & is_free & ~unknown[self.needed.first[self.number]]
        self.first_needed = np.where(known, np.where(is_needed, needed, self.end), self.begin)
        # What another stream fills is there in time, while kernels run.
        self.first_needed = np.where(
            self.is_shared, np.minimum(self.first, self.first_needed), self.first_needed
        )
        self.is_handed_over, self.first_needed = self._handed_over(is_needed & known)
        self.is_unread = ~is_needed & self.is_freed & ~self.is_initial & ~self.is_shared
        self.is_unread &= is_own(recording, self.stack)
        self.peak: Peak = peak(recording, device)
        self.replay = PeakReplay(self._places.count, self.begin, self.end, self.size)
        self.peak_place = self.replay.peak_place

    def _is_left_by_failure(self, rows: "NDArray[Any]") -> "NDArray[Any]":
        """Return which blocks a failed request finds allocated that nothing uses after it.

        Args:
            rows: The device's rows of ``memory_events``.
        """
        events, blocks = self.recording.tables["memory_events"], self.used.blocks
        failed = np.append(-1, rows[codes(events["action"], ACTIONS)[rows] == _OOM])
        latest = failed[np.searchsorted(failed, blocks.free[self.number]) - 1]
        used = np.append(self.call_times, -1)[self.used.last[self.number]]
        left: NDArray[Any] = plain(events["time"])[latest] > used
        left &= latest > blocks.alloc[self.number]
        return left

    def _handed_over(self, is_known: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return which blocks threads hand over, and the place of each block's first need then.

        Args:
            is_known: Whether it is known what first needs each block.
        """
        events, calls = (self.recording.tables[name] for name in ("memory_events", "api_calls"))
        makers = plain(events["thread"])[self.used.blocks.alloc[self.number]]
        users = plain(calls["thread"])[self.needed.first[self.number]]
        is_other = is_known & (makers != users)
        return handed_over(is_other, self.site, self.begin, self.end, self.first_needed)

    def before_lines(self, calls: "NDArray[Any]") -> "NDArray[Any]":
        """Return the places before the lines of some calls, rows of ``api_calls``."""
        places: NDArray[Any] = np.asarray(self._places.before(self._statements.of_calls(calls)[0]))
        return places

    def after_lines(self, calls: "NDArray[Any]") -> "NDArray[Any]":
        """Return the places after the lines of some calls, rows of ``api_calls``."""
        return self.after_times(self._statements.of_calls(calls)[1])

    def after_times(self, times: "NDArray[Any]") -> "NDArray[Any]":
        """Return the places after some times, in ns since the recording's start."""
        places: NDArray[Any] = np.asarray(self._places.after(times))
        return places

    def after_calls(self, calls: "NDArray[Any]") -> "NDArray[Any]":
        """Return the places after some calls, rows of ``api_calls``."""
        return self.after_times(plain(self.recording.tables["api_calls"]["end"])[calls])

    def line_runs(self, calls: "NDArray[Any]") -> "NDArray[Any]":
        """Return when the runs of lines that some calls belong to began; see `Statements`."""
        return self._statements.of_calls(calls)[0]

    @property
    def is_consistent(self) -> bool:
        """Whether the lifetimes reproduce the recorded peak, which lost events may prevent."""
        return self.replay.peak_bytes == self.peak.bytes

    @cached_property
    def of_peak(self) -> "NDArray[Any]":
        """The block whose allocation reached the peak, if it is known."""
        return np.flatnonzero(self.begin == self.peak_place)

    @cached_property
    def at_peak(self) -> "NDArray[Any]":
        """Whether each block was allocated at the peak."""
        there: NDArray[Any] = (self.begin <= self.peak_place) & (self.end > self.peak_place)
        return there

    def keep_filled_by(self, activities: "Sequence[int]") -> None:
        """Take the arrays that some work fills, and others of their lines, for ones to be kept.

        Args:
            activities: Rows of ``activities``.
        """
        place = self.place[self.used.block[np.isin(self.used.activity, activities)]]
        self._is_to_keep |= np.isin(self.site, self.site[place[place >= 0]])

    @cached_property
    def _is_to_keep(self) -> "NDArray[Any]":
        return np.zeros(len(self.size), bool)

    @cached_property
    def is_stuck(self) -> "NDArray[Any]":
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
    def is_collected(self) -> "NDArray[Any]":
        """Whether only the garbage collector frees each block, as others of its line."""
        collected = np.zeros(len(self.size), bool)
        collected[collected_blocks(self)] = True
        return collected

    @cached_property
    def is_seen(self) -> "NDArray[Any]":
        """Whether all work on the GPU while each block lived names the blocks that it uses."""
        blocks = self.used.blocks
        unknown = self.call_times[self.used.opaque]
        ends = np.where(blocks.end < 0, np.iinfo(np.int64).max, blocks.end)
        before = np.searchsorted(unknown, blocks.begin)
        seen = before == np.searchsorted(unknown, ends, side="right")
        of_device: NDArray[Any] = seen[self.number]
        return of_device

    @cached_property
    def last_known(self) -> "NDArray[Any]":
        """The row of ``api_calls`` that is the last known to use each block; -1 without one.

        Work that may use a block without naming it does not count.
        """
        place = self.place[self.used.block]
        last = np.full(len(self.size), -1)
        last[place[place >= 0]] = self.used.call[place >= 0]
        return last

    @cached_property
    def after_known_use(self) -> "NDArray[Any]":
        """The place after the last call that is known to use each block; its begin without one.

        Within a line, only a library can free the block there.
        """
        return self._after_known(self.after_calls(self.last_known))

    @cached_property
    def after_known_line(self) -> "NDArray[Any]":
        """The place after the last line that is known to use each block; its begin without one."""
        return self._after_known(self.after_lines(self.last_known))

    def _after_known(self, places: "NDArray[Any]") -> "NDArray[Any]":
        return np.where(self.last_known >= 0, np.clip(places, self.begin, self.end), self.begin)

    @cached_property
    def schedule(self) -> Schedule:
        """The calls and the work of the recording."""
        return self._schedule or Schedule(self.recording)

    @cached_property
    def training(self) -> TrainingBlocks | None:
        """The blocks as those of a training program; None if the recording is of another one."""
        return TrainingBlocks(self) if is_training(self.recording) else None

    def mapped_by_peak_line(self) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
        """Return the arrays that the line of the peak makes and keeps, and those it uses up.

        Both are at the peak; the others were there before the line, which is their last use, but
        not that of the round that reaches the peak. Also return the places after their last uses,
        where a loop of several lines could free them.
        """
        made, last = self._line_ends, self.used.last[self.number]
        peak_line_end = made[self.of_peak].max(initial=-1)
        of_peak = made == peak_line_end
        known = self.is_used & self.is_freed & ~self.is_shared & ~self.is_initial
        is_used_there = self._statements.of_calls(last)[1] == peak_line_end
        places = self.after_calls(last)
        spent = self.at_peak & known & ~of_peak & is_used_there & (places < self.peak_place)
        # A loop of one line makes and frees them in one run.
        outlive = self.end > self.end[spent].max(initial=self.peak_place)
        kept = self.at_peak & of_peak & (self.is_returned | outlive)
        return kept, spent, places

    def ends_with(self, begin: "NDArray[Any]") -> "NDArray[Any]":
        """Return the places of frees if blocks are allocated at other places.

        The line that assigns a new array to a variable frees the one that the variable had.
        """
        replaced, by = self.replaced
        end = self.end.copy()
        moved = begin[by] > self.begin[by]
        end[replaced[moved]] = np.maximum(end[replaced], begin[by] + 1)[moved]
        return end

    @cached_property
    def replaced(self) -> "tuple[NDArray[Any], NDArray[Any]]":
        """The blocks that the run of a line frees after it has allocated others, and those."""
        blocks, number = self.used.blocks, self.number
        allocated = self._line_ends
        freed = np.flatnonzero(self.is_freed)
        runs = self._statements.ends_of_events(blocks.free[number[freed]])
        order = np.lexsort((self.begin, allocated))
        ends, count = distinct(allocated), self._places.count
        keys = np.searchsorted(ends, allocated[order]) * count + self.begin[order]
        run = np.searchsorted(ends, runs)
        by = np.searchsorted(keys, run * count + self.end[freed]) - 1
        same = (run < len(ends)) & (by >= 0) & (allocated[order[by]] == runs)
        same &= order[by] != freed
        return freed[same], order[by][same]

    @cached_property
    def growing(self) -> "list[GrowingLine]":
        """The lines of the device whose live memory grows."""
        found = growing_lines(self.recording, self.used)
        return [line for line in found if line.device == self.device and line.growth is not None]

    @cached_property
    def place(self) -> "NDArray[Any]":
        """For each block of ``used.blocks``, its index in the device's blocks; -1 of others."""
        place = np.full(len(self.used.blocks), -1)
        place[self.number] = np.arange(len(self.number))
        return place

    @cached_property
    def elementwise(self) -> Elementwise:
        """The launches of elementwise functions of the recording."""
        return Elementwise(self.recording, self.used)

    @cached_property
    def site(self) -> "NDArray[Any]":
        """A number for each block, equal for blocks of the same line of the program."""
        return self.callers.numbers

    @cached_property
    def _line_ends(self) -> "NDArray[Any]":
        """When the run of the line that allocated each block ends, in ns; see `Statements`."""
        return self._statements.ends_of_events(self.used.blocks.alloc[self.number])

    @cached_property
    def is_used_only_when_made(self) -> "NDArray[Any]":
        """Whether nothing uses each block after the run of the line that makes it."""
        used = np.append(self.call_times, -1)[self.used.last[self.number]]
        only: NDArray[Any] = used < self._line_ends
        return only

    @cached_property
    def is_for_later(self) -> "NDArray[Any]":
        """Whether each block was made for a later use that others of its calls had, and it has not.

        As the best result so far, or a state to go back to: the program cannot know that it will
        find a better one, or how far it will go back.
        """
        is_unused = self.is_used_only_when_made
        return is_unused & np.isin(self.stack, self.stack[~is_unused])

    @cached_property
    def is_returned(self) -> "NDArray[Any]":
        """Whether each block is still allocated when the run of its line ends."""
        ends = self.used.blocks.end[self.number]
        returned: NDArray[Any] = (ends < 0) | (ends > self._line_ends)
        return returned

    def _superseded(self) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return where the second array after each one that a line returns is made; else its end.

        A line returns what is live when its run ends. Its variable then has the first array after
        it, at the latest. Only of arrays that are not used afterwards. Also whether each is kept.
        """
        blocks, number, place = self.used.blocks, self.number, self.end.copy()
        # A function of a library may make several arrays in one call.
        is_own_call = is_own(self.recording, self.stack) & (self.stack != 0)
        returned = np.flatnonzero(self.is_returned & is_own_call & ~self.is_initial)
        returned = returned[np.lexsort((self.begin[returned], self.stack[returned]))]
        before, after = returned[:-2], returned[2:]
        same = self.stack[before] == self.stack[after]
        before, after = before[same], after[same]
        calls = self.used.last[number[before]]
        used = np.where(calls >= 0, self.call_times[calls], -1)
        unused = used < blocks.begin[number[after]]
        place[before[unused]] = np.minimum(self.begin[after], self.end[before])[unused]
        kept = place < self.end
        _, of_stack, made = np.unique(self.stack[returned], return_inverse=True, return_counts=True)
        kept[returned] |= (np.bincount(of_stack, kept[returned], len(made)) * 2 >= made)[of_stack]
        return place, kept

    def _may_be_needed_again(self) -> "NDArray[Any]":
        """Return which blocks a collection keeps whose program cannot tell what it needs again."""
        returned = np.flatnonzero(self.is_returned)
        calls = self.used.last[self.number[returned]]
        is_called = calls >= 0
        site, begin = self.site[returned].astype(np.int64), self.begin[returned]
        made, runs = self.used.blocks.begin[self.number[returned]], self._line_ends[returned]
        used = np.where(is_called, self.call_times[calls], -1)
        found = np.zeros(len(self.size), bool)
        found[returned] = used_in_any_order(site, begin, made, runs, used)
        used = np.where(is_called, self.line_runs(calls), -1)
        found[returned] |= may_be_needed(site, begin, self.end[returned], made, used)
        return found

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

    def kept_since(self, blocks: "NDArray[Any]") -> int:
        """Return how many arrays at the peak were made and returned since others were last used.

        Since the earliest of these last uses.
        """
        since = self.call_times[self.used.last[self.number[blocks]]].min()
        new = self.used.blocks.begin[self.number] >= since
        return int(np.count_nonzero(self.at_peak & new & self.is_returned))

    def are_used_together(self, blocks: "NDArray[Any]") -> bool:
        """Return whether blocks were all made before any of them was last used, as in a list."""
        calls, number = self.used.last[self.number[blocks]], self.number[blocks]
        return bool(self.used.blocks.begin[number].max() <= self.call_times[calls].min())

    @cached_property
    def call_times(self) -> "NDArray[Any]":
        """When each row of ``api_calls`` began, in ns."""
        return plain(self.recording.tables["api_calls"]["time"])


def needed_touches(recording: "RecordingData", used: Touches) -> Touches:
    """Return the uses of blocks without those that only fill them.

    A copy from the host and a memset can be made later as well. If only copies and memsets write a
    block, and nothing reads it, none of them is needed.
    """
    activities = recording.tables["activities"]
    seen, rows = used.activity >= 0, np.maximum(used.activity, 0)
    kind = codes(activities["kind"], _KINDS)[rows]
    copy_kind = codes(activities["copy_kind"], _COPY_KINDS)[rows]
    is_memset = seen & (kind == _KINDS.index("memset"))
    is_copy = seen & (kind == _KINDS.index("memcpy")) & (used.mode == _WRITE)
    only_filled = np.ones(len(used.blocks), bool)
    only_filled[used.block[~is_memset & ~is_copy]] = False
    from_host = copy_kind == _COPY_KINDS.index("host_to_device")
    fills = is_memset | (is_copy & (from_host | only_filled[used.block]))
    return without_touches(recording, used, fills)


def changes_by_line(
    device: DeviceBlocks,
    idle: "NDArray[Any]",
    begin: "NDArray[Any]",
    end: "NDArray[Any]",
) -> "Iterator[tuple[NDArray[Any], Change]]":
    """Yield what each line changes if all of its blocks get other lifetimes.

    Args:
        device: The blocks.
        idle: Whether each block is at the peak without need.
        begin: The new place of each block's allocation.
        end: The new place of its free.

    Yields:
        The line's blocks that are at the peak without need, and the change.
    """
    is_changed = (begin != device.begin) | (end != device.end)
    for site in distinct(device.site[idle]).tolist():
        of_site = np.flatnonzero((device.site == site) & is_changed)
        later = device.begin.copy()
        later[of_site] = begin[of_site]
        ends = device.ends_with(later)
        ends[of_site] = np.where(end[of_site] < device.end[of_site], end[of_site], ends[of_site])
        changed = np.flatnonzero((later != device.begin) | (ends != device.end))
        change = Change(changed, later[changed], ends[changed])
        yield np.flatnonzero(idle & (device.site == site)), change


def device_blocks(
    recording: "RecordingData", schedule: Schedule | None = None
) -> "list[DeviceBlocks]":
    """Return the blocks of each device whose memory and work were recorded without a gap."""
    if recording.dropped:
        return []
    used = touches(recording) if schedule is None else schedule.touches
    if used is None:
        return []
    devices = [DeviceBlocks(recording, device, used, schedule) for device in recording.devices]
    return [device for device in devices if device.is_consistent and device.peak.bytes]


def _is_used_at_any_time(recording: "RecordingData", used: Touches) -> "NDArray[Any]":
    """Return which blocks belong to graphs, which use them when launched, or to libraries.

    Libraries keep workspaces for later calls, as CuPy does with the work areas of FFT plans.
    """
    pools = plain(recording.tables["memory_events"]["pool"])[used.blocks.alloc]
    _, categories = block_categories(recording)
    found: NDArray[Any] = np.isin(pools, private_pools(recording.tables))
    found |= categories == _WORKSPACE
    found |= have_frame(recording, used.blocks.stack, _makes_plan)
    return found


def _makes_plan(frame: "Frame") -> bool:
    """Return whether a frame is of CuPy's code that makes a plan of cuFFT."""
    return _FFT_OF_CUPY in frame.filename and _PLAN in frame.source


def _shared(recording: "RecordingData", used: Touches) -> "NDArray[Any]":
    streams = plain(recording.tables["activities"]["stream"])
    seen = used.activity >= 0
    other = ~seen
    other[seen] = streams[used.activity[seen]] != used.blocks.stream[used.block[seen]]
    shared = np.zeros(len(used.blocks), bool)
    shared[used.block[other]] = True
    return shared
