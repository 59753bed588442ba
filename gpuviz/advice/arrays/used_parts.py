"""Arrays of which only parts are used at last, and how many bytes these parts have at most."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.arrays.part_reads import read_bytes
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named

# The bytes of an array for each byte of its part, at least.
LEAST_FACTOR = 4
# Kernels that join arrays read each element of their output once. CuPy's get the addresses from a
# table in device memory; its `concatenate` uses them for nine arrays or more.
_JOIN_OF_CUPY = re.compile(r"cupy_concatenate(_same_size)?$")
_JOIN_OF_TORCH = re.compile(r"\bat::native::.*CatArray")
# Kernels that read elements at indices: which part that is, they find in another array.
_BY_INDEX = re.compile(r"\bat::native::(index_|_scatter_gather_)elementwise_kernel")
_POINTER = 8
# Each is compared with all arrays at the peak.
_MOST_JOINS = 1000
_ALIGNMENT = 512


@dataclass(frozen=True, eq=False, slots=True)
class UsedParts:
    """Arrays of one line of which only parts are used at last, in columns.

    Attributes:
        blocks: Indices of the device's blocks, in the order of their allocations.
        is_kept: Whether each is at the peak after its last use as a whole. Others are of other
            rounds of a loop.
        whole: The row of ``api_calls`` that may have used each as a whole for the last time.
        last: The row of ``api_calls`` that used the part of each for the last time.
        bytes: How large an array for the part of each is.
        used_bytes: How many bytes the parts of those at the peak have at most.
    """

    blocks: np.ndarray
    is_kept: np.ndarray
    whole: np.ndarray
    last: np.ndarray
    bytes: np.ndarray
    used_bytes: int


@dataclass(frozen=True, eq=False, slots=True)
class _Join:
    """A kernel that joins arrays.

    Attributes:
        call: The row of ``api_calls``.
        target: The block that it writes.
        count: How many arrays it joins.
        inputs: Their blocks; None if unknown.
    """

    call: int
    target: int
    count: int
    inputs: np.ndarray | None = None


def used_parts(device: DeviceBlocks) -> Iterator[UsedParts]:
    """Yield the arrays of each line that has some at the peak after their last use as a whole.

    Of each, the program uses one part afterwards, which it only reads. All parts together have at
    most a quarter of the bytes of the arrays, also of those at the peak. If it reads several parts
    of one of them, or nothing of most of those at the peak, they are rather read in turn, such as a
    data set. If it uses one as a whole after a part of it, in another round of a loop, the program
    may need all of them.

    A use is known to be one of a part if it is a copy of few bytes, or by a kernel that reads one
    element for each that it writes, or each once: elementwise functions, and kernels that join
    arrays. What is read at indices may be other elements each time, which is no part. CuPy's
    kernels do not name the arrays that they join: these are all arrays of a line that nothing else
    uses afterwards, if they are as many as it joins, and no line has as many that fill its output
    exactly. Other work that does not name what it uses may use every array.
    """
    can = _can_shrink(device)
    at_peak = can & device.at_peak
    if not _has_joins(device):
        at_peak &= _has_reads_of_parts(device, at_peak)
    can &= np.isin(device.site, device.site[at_peak])
    if not can.any():
        return
    uses = _Uses(device, can)
    blocks = uses.blocks()
    is_kept = device.at_peak[blocks]
    is_kept &= device.after_lines(uses.whole[blocks]) <= device.peak_place
    for site in np.unique(device.site[blocks[is_kept]]).tolist():
        rows = np.flatnonzero(device.site[blocks] == site)
        of_site, kept = blocks[rows], blocks[rows[is_kept[rows]]]
        if uses.are_read_in_turn(site, len(kept)) or uses.is_whole_at_last(site):
            continue
        used, (every, size) = uses.bytes_of_parts(kept)[0], uses.bytes_of_parts(of_site)
        is_small = 0 < used * LEAST_FACTOR <= int(device.requested[kept].sum())
        if is_small and every * LEAST_FACTOR <= int(device.requested[of_site].sum()):
            whole, last = uses.whole[of_site], uses.last[of_site]
            yield UsedParts(of_site, is_kept[rows], whole, last, size, used)


class _Uses:
    """How each block of a device is used after its last use as a whole.

    Args:
        device: The device's blocks.
        can: Which of them a program could replace by an array for a part.

    Attributes:
        whole: The row of ``api_calls`` of that use; -1 without one.
        last: The row of ``api_calls`` that last used a part; -1 without one.
        part: How many bytes of the part work reads that names it, at most.
        target: The block to which a kernel joins the part; -1 without one.
        is_in_turn: Whether work reads parts at several addresses.
    """

    def __init__(self, device: DeviceBlocks, can: np.ndarray) -> None:
        self._device, self._times, used = device, device.call_times, device.used
        end = used.blocks.end[device.number]
        self._died = np.where(end < 0, np.iinfo(np.int64).max, end)
        self._born = used.blocks.begin[device.number]
        self._can = can
        rows = np.flatnonzero(device.place[used.block] >= 0)
        place, call = device.place[used.block[rows]], used.call[rows]
        bound, is_asked = np.zeros(len(rows), np.int64), can[place]
        bound[is_asked] = _bytes_of_parts(device, rows[is_asked])
        is_part = bound > 0
        is_join = _is_by(device, _JOIN_OF_TORCH)[rows]
        none = np.full(len(device.size), -1)
        self.whole, self.last, self.target = none, none.copy(), none.copy()
        self.part = np.zeros(len(device.size), np.int64)
        self.is_in_turn = np.zeros(len(device.size), bool)
        self._part_begins = np.full(len(device.size), np.iinfo(np.int64).max)
        np.minimum.at(self._part_begins, place[is_part], self._times[call[is_part]])
        # Of several uses of a block, the last counts.
        self.whole[place[~is_part & ~is_join]] = call[~is_part & ~is_join]
        joins = self._joins_of_torch(place[is_join], call[is_join])
        joins += self._joins_of_cupy()
        self._use_opaque([each.call for each in joins if each.inputs is None])
        for each in sorted(joins, key=lambda join: self._times[join.call]):
            self._join(each)
        self._read(place[is_part], call[is_part], used.address[rows[is_part]], bound[is_part])

    def blocks(self) -> np.ndarray:
        """Return the blocks of which a part is used at last, as allocated."""
        found = np.flatnonzero(self._can & (self.whole >= 0) & (self.last >= 0))
        return found[np.argsort(self._device.begin[found], kind="stable")]

    def are_read_in_turn(self, site: int, count: int) -> bool:
        """Return whether so many blocks at the peak of a line are not the most, or parts change."""
        of_line = self._can & (self._device.site == site)
        is_less = 2 * count < int(np.count_nonzero(of_line & self._device.at_peak))
        return is_less or bool(self.is_in_turn[of_line].any())

    def is_whole_at_last(self, site: int) -> bool:
        """Return whether some block of a line is used as a whole after a part, in other rounds."""
        others = np.flatnonzero(self._can & ~self._device.at_peak & (self._device.site == site))
        others = others[self.last[others] < 0]
        return bool((self._part_begins[others] < self._time(self.whole[others])).any())

    def bytes_of_parts(self, blocks: np.ndarray) -> tuple[int, np.ndarray]:
        """Return how many bytes the parts of some blocks have at most, and copies of each."""
        device = self._device
        targets, number = np.unique(self.target[blocks], return_inverse=True)
        shared = np.where(targets >= 0, device.requested[targets], 0)
        share = -(-shared // np.bincount(number.ravel()))[number.ravel()]
        size = -(-(self.part[blocks] + share) // _ALIGNMENT) * _ALIGNMENT
        total = int(self.part[blocks].sum() + shared.sum())
        return total, np.minimum(size, device.size[blocks])

    def _time(self, calls: np.ndarray) -> np.ndarray:
        """Return when rows of ``api_calls`` began, in ns; -1 without one."""
        return np.where(calls >= 0, self._times[calls], -1)

    def _use_whole(self, blocks: np.ndarray, calls: np.ndarray) -> None:
        """Count calls as uses of whole blocks, one of each."""
        later = self._time(calls) > self._time(self.whole[blocks])
        self.whole[blocks[later]] = calls[later]

    def _use_opaque(self, joins: list[int]) -> None:
        """Count work that may use all blocks as uses of whole ones, but for some calls."""
        opaque = np.setdiff1d(self._device.used.opaque, joins)
        opaque = opaque[np.argsort(self._times[opaque], kind="stable")]
        before = np.searchsorted(self._times[opaque], self._died, side="right") - 1
        latest = np.where(before >= 0, np.append(opaque, -1)[before], -1)
        blocks = np.flatnonzero(self._time(latest) >= self._born)
        self._use_whole(blocks, latest[blocks])

    def _joins_of_torch(self, place: np.ndarray, call: np.ndarray) -> list[_Join]:
        """Return the kernels that name the arrays that they join.

        Into a new array; of others it is unknown which they write.
        """
        is_new = np.isin(self._device.used.first[self._device.number], call)
        joins = list[_Join]()
        for each in np.split(np.arange(len(call)), np.flatnonzero(np.diff(call)) + 1):
            blocks, calls = np.unique(place[each]), call[each]
            target = blocks[is_new[blocks]]
            whole = target if len(target) == 1 else blocks
            self._use_whole(whole, np.full(len(whole), calls[:1].max(initial=-1)))
            if len(target) == 1:
                inputs = blocks[blocks != target[0]]
                joins.append(_Join(int(calls[0]), int(target[0]), len(inputs), inputs))
        return joins

    def _joins_of_cupy(self) -> list[_Join]:
        """Return the kernels that get the addresses of the arrays in a table."""
        device, used = self._device, self._device.used
        rows = np.flatnonzero(_is_by(device, _JOIN_OF_CUPY) & (device.place[used.block] >= 0))
        joins = list[_Join]()
        for each in np.split(rows, np.flatnonzero(np.diff(used.call[rows])) + 1):
            blocks, mode = device.place[used.block[each]], used.mode[each]
            targets, tables = blocks[mode == WRITE], blocks[mode == READ]
            if len(targets) == 1 and len(tables):
                # The other tables, of sizes and strides, are not smaller.
                inputs = int(device.requested[tables].min()) // _POINTER
                joins.append(_Join(int(used.call[each[0]]), int(targets[0]), inputs))
        return joins if len(joins) <= _MOST_JOINS else []

    def _join(self, join: _Join) -> None:
        """Count a kernel that joins arrays as a use of their parts.

        Others, of which it does not say whether it joins them, may be used as a whole.
        """
        time = int(self._times[join.call])
        blocks = np.flatnonzero(self._can) if join.inputs is None else join.inputs
        blocks = blocks[self._can[blocks] & (self._born[blocks] < time)]
        blocks = blocks[(self._died[blocks] > time) & (self._time(self.whole[blocks]) < time)]
        if not len(blocks):
            return
        inputs = blocks if join.inputs is not None else self._inputs(join, blocks, time)
        again = inputs[(self.target[inputs] >= 0) & (self.target[inputs] != join.target)]
        self.target[inputs], self.last[inputs] = join.target, join.call
        self._part_begins[inputs] = np.minimum(self._part_begins[inputs], time)
        self.target[again] = self.last[again] = -1
        whole = np.append(np.setdiff1d(blocks, inputs), again)
        self._use_whole(whole, np.full(len(whole), join.call))

    def _inputs(self, join: _Join, blocks: np.ndarray, time: int) -> np.ndarray:
        """Return those of some blocks that one line made, if they are as many as are joined."""
        device = self._device
        sites = device.site.astype(np.int64)
        alive = np.flatnonzero((self._born < time) & (self._died > time))
        alive = alive[device.begin[alive] < device.begin[join.target]]
        sums = np.bincount(sites[alive], device.requested[alive])
        fills = sums == device.requested[join.target]
        fills &= np.bincount(sites[alive]) == join.count
        matches = np.flatnonzero(np.bincount(sites[blocks]) == join.count)
        if fills.any() or len(matches) != 1:
            return blocks[:0]
        inputs: np.ndarray = blocks[sites[blocks] == matches[0]]
        return inputs

    def _read(
        self,
        place: np.ndarray,
        call: np.ndarray,
        address: np.ndarray,
        bound: np.ndarray,
    ) -> None:
        """Count reads of parts after the last use of the whole block."""
        later = self._time(call) > self._time(self.whole)[place]
        place, call, address, bound = (each[later] for each in (place, call, address, bound))
        is_latest = np.full(len(self.last), -1)
        is_latest[place] = call
        read = self._time(is_latest) > self._time(self.last)
        self.last[read] = is_latest[read]
        columns = np.stack([place, address.astype(np.int64)])
        parts = np.unique(np.concatenate([columns, bound[None]]), axis=1)
        np.add.at(self.part, parts[0], parts[2])
        addresses = np.bincount(np.unique(columns, axis=1)[0], minlength=len(self.last))
        self.is_in_turn |= addresses > 1


def _can_shrink(device: DeviceBlocks) -> np.ndarray:
    """Return which blocks a program could replace by an array for a part."""
    can = device.is_freed & ~device.is_initial & ~device.is_shared
    can &= (device.stack != 0) & ~device.is_used_at_any_time
    if device.training is not None:
        can &= ~device.training.is_held
    able: np.ndarray = can
    return able


def _has_joins(device: DeviceBlocks) -> bool:
    """Return whether some kernel joins arrays."""
    return any(_is_by(device, each).any() for each in (_JOIN_OF_TORCH, _JOIN_OF_CUPY))


def _has_reads_of_parts(device: DeviceBlocks, blocks: np.ndarray) -> np.ndarray:
    """Return of which of some blocks work that names them reads parts."""
    place = device.place[device.used.block]
    rows = np.flatnonzero((place >= 0) & blocks[place])
    has_reads = np.zeros(len(blocks), bool)
    has_reads[place[rows[_bytes_of_parts(device, rows) > 0]]] = True
    return has_reads


def _bytes_of_parts(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    """Return how many bytes touches that read parts of blocks read at most; 0 of others."""
    bound = np.where(_is_by(device, _BY_INDEX)[rows], 0, read_bytes(device, rows))
    whole = device.requested[device.place[device.used.block[rows]]]
    return np.where(bound * LEAST_FACTOR <= whole, bound, 0)


def _is_by(device: DeviceBlocks, pattern: re.Pattern[str]) -> np.ndarray:
    """Return which touches are by activities with a name that matches."""
    tables, activity = device.recording.tables, device.used.activity
    named = are_named(tables, plain(tables["activities"]["name"]), pattern.search)
    found: np.ndarray = (activity >= 0) & np.append(named, False)[activity]
    return found
