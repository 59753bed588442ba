"""Arrays that a loop fills part by part, and of which nothing but a reduction is needed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.reductions.reductions_at_last import LEAST_ARRAYS, LEAST_BYTES
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import distinct, plain
from gpuviz.data.strings import are_named

# CuPy's reductions of which the result can be updated with one part after the other.
_UPDATABLE = re.compile(r"cupy_(?:mean|(?:nan)?(?:sum|prod|a?max|a?min))$")
_FILLS = re.compile(r"cupy_fill$|memset")
_LEAST_FACTOR = 8


@dataclass(frozen=True, eq=False, slots=True)
class Parts:
    """Arrays of a line, of which the parts need not be kept.

    Attributes:
        blocks: Those that are there at the peak.
        count: How many parts the first of them has.
        writes: The row of ``api_calls`` that writes the last of these.
        reduces: The row of ``api_calls`` that reduces it.
        change: The lifetimes of all if one part of each were kept, or as much as the result.
    """

    blocks: np.ndarray
    count: int
    writes: int
    reduces: int
    change: Change


def parts_reduced_at_last(device: DeviceBlocks) -> Iterator[Parts]:
    """Yield the arrays that one line fills part by part, and another line reduces.

    A line writes each of at least four parts of equal size once, from the first to the last and on
    one stream, and these are the whole array; it may have been filled before with one value, and
    another line may write the first part. Nothing reads it but one kernel of CuPy after that: a
    sum, a mean, a product or an extreme of all of it, whose result has at most an eighth of its
    bytes. Some of the line's arrays are there at the peak.
    """
    search = _Search(device)
    sites = device.site[search.blocks]
    for site in distinct(sites[device.at_peak[search.blocks]]).tolist():
        found = {each: search.parts(each) for each in search.blocks[sites == site].tolist()}
        parts = {block: each for block, each in found.items() if each is not None}
        blocks = np.array(list(parts), np.int64)
        at_peak = blocks[device.at_peak[blocks]]
        if len(at_peak):
            writes, last, _ = parts[int(at_peak[0])]
            size = np.array([each for *_, each in parts.values()])
            change = Change(blocks, device.begin[blocks], device.end[blocks], size)
            calls = device.used.call
            yield Parts(at_peak, len(writes), int(calls[writes[-1]]), int(calls[last]), change)


class _Search:
    """The search for the parts of arrays.

    Attributes:
        blocks: The arrays that a reduction reads, indices of the device's blocks.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        self._device, used = device, device.used
        tables = device.recording.tables
        names = plain(tables["activities"]["name"])[np.maximum(used.activity, 0)]
        updates, fills = (are_named(tables, names, each.match) for each in (_UPDATABLE, _FILLS))
        self._reduces = (used.activity >= 0) & updates & (used.mode == READ)
        self._is_fill = (used.activity >= 0) & fills & (used.mode == WRITE)
        self._order = np.argsort(used.block, kind="stable")
        can = device.is_freed & ~device.is_initial & ~device.is_shared
        can &= (device.stack != 0) & (device.size >= LEAST_ARRAYS * LEAST_BYTES)
        place = device.place[used.block[self._reduces]]
        self.blocks = distinct(place[(place >= 0) & can[place]])

    def parts(self, block: int) -> tuple[np.ndarray, int, int] | None:
        """Return the uses that write the parts of a block, that which reduces it, and what is left.

        None if the block is used otherwise.
        """
        used, number = self._device.used, int(self._device.number[block])
        begin, end = np.searchsorted(used.block[self._order], [number, number + 1])
        rows = self._order[begin:end]
        # Work that does not name the array may use it before or after.
        if used.first[number] != used.call[rows[0]] or used.last[number] != used.call[rows[-1]]:
            return None
        rows = rows[int(self._is_fill[rows[0]]) :]
        writes, last = rows[:-1], int(rows[-1])
        if len(writes) < LEAST_ARRAYS or not self._reduces[last]:
            return None
        requested = int(used.blocks.requested[number])
        size, made = requested // len(writes), self._made(last)
        places = int(used.blocks.address[number]) + size * np.arange(len(writes))
        is_whole = (used.mode[writes] == WRITE) & (used.bytes[writes] == size)
        is_whole &= used.address[writes].astype(np.int64) == places
        is_whole &= (used.bytes[last] == requested) & (size * len(writes) == requested)
        if not is_whole.all() or made * _LEAST_FACTOR > requested:
            return None
        return (writes, last, max(size, made)) if self._is_loop(block, writes, last) else None

    def _made(self, row: int) -> int:
        """Return how many bytes the other arrays have that the call of a use gets."""
        used = self._device.used
        others = (used.call == used.call[row]) & (used.block != used.block[row])
        return int(used.blocks.requested[used.block[others]].sum())

    def _is_loop(self, block: int, writes: np.ndarray, last: int) -> bool:
        """Return whether one line writes all parts but the first, and others make and reduce it."""
        recording, used = self._device.recording, self._device.used
        streams = plain(recording.tables["activities"]["stream"])[used.activity[writes]]
        stacks = stacks_of(recording.tables, used.call[np.append(writes[1:], last)])
        site = recording.call_stacks.call_site
        lines = {site(each) for each in distinct(stacks[:-1]).tolist()}
        others = {site(int(stacks[-1])), site(int(self._device.stack[block]))}
        return len(lines) == 1 and not lines & others and len(distinct(streams)) == 1
