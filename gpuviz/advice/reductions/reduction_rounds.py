"""The rounds in which a program uses arrays, one after the other, when it has made all of them."""

import numpy as np

from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.reductions.reduction_times import in_loops_of_one_line, written_before
from gpuviz.advice.reductions.reduction_uses import Uses
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.mixing import mixed
from gpuviz.data.tables import DICTIONARIES

# How many times as large as its result an array has to be.
LEAST_FACTOR = 8
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_DEVICE = _COPY_KINDS.index("host_to_device")
_KERNEL = DICTIONARIES["activities", "kind"].index("kernel")
_NEVER = 2**62
# Of the arrays that a loop keeps, those that it uses itself until it ends.
_MOST_IN_LOOP = 0.1


class Rounds:
    """The uses of some blocks after the last of them was made.

    Args:
        uses: All uses of blocks.
        blocks: Those that a line has kept.

    Attributes:
        blocks: Those of which it is known when the round of the next one begins, in the order of
            their rounds; none if the rounds overlap.
    """

    def __init__(self, uses: Uses, blocks: np.ndarray) -> None:
        device, self._uses = uses.device, uses
        self._device = device
        # The loop itself may still use the last one.
        blocks = blocks[np.argsort(uses.begin[blocks], kind="stable")]
        self._window = (uses.begin[blocks[0]], device.used.blocks.end[device.number[blocks]].max())
        first, until = np.searchsorted(uses.time, self._window)
        self._time, self._rows = uses.time[first:until], uses.rows[first:until]
        self._call = device.used.call[self._rows]
        self._place = device.place[device.used.block[self._rows]]
        self._newest, blocks = blocks[-1], blocks[:-1]
        self._made = int(uses.begin[self._newest])
        self.blocks = blocks[~self._make_the_newest(blocks)]
        if not len(self.blocks):
            return
        self._of_kept = self._kept(self._place)
        rows = np.flatnonzero((self._of_kept >= 0) & (self._time > self._made))
        rows = self._without_loop(rows)
        first, last = np.full(len(self.blocks), _NEVER), np.full(len(self.blocks), -1)
        np.minimum.at(first, self._of_kept[rows], self._time[rows])
        np.maximum.at(last, self._of_kept[rows], self._time[rows])
        order = np.argsort(first, kind="stable")
        order = order[last[order] >= 0]
        is_apart = bool((last[order[:-1]] < first[order[1:]]).all())
        # Otherwise it is a queue.
        is_apart &= not uses.makes_others(device.site[self._newest], first.min(), last.max())
        self._edges = first[order]
        self._starts = self._starts_after(np.append(self._made, last[order[:-1]]))
        self.blocks = self.blocks[order[:-1]] if is_apart else self.blocks[:0]
        if len(self.blocks):
            self._ends = self._ends_of_large()

    def _without_loop(self, rows: np.ndarray) -> np.ndarray:
        """Return uses of kept blocks without those of a few by the loop's own other lines.

        The loop may use its first array again and again, and kernels of PyTorch have addresses
        among their arguments that they do not use.

        Args:
            rows: The uses after the last block was made, in the order of their times.
        """
        if not len(rows):
            return rows
        stacks = plain(self._device.recording.tables["api_calls"]["stack"])[self._call[rows]]
        lines = line_numbers(self._device.recording, stacks)
        last = np.full(len(self.blocks), -1)
        last[self._of_kept[rows]] = np.arange(len(rows))
        of_last = lines[last[last >= 0]]
        usual = np.bincount(of_last.astype(np.int64)).argmax()
        begin = int(np.argmax(lines == usual))
        early = distinct(self._of_kept[rows[:begin]])
        return rows[begin:] if len(early) <= _MOST_IN_LOOP * len(self.blocks) else rows

    def _ends_of_large(self) -> np.ndarray:
        """Return when each round last uses its array, or a large one that it makes, in ns.

        What the host does with small results afterwards, such as joining those of all arrays, it
        can do as late as it does.
        """
        of_round = self._round_of(self._edges, self._time)
        rows = np.flatnonzero((of_round >= 0) & (self._place >= 0))
        place, of_round = self._place[rows], of_round[rows]
        device = self._device
        is_large = device.size[place] * LEAST_FACTOR > device.size[self.blocks[of_round]]
        is_large &= self._uses.begin[place] >= self._starts[of_round]
        is_large |= place == self.blocks[of_round]
        ends = self._edges[: len(self.blocks)].copy()
        np.maximum.at(ends, of_round[is_large], self._time[rows[is_large]])
        return ends

    def _reducing_round(self, times: np.ndarray) -> np.ndarray:
        """Return the number of the round that uses large arrays at some times; -1 outside."""
        found = self._round_of(self._edges, times)
        return np.where((found >= 0) & (times <= self._ends[found]), found, -1)

    def _kept(self, places: np.ndarray) -> np.ndarray:
        """Return the position among the kept blocks of each of some blocks; -1 of others."""
        order = np.argsort(self.blocks)
        at = np.searchsorted(self.blocks[order], places)
        at = order[np.minimum(at, len(order) - 1)]
        return np.where(self.blocks[at] == places, at, -1)

    def _make_the_newest(self, blocks: np.ndarray) -> np.ndarray:
        """Return which blocks are used with the newest one, as what its function needs for it."""
        together = np.isin(self._call, self._call[self._place == self._newest])
        together &= self._time > self._made
        return np.isin(blocks, self._place[together])

    def _starts_after(self, since: np.ndarray) -> np.ndarray:
        """Return the time of the last work before each round, and what leads up to it, in ns.

        A function of a library may first fill what it allocates for itself.

        Args:
            since: For each round, the time of the last use of the array before.
        """
        opaque = self._opaque()
        moments = np.concatenate([self._time, opaque])
        begins = np.append(self._uses.begin, -1)[np.append(self._place, np.full(len(opaque), -1))]
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

    def _opaque(self) -> np.ndarray:
        """Return when work that may have used anything was launched meanwhile, in ns."""
        first, until = np.searchsorted(self._uses.opaque, self._window)
        return self._uses.opaque[first:until]

    def could_be_sooner(self, *, is_repeated: bool) -> bool:
        """Return whether each round could have been done when its array was made.

        Args:
            is_repeated: Whether the same lines have done so with equal numbers. Then these may
                differ: what a structure has unset among its arguments does.
        """
        return (
            self._begin_with_their_arrays()
            and not self._is_host_informed()
            and not self._was_done_before()
            and self._are_alike(with_numbers=not is_repeated)
            and self._reads_what_was_there()
            and self._keeps_little()
        )

    def change(self) -> Change:
        """Return the lifetimes of the arrays if each round were right after the array was made."""
        device, blocks = self._device, self.blocks
        begin, end = device.begin[blocks], device.end[blocks]
        begins = np.sort(device.begin[np.append(blocks, self._newest)])
        following = begins[np.searchsorted(begins, begin, side="right")]
        after = np.maximum(self._after_loop(), following)
        return Change(blocks, begin, np.clip(after, begin, end))

    @property
    def reduced(self) -> np.ndarray:
        """The blocks that the rounds reduce."""
        reduced: np.ndarray = self.blocks
        return reduced

    def _after_loop(self) -> np.ndarray:
        """Return the place after the last use of each array by the loop that makes them."""
        device, blocks = self._device, self.blocks
        rows = np.flatnonzero(self._time < self._edges[0])
        rows = rows[self._kept(self._place[rows]) >= 0]
        calls = np.full(len(blocks), -1)
        kept = self._kept(self._place[rows])
        calls[kept] = self._call[rows]
        after = np.where(calls >= 0, device.after_lines(calls), device.begin[blocks])
        made = np.append(blocks, self._newest)
        places: np.ndarray = np.minimum(after, in_loops_of_one_line(device, made, blocks, calls))
        return places

    @property
    def _state(self) -> np.ndarray:
        """What rounds leave to the next one."""
        return np.zeros(0, np.int64)

    def _begin_with_their_arrays(self) -> bool:
        """Return whether no round begins with an overwritten array, which it would make itself."""
        kept = self._kept(self._place)
        begins = (kept >= 0) & (self._time == self._edges[kept])
        begins &= self._device.used.mode[self._rows] != WRITE
        reads = np.zeros(len(self.blocks), bool)
        reads[kept[begins]] = True
        return bool(reads.all())

    def _is_host_informed(self) -> bool:
        """Return whether the host reads anything between the first array and the first round."""
        span = (self._uses.begin[self.blocks].min() + 1, self._edges[0])
        first, until = np.searchsorted(self._uses.reads, span)
        return bool(first < until)

    def _was_done_before(self) -> bool:
        """Return whether the line that begins the rounds did so between arrays, as with a queue."""
        uses = self._uses
        first = np.searchsorted(uses.called, uses.begin[self.blocks].min(), side="right")
        until = np.searchsorted(uses.called, self._edges[0], side="right")
        stacks = plain(self._device.recording.tables["api_calls"]["stack"])
        lines = line_numbers(self._device.recording, stacks[uses.calls[first:until]])
        called = uses.called[first:until]
        begins = lines[called == self._edges[0]]
        return bool((np.isin(lines, begins) & (called <= self._made)).any())

    def _round_of(self, edges: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return the number of the round at some times; -1 outside of them."""
        found = np.searchsorted(edges, times, side="right") - 1
        return np.where(found < len(self.blocks), found, -1)

    def _are_alike(self, *, with_numbers: bool) -> bool:
        """Return whether all rounds have the same kernels, in order, with the same numbers."""
        used, tables = self._device.used, self._device.recording.tables
        if (self._reducing_round(self._opaque()) >= 0).any():
            return False
        _, first = np.unique(self._call, return_index=True)
        first = np.sort(first)
        of_round = self._reducing_round(self._time[first])
        first, of_round = first[of_round >= 0], of_round[of_round >= 0]
        calls, activity = self._call[first], used.activity[self._rows[first]]
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
        numbers = self._uses.numbers[calls] if with_numbers else np.ones(len(calls), np.uint64)
        numbers = np.where(self._uses.is_of_torch[activity], np.uint64(1), numbers)
        # What a copy brings to the host is a result.
        if (is_kernel & (numbers == 0)).any():
            return False
        launch = plain(tables["activities"]["launch"])[activity].astype(np.uint64)
        keys = mixed(mixed(names, launch), np.where(is_kernel, numbers, np.uint64(0)))
        keys = keys.reshape(len(self.blocks), -1)
        return bool((keys == keys[0]).all())

    def _reads_what_was_there(self) -> bool:
        """Return whether rounds use only what was written before their array, and their own."""
        of_round = self._reducing_round(self._time)
        is_other = (self._of_kept < 0) & ~np.isin(self._place, self._state)
        rows = np.flatnonzero((of_round >= 0) & is_other)
        place, of_round = self._place[rows], of_round[rows]
        mode = self._device.used.mode[self._rows[rows]]
        if (place < 0).any():
            return False
        is_own = self._uses.begin[place] >= self._starts[of_round]
        size = self._device.size
        is_small = size[place] * LEAST_FACTOR <= size[self.blocks[of_round]]
        if (~is_own & (mode != READ) & ~((mode == WRITE) & is_small)).any():
            return False
        others = np.flatnonzero(~is_own & (mode != WRITE))
        made = self._uses.begin[self.blocks[of_round[others]]]
        if len(others) and self._is_opaque_between(int(made.min())):
            return False
        called = self._time[rows[others]]
        written = written_before(self._device, self._rows, place[others], called)
        return bool((np.maximum(written, self._uses.begin[place[others]]) < made).all())

    def _is_opaque_between(self, begin: int) -> bool:
        """Return whether work that may have written anything was launched until the last round."""
        times = self._uses.opaque
        return bool(((times > begin) & (times < self._edges[-1])).any())

    def _keeps_little(self) -> bool:
        """Return whether what remains of each round has at most an eighth of its array's bytes."""
        device = self._device
        first, until = np.searchsorted(self._uses.born, self._window)
        of_round = self._round_of(self._starts, self._uses.born[first:until])
        made = self._uses.made[first:until]
        counts = (of_round >= 0) & ~np.isin(made, self._state)
        made, of_round = made[counts], of_round[counts]
        ends = device.used.blocks.end[device.number[made]]
        remains = (ends < 0) | (ends > self._edges[of_round + 1])
        kept = np.bincount(
            of_round[remains], device.size[made[remains]], minlength=len(self.blocks)
        )
        return bool((kept * LEAST_FACTOR <= device.size[self.blocks]).all())
