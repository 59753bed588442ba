"""Arrays that a loop keeps and that are reduced one after the other when it has ended."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.elementwise import READ, WRITE
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.peak_replay import Change
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.mixing import mixed
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks

LEAST_BYTES = 1 << 20
LEAST_ARRAYS = 4
# How many times as large as its result an array has to be.
LEAST_FACTOR = 8
_MOST_LINES = 8
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_HOST, _TO_DEVICE = (_COPY_KINDS.index(each) for each in ("device_to_host", "host_to_device"))
_KERNEL = DICTIONARIES["activities", "kind"].index("kernel")
_NEVER = 2**62


def reduced_at_last(device: "DeviceBlocks") -> "Iterator[Change]":
    """Yield what reducing each array in the loop that made it would change.

    All arrays of a line that are there at the peak are used once more after the last of them was
    made, one after the other, by the same kernels with the same numbers. Each such round keeps at
    most an eighth of its array's bytes and reads nothing else that was written since the array was
    made, and the host reads nothing before the first of them: so each could have been done in the
    loop.
    """
    can = device.at_peak & device.is_freed & ~device.is_initial & ~device.is_shared
    at_peak = np.flatnonzero(can & (device.stack != 0) & (device.size >= LEAST_BYTES))
    sums = np.bincount(device.site[at_peak], device.size[at_peak])
    for site in np.argsort(-sums, kind="stable")[:_MOST_LINES].tolist():
        blocks = at_peak[device.site[at_peak] == site]
        if len(blocks) <= LEAST_ARRAYS:
            continue
        rounds = _Rounds(device, blocks)
        if len(rounds.blocks) >= LEAST_ARRAYS and rounds.could_be_sooner():
            yield rounds.change()


def times_of_host_reads(device: "DeviceBlocks") -> "NDArray[Any]":
    """Return when the host calls copies to itself, in ns, ascending."""
    tables = device.recording.tables
    kinds = codes(tables["activities"]["copy_kind"], _COPY_KINDS)
    reads = plain(tables["activities"]["correlation"])[kinds == _TO_HOST]
    calls = first_rows(plain(tables["api_calls"]["correlation"]), reads)
    return np.sort(plain(tables["api_calls"]["time"])[calls[calls >= 0]])


def written_before(
    device: "DeviceBlocks", touches: "NDArray[Any]", blocks: "NDArray[Any]", times: "NDArray[Any]"
) -> "NDArray[Any]":
    """Return when each block may last have been written before a time, in ns; -1 if never.

    Args:
        device: All blocks.
        touches: The rows of ``device.used`` that count.
        blocks: The blocks.
        times: The time for each of them, in ns; that of a call.
    """
    used = device.used
    called = plain(device.recording.tables["api_calls"]["time"])
    place = device.place[used.block[touches]]
    touches = touches[(place >= 0) & (used.mode[touches] != READ)]
    moments = distinct(called)
    writes = device.place[used.block[touches]] * (len(moments) + 1)
    writes = np.sort(writes + np.searchsorted(moments, called[used.call[touches]]))
    wanted = blocks * (len(moments) + 1) + np.searchsorted(moments, times)
    before = np.append(writes, -1)[np.searchsorted(writes, wanted) - 1]
    owner, moment = np.divmod(before, len(moments) + 1)
    found: NDArray[Any] = np.where(owner == blocks, np.append(moments, -1)[moment], -1)
    return found


def in_loops_of_one_line(
    device: "DeviceBlocks", made: "NDArray[Any]", blocks: "NDArray[Any]", calls: "NDArray[Any]"
) -> "NDArray[Any]":
    """Return the places after some calls, also within a loop that has no other line.

    If the program itself makes some arrays, it has done with a call when it makes the second array
    after it. What a function of a library makes in one line may belong together.

    Args:
        device: All blocks.
        made: The blocks that the line makes.
        blocks: Those whose places are returned.
        calls: For each of them, a call; -1 if it has none, as when it was made.
    """
    times = plain(device.recording.tables["api_calls"]["time"])
    begins = device.used.blocks.begin[device.number]
    order = np.argsort(begins[made], kind="stable")
    done = np.where(calls >= 0, times[calls], begins[blocks])
    later = np.searchsorted(begins[made][order], done, side="right") + 1
    places = np.append(device.begin[made][order], [_NEVER, _NEVER])[later]
    is_made_here = is_own(device.recording, device.stack[made]).all()
    return np.where(is_made_here, places, _NEVER)


class _Rounds:
    """The uses of some blocks after the last of them was made.

    Args:
        device: All blocks.
        blocks: Those that a line has kept.

    Attributes:
        blocks: Those of which it is known when the round of the next one begins, in the order of
            their rounds; none if the rounds overlap.
    """

    def __init__(self, device: "DeviceBlocks", blocks: "NDArray[Any]") -> None:
        self._device, used = device, device.used
        self._times = plain(device.recording.tables["api_calls"]["time"])
        self._begin = used.blocks.begin[device.number]
        self._time, self._place = self._times[used.call], device.place[used.block]
        # The loop itself may still use the last one.
        blocks = blocks[np.argsort(self._begin[blocks], kind="stable")]
        self._newest, blocks = blocks[-1], blocks[:-1]
        self._made = int(self._begin[self._newest])
        blocks = blocks[~self._make_the_newest(blocks)]
        number = np.full(len(device.size), -1)
        number[blocks] = np.arange(len(blocks))
        self._of_kept = np.where(self._place >= 0, number[self._place], -1)
        rows = np.flatnonzero((self._of_kept >= 0) & (self._time > self._made))
        first, last = np.full(len(blocks), np.iinfo(np.int64).max), np.full(len(blocks), -1)
        np.minimum.at(first, self._of_kept[rows], self._time[rows])
        np.maximum.at(last, self._of_kept[rows], self._time[rows])
        order = np.argsort(first, kind="stable")
        order = order[last[order] >= 0]
        is_apart = bool((last[order[:-1]] < first[order[1:]]).all())
        # Otherwise it is a queue.
        of_line = self._begin[device.site == device.site[blocks[0]]]
        is_apart &= not ((of_line > first.min()) & (of_line < last.max())).any()
        self._edges = first[order]
        self._starts = self._starts_after(np.append(self._made, last[order[:-1]]))
        self.blocks = blocks[order[:-1]] if is_apart else blocks[:0]

    def _make_the_newest(self, blocks: "NDArray[Any]") -> "NDArray[Any]":
        """Return which blocks are used with the newest one, as what its function needs for it."""
        call = self._device.used.call
        together = np.isin(call, call[self._place == self._newest]) & (self._time > self._made)
        return np.isin(blocks, self._place[together])

    def _starts_after(self, since: "NDArray[Any]") -> "NDArray[Any]":
        """Return the time of the last work before each round, and what leads up to it, in ns.

        A function of a library may first fill what it allocates for itself.

        Args:
            since: For each round, the time of the last use of the array before.
        """
        opaque = self._times[self._device.used.opaque]
        moments = np.concatenate([self._time, opaque])
        begins = np.append(self._begin, -1)[np.append(self._place, np.full(len(opaque), -1))]
        order = np.argsort(moments, kind="stable")
        times, first = np.unique(moments[order], return_index=True)
        oldest = np.minimum.reduceat(begins[order], first)
        found = []
        for edge, after in zip(self._edges.tolist(), since.tolist(), strict=False):
            place = int(np.searchsorted(times, edge)) - 1
            while place >= 0 and times[place] > after and oldest[place] > after:
                place -= 1
            found.append(int(times[max(place, 0)]))
        return np.array(found, np.int64)

    def could_be_sooner(self) -> bool:
        """Return whether each round could have been done when its array was made."""
        return (
            not self._is_host_informed()
            and not self._was_done_before()
            and self._are_alike()
            and self._reads_what_was_there()
            and self._keeps_little()
        )

    def change(self) -> Change:
        """Return the lifetimes of the arrays if each round were right after the array was made."""
        device, blocks = self._device, self.blocks
        rows = np.flatnonzero((self._of_kept >= 0) & (self._time <= self._made))
        before = np.full(len(device.size), -1)
        order = rows[np.argsort(self._time[rows], kind="stable")]
        before[self._place[order]] = device.used.call[order]
        begin, end = device.begin[blocks], device.end[blocks]
        calls = before[blocks]
        after = np.where(calls >= 0, device.after_lines(calls), begin)
        made = np.append(blocks, self._newest)
        after = np.minimum(after, in_loops_of_one_line(device, made, blocks, calls))
        begins = np.sort(device.begin[made])
        following = begins[np.searchsorted(begins, begin, side="right")]
        return Change(blocks, begin, np.clip(np.maximum(after, following), begin, end))

    def _is_host_informed(self) -> bool:
        """Return whether the host reads anything between the first array and the first round."""
        times = times_of_host_reads(self._device)
        begun = self._begin[self.blocks].min()
        return bool(((times > begun) & (times < self._edges[0])).any())

    def _was_done_before(self) -> bool:
        """Return whether the line that begins the rounds did so between arrays, as with a queue."""
        stacks = plain(self._device.recording.tables["api_calls"]["stack"])
        lines = line_numbers(self._device.recording, stacks)
        begins = lines[np.flatnonzero(self._times == self._edges[0])]
        is_between = (self._times > self._begin[self.blocks].min()) & (self._times <= self._made)
        return bool((np.isin(lines, begins) & is_between).any())

    def _round_of(self, edges: "NDArray[Any]", times: "NDArray[Any]") -> "NDArray[Any]":
        """Return the number of the round at some times; -1 outside of them."""
        found = np.searchsorted(edges, times, side="right") - 1
        return np.where(found < len(self.blocks), found, -1)

    def _are_alike(self) -> bool:
        """Return whether all rounds have the same kernels, in order, with the same numbers."""
        used, tables = self._device.used, self._device.recording.tables
        if (self._round_of(self._edges, self._times[used.opaque]) >= 0).any():
            return False
        calls, first = np.unique(used.call, return_index=True)
        order = np.argsort(self._times[calls], kind="stable")
        calls, activity = calls[order], used.activity[first[order]]
        of_round = self._round_of(self._edges, self._times[calls])
        calls, activity, of_round = (each[of_round >= 0] for each in (calls, activity, of_round))
        counts = np.bincount(of_round, minlength=len(self.blocks))
        if (activity < 0).any() or (counts != counts[0]).any():
            return False
        copied = codes(tables["activities"]["copy_kind"], _COPY_KINDS)[activity]
        # What the host has read may come back in another form.
        if (copied == _TO_DEVICE).any():
            return False
        names = plain(tables["activities"]["name"])[activity].astype(np.uint64)
        is_kernel = codes(tables["activities"]["kind"], DICTIONARIES["activities", "kind"])
        is_kernel = is_kernel[activity] == _KERNEL
        launched = tables["launch_blocks"]
        content = plain(launched["content"])
        known = np.flatnonzero(content)
        correlation = plain(tables["api_calls"]["correlation"])[calls]
        rows = first_rows(plain(launched["correlation"])[known], correlation)
        numbers = np.append(content[known], np.uint64(0))[rows]
        # What a copy brings to the host is a result.
        if (is_kernel & (numbers == 0)).any():
            return False
        launch = plain(tables["activities"]["launch"])[activity].astype(np.uint64)
        keys = mixed(mixed(names, launch), np.where(is_kernel, numbers, np.uint64(0)))
        keys = keys.reshape(len(self.blocks), -1)
        return bool((keys == keys[0]).all())

    def _reads_what_was_there(self) -> bool:
        """Return whether rounds use only what was written before their array, and their own."""
        of_round = self._round_of(self._edges, self._time)
        rows = np.flatnonzero((of_round >= 0) & (self._of_kept < 0))
        place, of_round, mode = self._place[rows], of_round[rows], self._device.used.mode[rows]
        if (place < 0).any():
            return False
        is_own = self._begin[place] >= self._starts[of_round]
        size = self._device.size
        is_small = size[place] * LEAST_FACTOR <= size[self.blocks[of_round]]
        if (~is_own & (mode != READ) & ~((mode == WRITE) & is_small)).any():
            return False
        others = np.flatnonzero(~is_own & (mode != WRITE))
        made = self._begin[self.blocks[of_round[others]]]
        if len(others) and self._is_opaque_between(int(made.min())):
            return False
        touches = np.arange(len(self._device.used.call))
        written = written_before(self._device, touches, place[others], self._time[rows[others]])
        return bool((np.maximum(written, self._begin[place[others]]) < made).all())

    def _is_opaque_between(self, begin: int) -> bool:
        """Return whether work that may have written anything was launched until the last round."""
        times = self._times[self._device.used.opaque]
        return bool(((times > begin) & (times < self._edges[-1])).any())

    def _keeps_little(self) -> bool:
        """Return whether what remains of each round has at most an eighth of its array's bytes."""
        device = self._device
        of_round = self._round_of(self._starts, self._begin)
        rows = np.flatnonzero(of_round >= 0)
        ends = device.used.blocks.end[device.number[rows]]
        remains = (ends < 0) | (ends > self._edges[of_round[rows] + 1])
        kept = np.bincount(
            of_round[rows[remains]], device.size[rows[remains]], minlength=len(self.blocks)
        )
        return bool((kept * LEAST_FACTOR <= device.size[self.blocks]).all())
