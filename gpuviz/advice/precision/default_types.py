"""Arrays that are in double precision only because CuPy's default for new arrays is."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.cupy_reductions import are_reductions
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import TYPES, WRITES
from gpuviz.advice.arrays.running_sums import running_sums
from gpuviz.analysis.grouping import components
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_DOUBLE = TYPES.index("float64")
_SINGLE = tuple(TYPES.index(each) for each in ("float16", "float32"))
_DOUBLE_BYTES = 8
# A table has at most this share of the bytes of what is looked up in it.
_SMALL = 1 / 16
# A single value.
_VALUE_BYTES = 16
# Integers of so many bytes or less are samples of a device, or classes.
_SAMPLE_BYTES = 2
# The kernels with which CuPy fills new arrays, besides its elementwise functions without inputs.
_FILLS = re.compile(r"cupy_fill$|memset")
_RANDOM = re.compile(r"cupy_random|.*\b(gen_sequenced|generate_\w+|gen_\w+)\b")
_TAKE = re.compile(r"cupy_take$")
_NAMES = re.compile("float64|complex128|double")


@dataclass(frozen=True, eq=False, slots=True)
class Doubles:
    """Arrays that would be in single precision if the program created some of them so.

    Attributes:
        blocks: Indices of ``used.blocks``.
        group: For each, a number, equal for arrays that can only change their type together.
        is_created: For each, whether the program creates it in its type.
        mixed: For each, a row of ``api_calls`` that uses one of its group together with single
            precision or small integers, or converts it.
    """

    blocks: np.ndarray
    group: np.ndarray
    is_created: np.ndarray
    mixed: np.ndarray


def names_double(source: str) -> bool:
    """Return whether a line of a program names double precision, as in `dtype=cupy.float64`."""
    return _NAMES.search(source) is not None


def doubles(device: DeviceBlocks) -> Doubles:
    """Return the arrays of a device that are float64 because of a default.

    Arrays that CuPy fills itself, with ones, random numbers or a range, and what elementwise
    functions and reductions make of them, of single precision and of single values; also what is
    looked up in a small table made so. Other float64 data is neither in them nor used with them.
    Together with them, an elementwise function uses as many elements of float16 or float32, a
    lookup has indices of at most 16 bits, or what was filled is only converted to single precision.
    """
    return _Search(device).found()


class _Search:
    """The search for arrays that are in double precision by default."""

    def __init__(self, device: DeviceBlocks) -> None:
        self._device, self._used, self._launches = device, device.used, device.elementwise
        used, launches, tables = device.used, device.elementwise, device.recording.tables
        self._count, self._requested = len(used.blocks), used.blocks.requested
        seen, rows = used.activity >= 0, np.maximum(used.activity, 0)
        names = plain(tables["activities"]["name"])[rows]
        fills, random, self._takes = (
            seen & are_named(tables, names, each.match) for each in (_FILLS, _RANDOM, _TAKE)
        )
        kinds = codes(tables["activities"]["kind"], _KINDS)[rows]
        node = first_rows(launches.call + 1, used.call + 1)
        without_arrays = launches.where(lambda each: not each.arrays and each.name != "copy")
        ranges = (node >= 0) & np.append(without_arrays, False)[node]
        self._is_fill = fills | (seen & (kinds == _KINDS.index("memset")))
        self._is_creation = self._is_fill | random | ranges
        self._writes = np.isin(used.mode, WRITES)
        self._reduces = seen & are_reductions(device.recording, rows)
        copied = seen & (kinds == _KINDS.index("memcpy")) & ~self._writes
        known = (node >= 0) | self._is_creation | self._takes | self._reduces | copied
        self._is_double = self._are_double()
        place = device.place
        self._is_closed = np.bincount(used.block[~known], minlength=self._count) == 0
        self._is_closed &= self._is_double & (place >= 0)
        self._is_closed &= ~np.append(device.is_initial, True)[place]

    def _are_double(self) -> np.ndarray:
        """Return which blocks all elementwise functions use as float64, and at least one does."""
        launches = self._launches
        block = np.concatenate([launches.target, launches.source])
        kind = np.concatenate([launches.output, launches.kind])
        double, other = (
            np.bincount(block[chosen], minlength=self._count)
            for chosen in (kind == _DOUBLE, (kind != _DOUBLE) & (kind >= 0))
        )
        are: np.ndarray = (double > 0) & (other == 0)
        return are

    def found(self) -> Doubles:
        """Return the arrays; see `doubles`."""
        used, launches, count = self._used, self._launches, self._count
        touch = np.flatnonzero(self._is_creation & self._writes)
        touch = touch[used.first[used.block[touch]] == used.call[touch]]
        created = np.zeros(count, bool)
        created[used.block[touch]] = True
        created &= self._is_closed & ~self._are_sums()
        looked_up, table, lookup = self._lookups()
        # What elementwise functions read as float64, or perhaps, besides single values.
        target = launches.target[launches.launch]
        reads = (launches.output[launches.launch] == _DOUBLE) & (launches.source != target)
        reads &= (launches.kind == _DOUBLE) | (launches.kind < 0)
        reads &= self._requested[launches.source] > _VALUE_BYTES
        reduced, result, reduction = self._reduced()
        source = np.concatenate([launches.source[reads], reduced, table])
        result = np.concatenate([target[reads], result, looked_up])
        calls = np.concatenate([launches.call[launches.launch[reads]], reduction, lookup])
        derived = np.zeros(count, bool)
        derived[result[used.first[result] == calls]] = True
        is_known = created | (derived & self._is_closed)
        involved = np.zeros(count, bool)
        involved[np.concatenate([source, launches.target[launches.output == _DOUBLE]])] = True
        label = components(count, source, result)
        mixes = self._mixes(created, target)
        mixes[looked_up] = lookup
        mixed = np.full(count, -1)
        is_mixed = (mixes >= 0) & is_known
        mixed[label[is_mixed]] = mixes[is_mixed]
        has_created = np.bincount(label[created], minlength=count) > 0
        mixed[label[involved & ~is_known]] = -1
        blocks = np.flatnonzero(is_known & (mixed[label] >= 0) & has_created[label])
        return Doubles(blocks, label[blocks], created[blocks], mixed[label[blocks]])

    def _are_sums(self) -> np.ndarray:
        """Return which arrays are filled with a value before others are added to them.

        Sums of single precision are more precise in double precision, and so are those of many
        arrays that are computed from it.
        """
        launches, used = self._launches, self._used
        filled, sums = np.zeros(self._count, bool), np.zeros(self._count, bool)
        filled[used.block[self._is_fill]] = True
        adds = launches.is_update[launches.launch] & np.isin(launches.kind, _SINGLE)
        adds &= self._requested[launches.source] > _VALUE_BYTES
        sums[launches.target[launches.launch[adds]]] = True
        are: np.ndarray = (sums & filled) | running_sums(self._device, filled)
        return are

    def _lookups(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the results, the tables and the calls of lookups by integers of few bits."""
        used, requested = self._used, self._requested
        touch = np.flatnonzero(self._takes)
        calls, place = np.unique(used.call[touch], return_inverse=True)
        result, table, index = np.full((3, len(calls)), -1)
        writes = self._writes[touch]
        result[place[writes]] = used.block[touch[writes]]
        most = _SMALL * np.append(requested, 0)[result][place]
        is_table = ~writes & self._is_double[used.block[touch]]
        is_table &= requested[used.block[touch]] <= most
        table[place[is_table]] = used.block[touch[is_table]]
        index[place[~writes & ~is_table]] = used.block[touch[~writes & ~is_table]]
        size = np.append(requested, 0)[index] * _DOUBLE_BYTES
        of_one = size / np.maximum(np.append(requested, 0)[result], 1)
        found = (result >= 0) & (table >= 0) & ((of_one == 1) | (of_one == _SAMPLE_BYTES))
        return result[found], table[found], calls[found]

    def _reduced(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the float64 arrays that reductions read and write, and the calls."""
        used = self._used
        touch = np.flatnonzero(self._reduces & self._is_double[used.block])
        touch = touch[self._requested[used.block[touch]] > _VALUE_BYTES]
        calls, place = np.unique(used.call[touch], return_inverse=True)
        pair = np.full((2, len(calls)), -1)
        pair[self._writes[touch].astype(np.int64), place] = used.block[touch]
        found = (pair >= 0).all(axis=0)
        return pair[0, found], pair[1, found], calls[found]

    def _mixes(self, created: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return for each block a call that uses it with single precision; -1 without one."""
        launches = self._launches
        mixes = np.full(self._count, -1)
        is_single = np.isin(launches.kind, _SINGLE)
        is_single &= launches.output[launches.launch] == _DOUBLE
        is_single &= launches.source_elements == launches.elements[launches.launch]
        is_single &= launches.reads[launches.launch] > 1
        mixes[target[is_single]] = launches.call[launches.launch[is_single]]
        written = np.bincount(launches.target, minlength=self._count)
        converts = np.isin(launches.output, _SINGLE)[launches.launch] & (launches.kind == _DOUBLE)
        converts &= created[launches.source] & (written[launches.source] == 0)
        mixes[launches.source[converts]] = launches.call[launches.launch[converts]]
        return mixes
