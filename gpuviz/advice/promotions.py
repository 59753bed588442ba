"""Arrays in double precision whose program computes from data of lower precision."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.cupy_reductions import are_reductions
from gpuviz.advice.default_types import names_double
from gpuviz.advice.elementwise import TYPES, WRITE
from gpuviz.advice.fusion import components
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.promotion_steps import Steps
from gpuviz.advice.running_sums import running_sums
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.touches import TRANSFORM
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks

_KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_WIDE = tuple(map(TYPES.index, ("float64", "complex128")))
_NARROW = tuple(map(TYPES.index, ("float16", "float32", "complex64")))
# Integers of so few bits are samples of a device, or classes.
_SAMPLES = tuple(map(TYPES.index, ("bool", "int8", "uint8", "int16", "uint16")))
# Kernels that compute in the type of what they read, as those that transform do.
_OF_CUPY = re.compile(r"cupyx?_(?!random|scipy_linalg|cusolver)")
_FILLS = re.compile(r"cupy_fill$|memset")
# What has at most this share of the bytes of the largest array is a parameter, not data.
_SMALL = 1 / 16
_VALUE_BYTES = 16
# Of blocks that only transforms use: the plan's work area, and arrays between transforms.
_MOST_STEPS = 4


@dataclass(frozen=True, eq=False, slots=True)
class Promotion:
    """Arrays that are in double precision because of a conversion or an operand.

    Attributes:
        blocks: Indices of ``used.blocks``: those that would have half of their size.
        operands: Those that would be converted where they are made, before their first other use.
        is_alone: Whether no other data in double precision is used with them.
        launch: The elementwise launch that first makes one of them from lower precision, an index
            of ``device.elementwise``.
        narrow: A block of lower precision that it reads.
        wide: A block of double precision that it reads; -1 if it converts.
        transforms: The activities of FFTs of them.
        origins: Small ones of them that lines make of nothing else in double precision, and of
            which ``wide`` is computed; without any, the operands are converted.
    """

    blocks: "NDArray[Any]"
    operands: "NDArray[Any]"
    is_alone: bool
    launch: int
    narrow: int
    wide: int
    transforms: "NDArray[Any]"
    origins: "NDArray[Any]"


def promotions(device: "DeviceBlocks", shown: "NDArray[Any]") -> "Iterator[Promotion]":
    """Yield the arrays that elementwise functions, reductions and FFTs compute in double precision.

    None of them is made from data in double precision, such as an array that the host filled, or
    that the program converted from single precision; nothing else, as a solver or a product of
    matrices, uses them; and single precision is not added up in them. The program itself converts
    integers of at most 16 bits to the first of them, or combines a large one, no running sum, with
    as many elements in single precision. What elementwise functions make of them with other data in
    double precision does not follow, nor arrays that exist before and are overwritten (``out=``).
    It does if all of that data, and the large array too, is computed from small arrays that lines
    make of nothing else in double precision, such as `fftfreq`, before the first.

    Args:
        device: The device's blocks.
        shown: Which of ``used.blocks`` have a finding about their type.
    """
    launches = device.elementwise
    if np.isin(launches.output, _WIDE).any():
        yield from _Search(device, shown).found()


class _Search:
    """The search for arrays in double precision that connected work computes."""

    def __init__(self, device: "DeviceBlocks", shown: "NDArray[Any]") -> None:
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
    def _is_wide(self) -> "NDArray[Any]":
        """Which blocks are in double precision: by elementwise functions, or as what is read."""
        launches, used = self._launches, self._used
        block = np.concatenate([launches.target, launches.source])
        kind = np.concatenate([launches.output, launches.kind])
        uses, wide = (
            np.bincount(block[chosen], minlength=self._count)
            for chosen in (kind >= 0, np.isin(kind, _WIDE))
        )
        found: NDArray[Any] = (wide > 0) & (wide == uses)
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

    def found(self) -> "Iterator[Promotion]":
        """Yield what is found, a line that makes the first of some arrays after the other."""
        launches, used = self._launches, self._used
        label = self._labels()
        bad = np.zeros(self._count, bool)
        bad[label[self._is_unsuitable(label)]] = True
        entry, narrow, wide = self._entries()
        group = label[launches.target[entry]]
        groups, each = np.unique(group, return_index=True)
        site = self._device.site[self._device.place[launches.target[entry[each]]]]
        for line in distinct(site).tolist():
            of_line = groups[site == line]
            if bad[of_line].any():
                continue
            of_device = self._device.place >= 0
            blocks = np.flatnonzero(np.isin(label, of_line) & self._is_wide & of_device)
            rows = np.flatnonzero(np.isin(group, of_line))
            first = launches.target[entry[rows]]
            narrowed, operands, origins = self._from(blocks, first, wide[rows])
            rows = rows[np.isin(first, narrowed)]
            if not len(rows):
                continue
            rows_of_fft = np.flatnonzero(self._is_fft & np.isin(used.block, narrowed))
            at = int(rows[0])
            yield Promotion(
                narrowed,
                operands,
                not self._meet(np.setdiff1d(blocks, [*narrowed, *operands]), narrowed).any(),
                int(entry[at]),
                int(narrow[at]),
                int(wide[at]),
                distinct(used.activity[rows_of_fft]),
                origins,
            )

    def _labels(self) -> "NDArray[Any]":
        """Return a number for each block, equal for those of double precision with common work."""
        used = self._used
        rows = np.flatnonzero(self._is_known & self._is_wide[used.block])
        rows = rows[self._requested[used.block[rows]] > _VALUE_BYTES]
        _, first, call = np.unique(used.call[rows], return_index=True, return_inverse=True)
        return components(self._count, used.block[rows], used.block[rows[first[call.ravel()]]])

    def _is_unsuitable(self, label: "NDArray[Any]") -> "NDArray[Any]":
        """Return which blocks may need double precision, or are data that has it."""
        used, launches, wide, place = self._used, self._launches, self._is_wide, self._device.place
        needs = ~self._is_made()
        needs[used.block[~self._is_known | self._is_upload]] = True
        needs |= (place < 0) | np.append(self._device.is_initial, True)[place] | self._shown
        from_narrow = np.isin(launches.kind, _NARROW)
        source, target = launches.source, launches.target[launches.launch]
        is_copy = launches.where(lambda each: each.name == "copy")[launches.launch]
        sums = launches.is_update[launches.launch] & (self._requested[source] > _VALUE_BYTES)
        needs[target[from_narrow & (is_copy | sums)]] = True
        largest = np.zeros(self._count, np.int64)
        np.maximum.at(largest, label, np.where(wide, self._requested, 0))
        needs &= wide & (self._requested > _SMALL * largest[label])
        return needs

    def _is_made(self) -> "NDArray[Any]":
        """Return which blocks known work, other than copies from the host, writes first."""
        used = self._used
        first = used.first[used.block] == used.call
        made = np.zeros(self._count, bool)
        made[used.block[first & self._is_known & ~self._is_upload]] = True
        return made

    def _entries(self) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
        """Return the launches that make double precision of less, and what they read.

        Returns:
            Indices of the launches, a block of lower precision of each, and a block of double
            precision; -1 without one.
        """
        launches, device = self._launches, self._device
        launch, source = launches.launch, launches.source
        count = len(launches)
        own = is_own(device.recording, stacks_of(device.recording.tables, launches.call))
        is_new = device.used.first[launches.target] == launches.call
        whole = launches.source_elements == launches.elements[launch]
        narrow, wide = np.full(count, -1), np.full(count, -1)
        is_copy = launches.where(lambda each: each.name == "copy")
        samples = np.isin(launches.kind, _SAMPLES) & is_copy[launch]
        lower = whole & (samples | (np.isin(launches.kind, _NARROW) & ~is_copy[launch]))
        narrow[launch[lower]] = source[lower]
        # A small operand is cheap to convert, and R33 says so.
        least = _SMALL * self._requested[launches.target[launch]]
        filled = np.bincount(self._used.block[self._is_fill], minlength=self._count) > 0
        is_wide = self._is_wide[source] & (self._requested[source] > least)
        is_wide &= ~running_sums(device, filled)[source]
        wide[launch[is_wide]] = source[is_wide]
        found = own & is_new & np.isin(launches.output, _WIDE) & (narrow >= 0) & ~launches.is_update
        found &= (wide >= 0) | is_copy
        entry = np.flatnonzero(found)
        return entry, narrow[entry], wide[entry]

    def _from(
        self, blocks: "NDArray[Any]", start: "NDArray[Any]", wide: "NDArray[Any]"
    ) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
        """Return which of some blocks follow from others, by the work that makes and reads them.

        Also the work areas of transforms of them.

        Args:
            blocks: The blocks in double precision with common work.
            start: Those that follow from lower precision.
            wide: Those that meet lower precision then; -1 for none.

        Returns:
            These blocks; those that elementwise functions read besides to make them: of the lines
            and kernels that make ``wide``; and small ones that would have to be in single precision
            from where they are made, as more than the first of ``wide`` is computed from them.
        """
        used = self._used
        kind = np.full(self._count, -1)
        kind[blocks] = self._kinds(blocks)
        rows = np.flatnonzero(self._is_known & (kind[used.block] >= 0))
        rows = rows[self._requested[used.block[rows]] > _VALUE_BYTES]
        first = used.first[used.block[rows]] == used.call[rows]
        made = self._made(rows[first], kind)[used.call[rows]]
        pairs = np.stack([kind[used.block[rows]], made])
        is_needed = ~first & (made >= 0) & self._is_elementwise[rows]
        operands = blocks[np.isin(kind[blocks], kind[wide[wide >= 0]])]
        is_needed &= ~np.isin(used.block[rows], operands)
        starts = np.zeros(int(kind.max(initial=0)) + 2, bool)  # the last for no kind
        starts[kind[start][kind[start] >= 0]] = True
        steps = Steps(
            starts,
            np.unique(pairs[:, made >= 0], axis=1),
            np.unique(pairs[:, is_needed], axis=1),
            kind[used.block[rows[self._is_overwritten(rows)]]],
        )
        origins = blocks[:0]
        if wide[0] >= 0:
            site, suits = self._sites(blocks, kind[blocks], start[0], len(starts))
            of_lines = steps.with_origins(int(kind[wide[0]]), site, suits)
            created = blocks[(of_lines.starts & ~starts)[kind[blocks]]]
            if not self._is_asked_for(created):
                steps, origins = of_lines, created
        reached = steps.reached()
        areas = used.block[rows[reached[made] & self._is_fft[rows]]]
        narrowed = np.union1d(blocks[reached[kind[blocks]]], areas)
        operands = np.setdiff1d(operands, narrowed)
        return narrowed, operands[self._meet(operands, narrowed)], origins

    def _sites(
        self, blocks: "NDArray[Any]", kinds: "NDArray[Any]", start: int, count: int
    ) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the line that makes each kind of block, and which are cheap to convert there.

        These are small, and made before a first one.
        """
        device, place = self._device, self._device.place[blocks]
        site, suits = np.full(count, -1), np.ones(count, bool)
        site[kinds] = device.site[place]
        is_late = device.begin[place] >= device.begin[device.place[start]]
        is_large = self._requested[blocks] > _SMALL * self._requested[start]
        suits[kinds[is_late | is_large]] = False
        return site, suits

    def _is_asked_for(self, blocks: "NDArray[Any]") -> bool:
        """Return whether a line that makes some blocks names double precision."""
        if not len(blocks):
            return False
        lines = self._device.lines.lines_of(self._device.place[blocks])
        return any(map(names_double, (each.source for each in lines)))

    def _made(self, first: "NDArray[Any]", kind: "NDArray[Any]") -> "NDArray[Any]":
        """Return for each row of ``api_calls`` the kind of block that it makes; -1 for none."""
        made = np.full(self._device.recording.tables["api_calls"].num_rows, -1)
        made[self._used.call[first]] = kind[self._used.block[first]]
        return made

    def _kinds(self, blocks: "NDArray[Any]") -> "NDArray[Any]":
        """Return a number for each of some blocks, equal if a line makes them by one kernel."""
        used = self._used
        name = np.zeros(self._count, np.int64)
        is_first = used.call == used.first[used.block]
        name[used.block[is_first]] = self._name[is_first]
        pairs = np.stack([self._device.site[self._device.place[blocks]], name[blocks]])
        numbers: NDArray[Any] = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
        return numbers

    def _is_overwritten(self, rows: "NDArray[Any]") -> "NDArray[Any]":
        """Return which uses overwrite a block after the line that first used it.

        Those that also read it, such as ``x += 1``, do not, and neither do fills.
        """
        used, launches = self._used, self._launches
        found: NDArray[Any] = (used.mode[rows] == WRITE) & ~self._is_fill[rows]
        found &= ~self._is_fft[rows]
        found &= ~np.isin(used.call[rows], launches.call[launches.is_update])
        some = np.flatnonzero(found)
        calls, first = used.call[rows[some]], used.first[used.block[rows[some]]]
        device = self._device
        found[some] = device.before_lines(calls) >= device.after_lines(first)
        return found

    def _meet(self, blocks: "NDArray[Any]", others: "NDArray[Any]") -> "NDArray[Any]":
        """Return which of some blocks elementwise functions use together with others.

        Or any work writes with them.
        """
        used = self._used
        is_large = self._requested[used.block] > _VALUE_BYTES
        calls = used.call[is_large & np.isin(used.block, others)]
        met = is_large & (self._is_elementwise | (used.mode == WRITE)) & np.isin(used.call, calls)
        return np.isin(blocks, used.block[met])
