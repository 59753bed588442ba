"""Work that computes what the GPU has computed before, from arrays that are still the same."""

import re
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz import _core
from gpuviz.advice.elementwise import READ, WRITE
from gpuviz.advice.fusion import components
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.own_lines import is_own
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.touches import PRODUCT
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.mixing import GOLDEN, mixed
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES
from gpuviz.hazards.workspaces import is_of_plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks
    from gpuviz.data.call_stacks import Frame

_KINDS = DICTIONARIES["activities", "kind"]
_KERNEL, _COPY, _MEMSET = (_KINDS.index(each) for each in ("kernel", "memcpy", "memset"))
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_DEVICE, _TO_HOST = (_COPY_KINDS.index(each) for each in ("host_to_device", "device_to_host"))
# Kernels without an input that still compute the same each time: `arange`, `full`.
_CONSTANT = re.compile(r"cupy_\w+__\w+$")
# Kernels that fill or copy an array: an update of a copy is a result of the original.
_FILLS = re.compile(r"cupy_(copy__(\w+)_\2|arange__\w+|\w*fill\w*)$")
# Fewer may be parts of a program that know nothing of each other.
_LEAST_ROUNDS = 4
# A line's share of calls of which it is not known that they are repeated, as in the first rounds.
_MOST_OTHERS = 0.05
_READS, _WRITES, _WRITES_ALL = 1, 2, 4  # as `value_numbers` takes them


class RepeatedWork:
    """The work of a device that computes the same values several times.

    Two works compute the same if they have the same function, launch configuration and arguments
    other than arrays, and read arrays with the same values: those that nothing has written since,
    or that such works wrote.

    Args:
        device: The device's blocks.

    Attributes:
        call: For each work, its row of ``api_calls``, ascending.
        activity: For each, its row of ``activities``; -1 if unknown.
        value: For each, a number that is equal for the same values.
        is_again: Whether the program can leave each out, because it computes what has been
            computed before, at least four times in all. Nothing changes these results but
            elementwise functions that can write another array instead, and work that does
            something else each time reads them.
        kept: The blocks that the program has to keep instead.
    """

    def __init__(self, device: "DeviceBlocks") -> None:
        self._device, self._used = device, device.used
        used, tables = self._used, device.recording.tables
        self._times = plain(tables["api_calls"]["time"])
        order = np.lexsort((used.call, self._times[used.call]))
        self._block, self._mode = used.block[order], used.mode[order]
        self.call, first, self._work = np.unique(
            used.call[order], return_index=True, return_inverse=True
        )
        self.activity = used.activity[order][first]
        known = np.maximum(self.activity, 0)
        self._kind = np.where(
            self.activity >= 0, codes(tables["activities"]["kind"], _KINDS)[known], -1
        )
        self._copy_kind = codes(tables["activities"]["copy_kind"], _COPY_KINDS)[known]
        self._stacks = stacks_of(tables, self.call)
        self._lines = line_numbers(device.recording, self._stacks)
        self._is_scratch, self._begins, self._transform = self._transforms()
        self._is_update = self._updates()
        self.value = self._values(order)
        self.is_again = np.zeros(len(self.call), bool)
        self.kept = self._block[:0]
        self._busy: set[str] = set()
        self._find()

    def _values(self, order: "NDArray[Any]") -> "NDArray[Any]":
        used, blocks = self._used, self._used.blocks
        offset = used.address[order] - blocks.address[self._block]
        is_all = used.at_begin[order] & (used.bytes[order] >= blocks.requested[self._block])
        access = np.full(len(order), _READS | _WRITES, np.uint8)
        access[self._mode == READ] = _READS
        access[self._mode == WRITE] = np.where(
            is_all[self._mode == WRITE], _WRITES | _WRITES_ALL, _WRITES
        )
        access[self._begins] = _WRITES | _WRITES_ALL
        unseen = np.sort(self._times[self._unseen()])
        is_initial = blocks.alloc < self._device.recording.manifest.initial_events
        number = np.arange(1, len(blocks) + 1, dtype=np.uint64)
        contents = {
            "value": np.where(is_initial, mixed(number, GOLDEN), blocks.requested).astype(
                np.uint64
            ),
            "unseen": np.searchsorted(unseen, blocks.begin).astype(np.uint32),
        }
        accesses = {
            "work": self._work.astype(np.uint32),
            "block": self._block.astype(np.uint32),
            "place": mixed(offset.astype(np.uint64), used.bytes[order].astype(np.uint64)),
            "access": access,
            "unseen": np.searchsorted(unseen, self._times[used.call[order]]).astype(np.uint32),
        }
        values: NDArray[Any] = np.asarray(
            _core.value_numbers(self._functions(), contents, accesses)
        )
        return values

    def _transforms(self) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
        """Return what belongs to FFTs, none of which reads what another left in the work area.

        A transform begins with work that uses an array that was used before it, by other work.

        Returns:
            Which touches are of the work area of a plan, which of those are the first of a
            transform, and the number of the transform of each work; -1 without one.
        """
        used, stacks = self._used, self._device.recording.call_stacks
        plans = [each for each in np.unique(used.blocks.stack) if is_of_plan(stacks, int(each))]
        is_scratch = np.isin(used.blocks.stack, plans)[self._block]
        begins, transform = np.zeros(len(is_scratch), bool), np.full(len(self.call), -1)
        if not plans:
            return is_scratch, begins, transform
        first = np.searchsorted(self._work, np.arange(len(self.call) + 1))
        used_before = used.first[self._block] != self.call[self._work]
        known: dict[int, set[int]] = {}
        latest: dict[int, tuple[int, int]] = {}
        for number, touch in enumerate(np.flatnonzero(is_scratch).tolist()):
            block, work = int(self._block[touch]), int(self._work[touch])
            rows = np.arange(first[work], first[work + 1])
            rows = rows[~is_scratch[rows]]
            own = known.setdefault(block, set())
            if not own or set(self._block[rows[used_before[rows]]].tolist()) - own:
                latest[block] = number, work
                own.clear()
            own.update(self._block[rows].tolist(), [block])
            transform[work], begun_by = latest[block]
            begins[touch] = begun_by == work
        return is_scratch, begins, transform

    def _unseen(self) -> "NDArray[Any]":
        """Return the calls that may have written anything, rows of ``api_calls``.

        Such as what kernels read without an argument. Memory that a product of matrices clears
        before it is a work area of its library.
        """
        tables = self._device.recording.tables
        activities = tables["activities"]
        kind = codes(activities["kind"], _KINDS)
        to_host = codes(activities["copy_kind"], _COPY_KINDS) == _TO_HOST
        writes = np.flatnonzero((kind == _MEMSET) | ((kind == _COPY) & ~to_host))
        call = first_rows(
            plain(tables["api_calls"]["correlation"]), plain(activities["correlation"])[writes]
        )
        is_hidden = (call >= 0) & ~np.isin(call, self.call)
        names = plain(activities["name"])[np.maximum(self.activity, 0)]
        of_products = np.setdiff1d(self._stacks[are_named(tables, names, PRODUCT.search)], [0])
        is_cleared = (kind[writes] == _MEMSET) & np.isin(stacks_of(tables, call), of_products)
        return np.union1d(self._used.opaque, call[is_hidden & ~is_cleared])

    def _functions(self) -> "NDArray[Any]":
        """Return a number for each work, equal for equal functions and arguments; 0 if unknown."""
        tables = self._device.recording.tables
        activities, touched = tables["activities"], tables["launch_blocks"]
        known = np.maximum(self.activity, 0)
        content = plain(touched["content"])
        rows = np.flatnonzero(content)
        correlation = plain(tables["api_calls"]["correlation"])[self.call]
        found = first_rows(plain(touched["correlation"])[rows], correlation)
        arguments = np.append(content[rows], np.uint64(0))[found]
        is_kernel, is_copy = self._kind == _KERNEL, self._kind == _COPY
        name = plain(activities["name"])[known]
        launch = plain(activities["launch"])[known]
        number = mixed(name.astype(np.uint64), launch.astype(np.uint64) + GOLDEN)
        number = mixed(number, arguments)
        # A memset's value is that of its line.
        what = np.where(self._kind == _MEMSET, self._lines, self._copy_kind).astype(np.uint64)
        moved = mixed(plain(activities["bytes"])[known].astype(np.uint64), what + GOLDEN)
        number = np.where(is_kernel, number, moved)
        # A block that nothing has used before has no contents to read.
        is_read = (self._mode != WRITE) & (self._used.first[self._block] != self.call[self._work])
        reads = np.bincount(self._work[is_read], minlength=len(self.call)) > 0
        is_constant = are_named(tables, name, _CONSTANT.match)
        is_known = is_kernel & (arguments != 0) & (reads | is_constant)
        # What is known of the host's memory are samples, which can be equal where the rest differs.
        is_known |= is_copy & (self._copy_kind != _TO_DEVICE)
        is_known |= self._kind == _MEMSET
        is_known &= (self.activity >= 0) & ~np.isin(self.call, self._used.opaque)
        functions: NDArray[Any] = np.where(is_known, np.maximum(number, 1), 0).astype(np.uint64)
        return functions

    def _find(self) -> None:
        repeats = self._unchanged_repeats()
        is_written = (self._mode != READ) & ~self._is_scratch
        readers = (self._mode != WRITE) & ~self._is_scratch
        to_host = (self._kind == _COPY) & (self._copy_kind == _TO_HOST)
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
        is_useful &= self._can_leave_out(repeats)
        works = np.flatnonzero(repeats)
        _, first = np.unique(self.value[works], return_index=True)
        self.is_again = is_useful.copy()
        self.is_again[works[first]] = False
        made = self._of_blocks(written & is_useful[self._work] & ~self.is_again[self._work])
        self.kept = needed[made[needed]]

    def _unchanged_repeats(self) -> "NDArray[Any]":
        """Return which work is repeated at least four times and nothing else writes its results."""
        activities = self._device.recording.tables["activities"]
        of_device = plain(activities["device"])[np.maximum(self.activity, 0)] == self._device.device
        able = (self._kind == _KERNEL) | (self._kind == _MEMSET)
        able |= (self._kind == _COPY) & ~np.isin(self._copy_kind, (_TO_DEVICE, _TO_HOST))
        repeats: NDArray[Any] = able & of_device & (self._stacks != 0)
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

    def _updates(self) -> "NDArray[Any]":
        """Return which touches are writes of elementwise functions that update a whole array."""
        functions = self._device.elementwise
        chosen = functions.is_update & functions.is_whole
        calls = np.full(len(self._times), -1)
        calls[functions.call[chosen]] = functions.target[chosen]
        updated: NDArray[Any] = self._mode != READ
        updated &= calls[self.call[self._work]] == self._block
        return updated

    def _updated_afterwards(self, repeats: "NDArray[Any]") -> "NDArray[Any]":
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
        is_computed = (self._kind == _KERNEL) & reads & ~is_fill
        writes = np.flatnonzero((self._mode != READ) & ~self._is_scratch)
        own = writes[repeats[self._work[writes]]]
        others = writes[~repeats[self._work[writes]]]
        last, first = (np.full(len(self._used.blocks), each) for each in (-1, len(self._work)))
        np.maximum.at(last, self._block[own], own)
        np.minimum.at(first, self._block[others], others)
        found: NDArray[Any] = (last >= 0) & (last < first)
        found &= np.append(self._is_update, False)[first]
        found[self._block[own[~is_computed[self._work[own]]]]] = False
        return found

    def updates_of(self, again: "NDArray[Any]") -> "NDArray[Any]":
        """Return the activities that first update what some work to leave out has written."""
        made = np.zeros(len(self.call), bool)
        made[again] = True
        blocks = self._of_blocks((self._mode != READ) & made[self._work])
        changing = np.flatnonzero(blocks[self._block] & self._is_update & ~made[self._work])
        _, first = np.unique(self._block[changing], return_index=True)
        updated: NDArray[Any] = self.activity[np.unique(self._work[changing[first]])]
        return updated

    def _can_leave_out(self, repeats: "NDArray[Any]") -> "NDArray[Any]":
        """Return which work the program calls itself, or is on a line that does nothing else."""
        schedule, recording = self._device.schedule, self._device.recording
        calls = schedule.call[schedule.call >= 0]
        others = self._calls_by_site(np.setdiff1d(calls, self.call[repeats]))
        repeated = self._calls_by_site(self.call[repeats])
        self._busy = {
            site for site, count in others.items() if count > _MOST_OTHERS * repeated[site]
        }
        distinct, place = np.unique(self._stacks, return_inverse=True)
        alone = np.array([bool(self._lines_alone(stack)) for stack in distinct.tolist()], bool)
        left: NDArray[Any] = is_own(recording, self._stacks) | alone[place]
        return left

    def _calls_by_site(self, calls: "NDArray[Any]") -> Counter[str]:
        """Return how many calls each line of the program makes, or causes."""
        recording, count = self._device.recording, Counter[str]()
        stacks, calls_of = np.unique(stacks_of(recording.tables, calls), return_counts=True)
        for stack, of_stack in zip(stacks.tolist(), calls_of.tolist(), strict=True):
            sites = {frame.site for frame in recording.call_stacks.user_frames(stack)}
            count.update(dict.fromkeys(sites, of_stack))
        return count

    def _lines_alone(self, stack: int) -> "list[Frame]":
        """Return the program's lines on a call stack that cause nothing but repeated work."""
        frames = self._device.recording.call_stacks.user_frames(stack)
        return list(takewhile(lambda frame: frame.site not in self._busy, frames))

    def line(self, stack: int) -> "Frame | None":
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

    def groups(self, line: "NDArray[Any]") -> "NDArray[Any]":
        """Return a number for each line of the work to leave out, equal if results connect them.

        Args:
            line: The number of the line of each such work.
        """
        number = np.full(len(self.call), -1)
        number[self.is_again] = line
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

    def kept_bytes(self, again: "NDArray[Any]") -> tuple[int, int]:
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

    def _in_transforms(self, works: "NDArray[Any]") -> "NDArray[Any]":
        """Return which works belong to the transforms of some works."""
        found: NDArray[Any] = (self._transform >= 0) & np.isin(
            self._transform, self._transform[works]
        )
        return found

    def _of_blocks(self, touches: "NDArray[Any]") -> "NDArray[Any]":
        """Return which blocks some touches are of."""
        found = np.zeros(len(self._used.blocks), bool)
        found[self._block[touches]] = True
        return found

    def _of_works(self, touches: "NDArray[Any]") -> "NDArray[Any]":
        """Return which works some touches are of."""
        found = np.zeros(len(self.call), bool)
        found[self._work[touches]] = True
        return found
