"""Work that computes what the GPU has computed before, from arrays that are still the same."""

import re
from collections.abc import Mapping
from itertools import takewhile

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.arrays.work_values import COPY, KERNEL, MEMSET, TO_DEVICE, TO_HOST, WorkValues
from gpuviz.advice.source.libraries import initializes_modules
from gpuviz.advice.source.library_calls import (
    EqualWork,
    LibraryCall,
    busy_parts,
    launched,
    unchanged_calls,
)
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.categories import block_categories
from gpuviz.analysis.grouping import components, numbered
from gpuviz.analysis.launches import user_frames
from gpuviz.data.call_stacks import Frame
from gpuviz.data.codes import CATEGORIES, PHASES
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.strings import are_named

# Kernels that fill or copy an array: an update of a copy is a result of the original.
_FILLS = re.compile(r"cupy_(copy__(\w+)_\2|arange__\w+|\w*fill\w*)$")
# Fewer may be parts of a program that know nothing of each other.
_LEAST_ROUNDS = 4
_PARAMETER = CATEGORIES.index("parameter")


class RepeatedWork(WorkValues):
    """The work of a device that computes the same values several times.

    Args:
        device: The device's blocks.

    Attributes:
        is_again: Whether the program can leave each work out, because it computes what has been
            computed before, at least four times in all. Nothing changes these results but
            elementwise functions that can write another array instead, and work that does
            something else each time reads them.
        kept: The blocks that the program has to keep instead.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        super().__init__(device)
        self._is_update = self._updates()
        self.is_again = np.zeros(len(self.call), bool)
        self.kept = self._block[:0]
        self._busy: set[str] = set()
        self._library_calls: Mapping[int, LibraryCall] = {}
        self._find()

    def _find(self) -> None:
        repeats = self._unchanged_repeats()
        is_written = (self._mode != READ) & ~self._is_scratch
        readers = (self._mode != WRITE) & ~self._is_scratch
        to_host = (self._kind == COPY) & (self._copy_kind == TO_HOST)
        # What only the host reads, or nothing, is not said: a benchmark repeats its work.
        others = readers & ~repeats[self._work] & ~to_host[self._work]
        useful = self._of_blocks(others)
        written = is_written & repeats[self._work]
        needed = np.unique(self._block[written & useful[self._block]])
        is_useful = np.zeros(len(self.call), bool)
        while True:
            more = repeats & self._of_works(written & useful[self._block])
            more |= repeats & self._in_transforms(more)
            if (more == is_useful).all():
                break
            is_useful = more
            useful |= self._of_blocks(readers & is_useful[self._work])
        if not is_useful.any():
            return
        can_leave_out = self._can_leave_out(repeats)
        same = repeats | self._fetched_again(repeats)
        is_useful = (is_useful & can_leave_out) | self._in_library_calls(
            same, is_useful & ~can_leave_out
        )
        works = np.flatnonzero(same)
        _, first = np.unique(self.value[works], return_index=True)
        self.is_again = is_useful.copy()
        self.is_again[works[first]] = False
        self.is_again &= ~self._of_gradients(self.is_again)
        made = self._of_blocks(written & is_useful[self._work] & ~self.is_again[self._work])
        self.kept = needed[made[needed]]

    def _unchanged_repeats(self) -> np.ndarray:
        """Return which work is repeated at least four times and nothing else writes its results."""
        activities = self._device.recording.tables["activities"]
        of_device = plain(activities["device"])[np.maximum(self.activity, 0)] == self._device.device
        able = (self._kind == KERNEL) | (self._kind == MEMSET)
        able |= (self._kind == COPY) & ~np.isin(self._copy_kind, (TO_DEVICE, TO_HOST))
        repeats: np.ndarray = able & of_device & (self.stacks != 0)
        # Each module of PyTorch has parameters of its own, however they begin.
        frames_of = self._device.recording.call_stacks.frames
        stacks, place = np.unique(self.stacks, return_inverse=True)
        repeats &= ~np.array([initializes_modules(frames_of(each)) for each in stacks.tolist()])[
            place
        ]
        group, _ = numbered(self.value >> 32, self.value & 0xFFFFFFFF)
        is_written = (self._mode != READ) & ~self._is_scratch
        place = self._device.place[self._block]
        unseen = is_written & ((place < 0) | ~self._device.is_seen[place])
        repeats &= ~self._of_works(unseen)
        while True:
            repeats &= np.bincount(group[repeats], minlength=len(group))[group] >= _LEAST_ROUNDS
            changed = self._of_blocks(is_written & ~repeats[self._work])
            changed &= ~self._updated_afterwards(repeats)
            bad = self._of_works(is_written & changed[self._block]) & repeats
            bad |= self._in_transforms(~repeats) & repeats
            if not bad.any():
                return repeats
            repeats &= ~bad

    def _updates(self) -> np.ndarray:
        """Return which touches are writes of elementwise functions that update a whole array."""
        functions = self._device.elementwise
        chosen = functions.is_update & functions.is_whole
        calls = np.full(len(self._times), -1)
        calls[functions.call[chosen]] = functions.target[chosen]
        updated: np.ndarray = self._mode != READ
        updated &= calls[self.call[self._work]] == self._block
        return updated

    def _updated_afterwards(self, repeats: np.ndarray) -> np.ndarray:
        """Return the blocks that only an update changes after repeated kernels have written them.

        The update can read the result that is kept, and write another array.

        Args:
            repeats: Which work is repeated.
        """
        names = plain(self._device.recording.tables["activities"]["name"])
        is_fill = are_named(
            self._device.recording.tables, names[np.maximum(self.activity, 0)], _FILLS.match
        )
        reads = np.bincount(self._work[self._mode != WRITE], minlength=len(self.call)) > 0
        is_computed = (self._kind == KERNEL) & reads & ~is_fill
        writes = np.flatnonzero((self._mode != READ) & ~self._is_scratch)
        own = writes[repeats[self._work[writes]]]
        others = writes[~repeats[self._work[writes]]]
        last, first = (np.full(len(self._used.blocks), each) for each in (-1, len(self._work)))
        np.maximum.at(last, self._block[own], own)
        np.minimum.at(first, self._block[others], others)
        found: np.ndarray = (last >= 0) & (last < first)
        found &= np.append(self._is_update, False)[first]
        found[self._block[own[~is_computed[self._work[own]]]]] = False
        return found

    def _of_gradients(self, again: np.ndarray) -> np.ndarray:
        """Return which work to leave out a backward pass goes through, to parameters.

        Each pass needs a graph of its own, so that the next round cannot use the same array. If no
        array is known to be a parameter, any may be one.

        Args:
            again: Which work is to be left out.
        """
        recording = self._device.recording
        stacks = recording.tables["stacks"]
        is_backward = codes(stacks["phase"], PHASES) == BACKWARD
        lines = distinct(plain(stacks["forward_frame"])[is_backward])
        trained = again & np.isin(user_frames(recording.tables, self.stacks), lines[lines != 0])
        _, categories = block_categories(recording)
        parameters = categories == _PARAMETER
        found = trained.copy()
        if parameters.any():
            reads, writes = self._mode != WRITE, self._mode != READ
            found = again & self._of_works(reads & parameters[self._block])
            while True:
                made = self._of_blocks(writes & found[self._work])
                more = found | (again & self._of_works(reads & made[self._block]))
                if (more == found).all():
                    break
                found = more
        return found & trained

    def updates_of(self, again: np.ndarray) -> np.ndarray:
        """Return the activities that first update what some work to leave out has written."""
        made = np.zeros(len(self.call), bool)
        made[again] = True
        blocks = self._of_blocks((self._mode != READ) & made[self._work])
        changing = np.flatnonzero(blocks[self._block] & self._is_update & ~made[self._work])
        _, first = np.unique(self._block[changing], return_index=True)
        updated: np.ndarray = self.activity[np.unique(self._work[changing[first]])]
        return updated

    def _can_leave_out(self, repeats: np.ndarray) -> np.ndarray:
        """Return which work the program calls itself, or is on a line that does nothing else."""
        recording = self._device.recording
        self._busy = busy_parts(recording, self._sites, self._equal(repeats), self._others(repeats))
        distinct, place = np.unique(self.stacks, return_inverse=True)
        alone = np.array([bool(self._lines_alone(stack)) for stack in distinct.tolist()], bool)
        left: np.ndarray = is_own(recording, self.stacks) | alone[place]
        return left

    def _fetched_again(self, repeats: np.ndarray) -> np.ndarray:
        """Return which copies to the host have the same values at least four times.

        Args:
            repeats: Which work is repeated.
        """
        fetched: np.ndarray = (self._kind == COPY) & (self._copy_kind == TO_HOST)
        written = self._of_blocks((self._mode != READ) & repeats[self._work])
        fetched &= self._of_works((self._mode == READ) & written[self._block])
        values, place = np.unique(self.value, return_inverse=True)
        counts = np.bincount(place.ravel()[fetched], minlength=len(values))
        return fetched & (counts[place.ravel()] >= _LEAST_ROUNDS)

    def _in_library_calls(self, same: np.ndarray, is_useful: np.ndarray) -> np.ndarray:
        """Return the work of library calls that compute the same each time, with useful results.

        Args:
            same: Which work is repeated.
            is_useful: Which of it has useful results and is not on a line that can be left out.
        """
        if not is_useful.any():
            return np.zeros(len(self.call), bool)
        recording = self._device.recording
        found = unchanged_calls(recording, self._equal(same), self._others(same))
        useful = {
            found[each] for each in np.unique(self.stacks[is_useful]).tolist() if each in found
        }
        self._library_calls = {stack: each for stack, each in found.items() if each in useful}
        left: np.ndarray = same & np.isin(self.stacks, list(self._library_calls))
        return left

    def library_call(self, stack: int) -> LibraryCall | None:
        """Return the call of a library function to leave out, by the call stack of its work."""
        return self._library_calls.get(stack)

    def further_calls(self, again: np.ndarray) -> np.ndarray:
        """Return what else library calls call whose work is left out, rows of ``api_calls``.

        As waits for the results.

        Args:
            again: The work to leave out.
        """
        tables, known = self._device.recording.tables, list(self._library_calls)
        if not known:
            return self.call[:0]
        made = np.zeros(len(self.call), bool)
        made[again] = True
        inside = np.flatnonzero(np.isin(self.stacks, known))
        calls = np.setdiff1d(
            np.flatnonzero(np.isin(plain(tables["api_calls"]["stack"]), known)), self.call
        )
        before = (
            np.searchsorted(self._times[self.call[inside]], self._times[calls], side="right") - 1
        )
        further: np.ndarray = calls[(before >= 0) & made[inside[np.maximum(before, 0)]]]
        return further

    def _equal(self, works: np.ndarray) -> EqualWork:
        """Return some works as those that compute the same values."""
        call = self.call[works]
        names = launched(self._device.recording, call)
        return EqualWork(self.stacks[works], self.value[works], self._times[call], names)

    def _others(self, works: np.ndarray) -> np.ndarray:
        """Return the calls that launch anything but some works, rows of ``api_calls``.

        A work area that a product of matrices clears is part of the product.
        """
        call = self._device.schedule.call
        others = np.setdiff1d(call[call >= 0], self.call[works])
        return np.setdiff1d(others, self._cleared_areas())

    def _sites(self, stack: int) -> list[str]:
        """Return the lines of the program on a call stack."""
        return [frame.site for frame in self._device.recording.call_stacks.user_frames(stack)]

    def _lines_alone(self, stack: int) -> list[Frame]:
        """Return the program's lines on a call stack that cause nothing but repeated work."""
        frames = self._device.recording.call_stacks.user_frames(stack)
        return list(takewhile(lambda frame: frame.site not in self._busy, frames))

    def line(self, stack: int) -> Frame | None:
        """Return the line of the program to move before the loop, by the call stack of work.

        A function that does other work too gives way to the line that calls it.
        """
        alone, stacks = self._lines_alone(stack), self._device.recording.call_stacks
        callers = (each for each in stacks.user_frames(stack) if each.site not in self._busy)
        return alone[-1] if alone else next(callers, stacks.user_frame(stack))

    def is_part_of_line(self, stack: int) -> bool:
        """Return whether the line of some work, by its call stack, does other work too."""
        frame = self.line(stack)
        return frame is not None and frame.site in self._busy

    def groups(self, again: np.ndarray, line: np.ndarray) -> np.ndarray:
        """Return a number for each line of some work to leave out, equal if results connect them.

        Args:
            again: The work.
            line: The number of the line of each such work.
        """
        number = np.full(len(self.call), -1)
        number[again] = line
        touches = np.flatnonzero(number[self._work] >= 0)
        touches = touches[np.argsort(self._block[touches], kind="stable")]
        block, of_touch = self._block[touches], number[self._work[touches]]
        # The latest write of the same block before each.
        places = np.arange(1, len(touches) + 1)
        written = np.maximum.accumulate(np.where(self._mode[touches] != READ, places, 0))
        written = np.concatenate([[0], written])[: len(touches)] - 1
        reads = (self._mode[touches] != WRITE) & (written >= 0)
        reads &= block[written] == block
        return components(int(line.max(initial=-1)) + 1, of_touch[written[reads]], of_touch[reads])

    def kept_bytes(self, again: np.ndarray) -> tuple[int, int]:
        """Return the bytes to keep instead of some work to leave out: at most at a time, and all.

        A result is kept from the work that makes it until the last use of what equal work wrote.
        """
        wanted = np.isin(self.value, self.value[again])[self._work]
        writes = np.flatnonzero((self._mode != READ) & wanted)
        is_kept = np.isin(self._block[writes], self.kept) & ~self.is_again[self._work[writes]]
        kept, first = np.unique(self._block[writes[is_kept]], return_index=True)
        made = self._work[writes[is_kept][first]]
        values, place = np.unique(self.value[self._work[writes]], return_inverse=True)
        last = np.zeros(len(values), np.int64)
        used = self._used.last[self._block[writes]]
        np.maximum.at(last, place.ravel(), self._times[used])
        until = last[np.searchsorted(values, self.value[made])]
        size = self._used.blocks.size[kept]
        steps = np.concatenate([self._times[self.call[made]], until])
        order = np.argsort(steps, kind="stable")
        levels = np.cumsum(np.concatenate([size, -size])[order])
        return int(levels.max(initial=0)), int(size.sum())

    def _in_transforms(self, works: np.ndarray) -> np.ndarray:
        """Return which works belong to the transforms of some works."""
        found: np.ndarray = (self._transform >= 0) & np.isin(
            self._transform, self._transform[works]
        )
        return found
