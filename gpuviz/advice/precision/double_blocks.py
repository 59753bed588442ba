"""Arrays in double precision, the work that makes and uses them, and what may follow from what."""

import re
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpuviz.advice.arrays.cupy_reductions import are_reductions
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import TYPES, WRITE
from gpuviz.advice.precision.default_types import names_double
from gpuviz.advice.precision.promotion_steps import Steps
from gpuviz.analysis.grouping import components
from gpuviz.analysis.touches import TRANSFORM
from gpuviz.data.columns import codes, plain
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
WIDE = tuple(map(TYPES.index, ("float64", "complex128")))
NARROW = tuple(map(TYPES.index, ("float16", "float32", "complex64")))
# Integers of so few bits are samples of a device, or classes.
SAMPLES = tuple(map(TYPES.index, ("bool", "int8", "uint8", "int16", "uint16")))
# Kernels that compute in the type of what they read, as those that transform do.
_OF_CUPY = re.compile(r"cupyx?_(?!random|scipy_linalg|cusolver)")
_FILLS = re.compile(r"cupy_fill$|memset")
# What has at most this share of the bytes of the largest array is a parameter, not data.
SMALL = 1 / 16
VALUE_BYTES = 16
# Of blocks that only transforms use: the plan's work area, and arrays between transforms.
_MOST_STEPS = 4


class _Kinds(NamedTuple):
    """The steps of a program that make arrays of some kinds.

    Attributes:
        kind: The kind of each block; -1 without one.
        rows: The uses of blocks of these kinds.
        made: The kind that the work of each use makes; -1 for none.
        steps: The steps.
    """

    kind: np.ndarray
    rows: np.ndarray
    made: np.ndarray
    steps: Steps


class DoubleBlocks:
    """Blocks in double precision by their kinds: those that a line makes by one kernel.

    Args:
        device: The device's blocks.
        shown: Which of ``used.blocks`` have a finding about their type.
    """

    def __init__(self, device: DeviceBlocks, shown: np.ndarray) -> None:
        self._device, self._used = device, device.used
        self._launches, self._shown = device.elementwise, shown
        used, tables = device.used, device.recording.tables
        self._count, self._requested = len(used.blocks), used.blocks.requested
        seen, rows = used.activity >= 0, np.maximum(used.activity, 0)
        names = plain(tables["activities"]["name"])[rows]
        self._name = np.where(seen, names, 0)
        self._is_fft, of_cupy, self._is_fill = (
            seen & are_named(tables, names, each)
            for each in (TRANSFORM.search, _OF_CUPY.match, _FILLS.match)
        )
        kinds = codes(tables["activities"]["kind"], _KINDS)[rows]
        copied = codes(tables["activities"]["copy_kind"], _COPY_KINDS)[rows]
        self._is_fill |= seen & (kinds == _KINDS.index("memset"))
        is_copy = seen & (kinds == _KINDS.index("memcpy"))
        self._is_upload = is_copy & (copied == _COPY_KINDS.index("host_to_device"))
        self._is_elementwise = np.isin(used.call, self._launches.call)
        self._reduces = seen & are_reductions(device.recording, rows)
        self._is_other = (self._is_fft | of_cupy) & ~self._is_elementwise & ~self._reduces
        self._is_known = self._is_other | self._is_elementwise | self._reduces | is_copy
        self._is_known |= self._is_fill

    @cached_property
    def _is_wide(self) -> np.ndarray:
        """Which blocks are in double precision: by elementwise functions, or as what is read."""
        launches, used = self._launches, self._used
        block = np.concatenate([launches.target, launches.source])
        kind = np.concatenate([launches.output, launches.kind])
        uses, wide = (
            np.bincount(block[chosen], minlength=self._count)
            for chosen in (kind >= 0, np.isin(kind, WIDE))
        )
        found: np.ndarray = (wide > 0) & (wide == uses)
        rows = np.flatnonzero(self._is_other)
        _, call = np.unique(used.call[rows], return_inverse=True)
        call, size = call.ravel(), self._requested[used.block[rows]]
        for _ in range(_MOST_STEPS):
            largest = np.zeros(int(call.max(initial=-1)) + 1, np.int64)
            np.maximum.at(largest, call, np.where(found[used.block[rows]], size, 0))
            follows = (uses[used.block[rows]] == 0) & (size == largest[call]) & (size > 0)
            if found[used.block[rows[follows]]].all():
                break
            found[used.block[rows[follows]]] = True
        return found

    def _labels(self) -> np.ndarray:
        """Return a number for each block, equal for those of double precision with common work."""
        used = self._used
        rows = np.flatnonzero(self._is_known & self._is_wide[used.block])
        rows = rows[self._requested[used.block[rows]] > VALUE_BYTES]
        _, first, call = np.unique(used.call[rows], return_index=True, return_inverse=True)
        return components(self._count, used.block[rows], used.block[rows[first[call.ravel()]]])

    def _is_unsuitable(self, label: np.ndarray) -> np.ndarray:
        """Return which blocks may need double precision, or are data that has it."""
        used, launches, wide, place = self._used, self._launches, self._is_wide, self._device.place
        needs = ~self._is_made()
        needs[used.block[~self._is_known | self._is_upload]] = True
        needs |= (place < 0) | np.append(self._device.is_initial, True)[place] | self._shown
        from_narrow = np.isin(launches.kind, NARROW)
        source, target = launches.source, launches.target[launches.launch]
        is_copy = launches.where(lambda each: each.name == "copy")[launches.launch]
        sums = launches.is_update[launches.launch] & (self._requested[source] > VALUE_BYTES)
        needs[target[from_narrow & (is_copy | sums)]] = True
        largest = np.zeros(self._count, np.int64)
        np.maximum.at(largest, label, np.where(wide, self._requested, 0))
        needs &= wide & (self._requested > SMALL * largest[label])
        return needs

    def _is_made(self) -> np.ndarray:
        """Return which blocks known work, other than copies from the host, writes first."""
        used = self._used
        first = used.first[used.block] == used.call
        made = np.zeros(self._count, bool)
        made[used.block[first & self._is_known & ~self._is_upload]] = True
        return made

    def _is_asked_for(self, blocks: np.ndarray) -> bool:
        """Return whether a line that makes some blocks names double precision."""
        if not len(blocks):
            return False
        lines = self._device.lines.lines_of(self._device.place[blocks])
        return any(map(names_double, (each.source for each in lines)))

    def _made(self, first: np.ndarray, kind: np.ndarray) -> np.ndarray:
        """Return for each row of ``api_calls`` the kind of block that it makes; -1 for none."""
        made = np.full(self._device.recording.tables["api_calls"].num_rows, -1)
        made[self._used.call[first]] = kind[self._used.block[first]]
        return made

    def _kinds(self, blocks: np.ndarray) -> np.ndarray:
        """Return a number for each of some blocks, equal if a line makes them by one kernel."""
        used = self._used
        name = np.zeros(self._count, np.int64)
        is_first = used.call == used.first[used.block]
        name[used.block[is_first]] = self._name[is_first]
        pairs = np.stack([self._device.site[self._device.place[blocks]], name[blocks]])
        numbers: np.ndarray = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
        return numbers

    def _is_overwritten(self, rows: np.ndarray) -> np.ndarray:
        """Return which uses overwrite a block after the line that first used it.

        Those that also read it, such as ``x += 1``, do not, and neither do fills.
        """
        used, launches = self._used, self._launches
        found: np.ndarray = (used.mode[rows] == WRITE) & ~self._is_fill[rows]
        found &= ~self._is_fft[rows]
        found &= ~np.isin(used.call[rows], launches.call[launches.is_update])
        some = np.flatnonzero(found)
        calls, first = used.call[rows[some]], used.first[used.block[rows[some]]]
        device = self._device
        found[some] = device.before_lines(calls) >= device.after_lines(first)
        return found

    def _meet(self, blocks: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return which of some blocks elementwise functions use together with others.

        Or any work writes with them.
        """
        used = self._used
        is_large = self._requested[used.block] > VALUE_BYTES
        calls = used.call[is_large & np.isin(used.block, others)]
        met = is_large & (self._is_elementwise | (used.mode == WRITE)) & np.isin(used.call, calls)
        return np.isin(blocks, used.block[met])

    def _steps(self, blocks: np.ndarray, start: np.ndarray, operands: np.ndarray) -> _Kinds:
        """Return the steps by which some blocks follow from others.

        Args:
            blocks: The blocks in double precision with common work.
            start: The first of them.
            operands: Those that are converted where they are made.
        """
        used = self._used
        kind = np.full(self._count, -1)
        kind[blocks] = self._kinds(blocks)
        rows = np.flatnonzero(self._is_known & (kind[used.block] >= 0))
        rows = rows[self._requested[used.block[rows]] > VALUE_BYTES]
        first = used.first[used.block[rows]] == used.call[rows]
        made = self._made(rows[first], kind)[used.call[rows]]
        pairs = np.stack([kind[used.block[rows]], made])
        is_needed = ~first & (made >= 0) & self._is_elementwise[rows]
        is_needed &= ~np.isin(used.block[rows], operands)
        starts = np.zeros(int(kind.max(initial=0)) + 2, bool)  # the last for no kind
        starts[kind[start][kind[start] >= 0]] = True
        steps = Steps(
            starts,
            np.unique(pairs[:, made >= 0], axis=1),
            np.unique(pairs[:, is_needed], axis=1),
            kind[used.block[rows[self._is_overwritten(rows)]]],
        )
        return _Kinds(kind, rows, made, steps)
