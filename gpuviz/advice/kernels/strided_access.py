"""Arrays of which kernels use elements that have gaps between them, and what the gaps cost."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import WRITES, kernel_threads
from gpuviz.advice.kernels.bandwidth import possible_bandwidth
from gpuviz.advice.kernels.kernel_times import highest_rate, thread_ns
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_FILLS = re.compile(r"cupy_fill$|memset")
_TWICE = 2
# Arrays that fit into a cache of an H200 several times are read from there.
_LEAST_BYTES = 8 << 20
# A shorter kernel takes time for other things than its elements.
_SHORTEST_NS = 5_000
_LEAST_LAUNCHES = 8
# Of the time of kernels that use the array with gaps, that of all other work which uses it.
_MOST_OTHERS = 0.5
# What an H200 moves for an element that is far from the others.
_GRANULE = 64
# An elementwise kernel of CuPy on an H200: for each element at least, in ns.
_THREAD_NS = 4.8e-3
# Of the rate that clock and width allow; copies on an H100 reach it.
_REACHED = 0.9
# To store an array otherwise: it is read and written, in an order of which half is slow.
_PASSES = 4


@dataclass(frozen=True, eq=False, slots=True)
class StridedAccess:
    """The arrays of a line that kernels use with gaps.

    Attributes:
        blocks: Indices of the device's blocks.
        element: The bytes of an element.
        stride: The bytes from one element to the next.
        work: Numbers of the kernels in the schedule that would take less time.
        saved_ns: By how much less each of them would take without gaps, in ns, all together without
            the time to store what is not computed so.
    """

    blocks: np.ndarray
    element: int
    stride: int
    work: np.ndarray
    saved_ns: np.ndarray


def strided_accesses(device: DeviceBlocks) -> list[StridedAccess]:
    """Return the arrays that kernels mostly use with gaps between the elements, line by line.

    A line of the program makes arrays of at least 8 MiB. At least 8 kernels that the program itself
    launches read or write elements of them that are two elements or more apart, the same distance
    each time, and these kernels take twice as long as all other work that uses the arrays, such as
    kernels that use all elements, products of matrices and copies. None uses them with wider
    elements, of which these are parts, as of complex numbers.
    """
    tables = device.recording.tables
    stride, element = (
        plain(tables["launch_blocks"][name])[device.used.row].astype(np.int64)
        for name in ("stride", "element")
    )
    if not (stride >= _TWICE * np.maximum(element, 1)).any():
        return []
    return _Search(device, stride, element).found()


class _Search:
    """The search for arrays that kernels use with gaps."""

    def __init__(self, device: DeviceBlocks, stride: np.ndarray, element: np.ndarray) -> None:
        self._device, self._used, self._schedule = device, device.used, device.schedule
        self._stride, self._element = stride, element
        used, schedule, tables = device.used, device.schedule, device.recording.tables
        seen, rows = used.activity >= 0, np.maximum(used.activity, 0)
        self._work = np.where(seen, schedule.number[rows], -1)
        self._place = device.place[used.block]
        kinds = codes(tables["activities"]["kind"], _KINDS)[rows]
        names = plain(tables["activities"]["name"])[rows]
        self._is_fill = seen & are_named(tables, names, _FILLS.match)
        self._is_fill |= seen & (kinds == _KINDS.index("memset"))
        # The first upload is no work with an array, which is stored otherwise then.
        copied = codes(tables["activities"]["copy_kind"], _COPY_KINDS)[rows]
        self._is_first = used.first[used.block] == used.call
        is_upload = seen & (copied == _COPY_KINDS.index("host_to_device"))
        self._makes = self._is_fill | (is_upload & self._is_first)
        is_kernel = (self._work >= 0) & (schedule.kind[self._work] == KERNEL)
        self._is_strided = is_kernel & (element > 0) & (stride >= _TWICE * element)
        self._is_strided &= schedule.duration[self._work] >= _SHORTEST_NS
        chosen = np.flatnonzero(self._is_strided)
        own = is_own(device.recording, stacks_of(tables, used.call[chosen]))
        self._is_strided[chosen[~own]] = False
        self._threads = np.where(seen, kernel_threads(device.recording, rows), 0)
        possible = possible_bandwidth(device.recording, device.device) * _REACHED / 1e9
        highest = highest_rate(device)
        self._rate = min(highest, possible) if possible else highest
        self._most = possible or highest
        self._thread_ns = max(thread_ns(device), _THREAD_NS)

    def found(self) -> list[StridedAccess]:
        """Return what is found, a line that makes the arrays after the other."""
        device = self._device
        rows = np.flatnonzero(self._is_strided & (self._place >= 0))
        size = self._used.blocks.requested[self._used.block[rows]]
        rows = rows[(size >= _LEAST_BYTES) & ~device.is_initial[self._place[rows]]]
        rows = rows[is_own(device.recording, device.stack[self._place[rows]], random=True)]
        if not self._rate:
            return []
        each = [self._of_line(site) for site in distinct(device.site[self._place[rows]]).tolist()]
        return [found for found in each if found is not None]

    def _of_line(self, site: int) -> StridedAccess | None:
        """Return how kernels use the arrays of a line; None if not mostly with gaps."""
        device = self._device
        rows = np.flatnonzero(
            (self._place >= 0) & (device.site[np.maximum(self._place, 0)] == site)
        )
        strided = rows[self._is_strided[rows]]
        kinds, kind = np.unique(
            np.stack([self._stride[strided], self._element[strided]]), axis=1, return_inverse=True
        )
        spent = np.bincount(kind.ravel(), self._schedule.duration[self._work[strided]])
        stride, element = kinds[:, int(spent.argmax())].tolist()
        strided = strided[kind.ravel() == spent.argmax()]
        if self._element[rows].max() > element:
            return None
        work = distinct(self._work[strided])
        others = np.setdiff1d(self._work[rows[~self._makes[rows]]], np.append(work, -1))
        duration = self._schedule.duration
        if len(work) < _LEAST_LAUNCHES:
            return None
        if duration[others].sum() > _MOST_OTHERS * duration[work].sum():
            return None
        saved = self._saved(work, strided)
        blocks = distinct(self._place[rows])
        whole = float(saved.sum())
        share = 1 - self._storing_ns(blocks) / max(whole, 1)
        if share <= 0:
            return None
        return StridedAccess(blocks, element, stride, work, (saved * share).astype(np.int64))

    def _saved(self, work: np.ndarray, strided: np.ndarray) -> np.ndarray:
        """Return by how much less time kernels would take if some touches had no gaps, in ns.

        They still take the time for the bytes that they need, and for their elements, and no less
        than what is moved in vain takes at least. A kernel that uses the same elements several
        times, or their neighbours, moves them once.
        """
        used, of_work = self._used, np.isin(self._work, work)
        rows = np.flatnonzero(of_work)
        size = used.blocks.requested[used.block[rows]]
        most = np.where(self._stride[rows] > 0, size // np.maximum(self._stride[rows], 1) + 1, size)
        elements = np.minimum(self._threads[rows], most) * self._element[rows]
        known = np.where(self._element[rows] > 0, np.minimum(elements, size), size)
        needed = np.where(used.bytes[rows] > 0, np.minimum(used.bytes[rows], size), known)
        place = np.searchsorted(work, self._work[rows])
        threads = np.zeros(len(work))
        np.maximum.at(threads, place, self._threads[rows])
        least = np.maximum(
            np.bincount(place, needed, len(work)) / self._rate, threads * self._thread_ns
        )
        moved = self._in_vain(work, strided) / self._most
        duration = self._schedule.duration[work]
        found: np.ndarray = np.clip(np.minimum(duration - least, moved), 0, None)
        return found

    def _in_vain(self, work: np.ndarray, strided: np.ndarray) -> np.ndarray:
        """Return the bytes that each kernel moves besides what it needs of arrays with gaps.

        Writing a part of what memory moves reads it, too.
        """
        used = self._used
        stride, element = self._stride[strided], self._element[strided]
        keys = np.stack([self._work[strided], used.block[strided], used.address[strided] % stride])
        is_write = np.isin(used.mode[strided], WRITES)
        _, once = np.unique(np.vstack([keys, is_write]), axis=1, return_index=True)
        size = used.blocks.requested[used.block[strided[once]]]
        count = np.minimum(self._threads[strided[once]], size // stride[once] + 1)
        wasted = count * (np.minimum(stride, _GRANULE) - element)[once]
        wasted = np.where(is_write[once], _TWICE * wasted, wasted)
        place = np.searchsorted(work, self._work[strided[once]])
        return np.bincount(place, wasted, len(work)).astype(float)

    def _storing_ns(self, blocks: np.ndarray) -> float:
        """Return how long it takes to store arrays otherwise that are not made with gaps, in ns.

        Such as what is uploaded; those that are filled with a value need nothing.
        """
        used, device = self._used, self._device
        first = self._is_first & (self._place >= 0) & np.isin(self._place, blocks)
        free = first & (self._is_strided | self._is_fill)
        given = np.setdiff1d(used.block[first], used.block[free])
        known = np.union1d(given, device.number[blocks][used.first[device.number[blocks]] < 0])
        return _PASSES * float(used.blocks.requested[known].sum()) / self._rate
