"""Arrays in double precision whose program computes from data of lower precision."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.running_sums import running_sums
from gpuviz.advice.precision.double_blocks import (
    NARROW,
    SAMPLES,
    SMALL,
    WIDE,
    DoubleBlocks,
)
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import distinct


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

    blocks: np.ndarray
    operands: np.ndarray
    is_alone: bool
    launch: int
    narrow: int
    wide: int
    transforms: np.ndarray
    origins: np.ndarray


def promotions(device: DeviceBlocks, shown: np.ndarray) -> Iterator[Promotion]:
    """Yield the arrays that elementwise functions, reductions and FFTs compute in double precision.

    None of them is made from data in double precision, such as an array that the host filled, or
    that the program converted from single precision; nothing else, as a solver or a product of
    matrices, uses them; and single precision is not added up in them. The program itself converts
    or divides integers of at most 16 bits to make the first of them, or combines a large one, no
    running sum, with as many elements in single precision. What elementwise functions make of them
    with other data in double precision does not follow, nor arrays that exist before and are
    overwritten (``out=``).
    It does if all of that data, and the large array too, is computed from small arrays that lines
    make of nothing else in double precision, such as `fftfreq`, before the first.

    Args:
        device: The device's blocks.
        shown: Which of ``used.blocks`` have a finding about their type.
    """
    launches = device.elementwise
    if np.isin(launches.output, WIDE).any():
        yield from _Search(device, shown).found()


class _Search(DoubleBlocks):
    """The search for arrays in double precision that connected work computes."""

    def found(self) -> Iterator[Promotion]:
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

    def _entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        converts = is_copy | launches.where(lambda each: each.name == "true_divide")
        samples = np.isin(launches.kind, SAMPLES) & converts[launch]
        lower = whole & (samples | (np.isin(launches.kind, NARROW) & ~is_copy[launch]))
        narrow[launch[lower]] = source[lower]
        # A small operand is cheap to convert, and R33 says so.
        least = SMALL * self._requested[launches.target[launch]]
        filled = np.bincount(self._used.block[self._is_fill], minlength=self._count) > 0
        is_wide = self._is_wide[source] & (self._requested[source] > least)
        is_wide &= ~running_sums(device, filled)[source]
        wide[launch[is_wide]] = source[is_wide]
        found = own & is_new & np.isin(launches.output, WIDE) & (narrow >= 0) & ~launches.is_update
        found &= (wide >= 0) | converts
        entry = np.flatnonzero(found)
        return entry, narrow[entry], wide[entry]

    def _from(
        self, blocks: np.ndarray, start: np.ndarray, wide: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        kinds = self._kinds(blocks)
        operands = blocks[np.isin(kinds, kinds[np.isin(blocks, wide)])]
        kind, rows, made, steps = self._steps(blocks, start, operands)
        starts = steps.starts
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
        self, blocks: np.ndarray, kinds: np.ndarray, start: int, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the line that makes each kind of block, and which are cheap to convert there.

        These are small, and made before a first one.
        """
        device, place = self._device, self._device.place[blocks]
        site, suits = np.full(count, -1), np.ones(count, bool)
        site[kinds] = device.site[place]
        is_late = device.begin[place] >= device.begin[device.place[start]]
        is_large = self._requested[blocks] > SMALL * self._requested[start]
        suits[kinds[is_late | is_large]] = False
        return site, suits
