"""Arrays in double precision that follow from arrays which the program uploads in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.precision.default_types import names_double
from gpuviz.advice.precision.double_blocks import NARROW, SMALL, VALUE_BYTES, WIDE, DoubleBlocks
from gpuviz.advice.source.own_lines import is_own
from gpuviz.data.columns import distinct

# Arrays of one line that another meets are data; a single one may be a mask.
_SEVERAL = 2


@dataclass(frozen=True, eq=False, slots=True)
class UploadedDoubles:
    """Arrays that the program uploads in double precision, and what is computed from them.

    Attributes:
        blocks: Indices of ``used.blocks``: those that would have half of their size.
        uploads: The first of them, which are uploaded.
        transforms: The activities of FFTs of them.
        launch: The launch that combines some of them with an array in single precision, an index
            of ``device.elementwise``.
        is_alone: Whether nothing else in double precision is used with them.
    """

    blocks: np.ndarray
    uploads: np.ndarray
    transforms: np.ndarray
    launch: int
    is_alone: bool


def uploaded_doubles(device: DeviceBlocks, shown: np.ndarray) -> Iterator[UploadedDoubles]:
    """Yield the arrays that are in double precision because the host's arrays are.

    A line of the program that does not name the type uploads an array as float64 or complex128, and
    no other line does. Elementwise functions combine it, or what follows from it, with as many
    elements in single precision. These the program computes, other than by a conversion, or at
    least two arrays of one line meet the same array: a single one may be a mask of data that has
    double precision. All other arrays in double precision that are used with them follow from them,
    as those that `zeros_like` makes do, or are parameters or filled with a value. Work that
    `gpuviz.advice.precision.promotions.promotions` knows alone uses them.

    Args:
        device: The device's blocks.
        shown: Which of ``used.blocks`` have a finding about their type.
    """
    if np.isin(device.elementwise.output, WIDE).any():
        yield from _Search(device, shown).found()


class _Search(DoubleBlocks):
    """The search for arrays in double precision that follow from uploaded ones."""

    def __init__(self, device: DeviceBlocks, shown: np.ndarray) -> None:
        super().__init__(device, shown)
        used = self._used
        self._first = used.first[used.block] == used.call
        self._of_host = self._blocks(self._first & self._is_upload)
        self._uploads = self._own_uploads()
        # These may be in single precision as well.
        self._is_upload &= ~self._uploads[used.block]

    def _blocks(self, rows: np.ndarray) -> np.ndarray:
        """Return which blocks some uses are of."""
        found = np.zeros(self._count, bool)
        found[self._used.block[rows]] = True
        return found

    def _own_uploads(self) -> np.ndarray:
        """Return which blocks lines of the program upload in double precision without naming it."""
        device = self._device
        found = np.flatnonzero(self._of_host & self._is_wide & (device.place >= 0))
        found = found[self._requested[found] > VALUE_BYTES]
        found = found[is_own(device.recording, device.stack[device.place[found]])]
        uploads = np.zeros(self._count, bool)
        uploads[found[~self._of_lines(found, names_double)]] = True
        return uploads

    def _of_lines(self, blocks: np.ndarray, accepts: Callable[[str], bool]) -> np.ndarray:
        """Return which blocks are made in lines that a condition accepts."""
        places, lines = self._device.place[blocks], self._device.lines
        _, first, line = np.unique(
            self._device.site[places], return_index=True, return_inverse=True
        )
        accepted = [accepts(lines.line_of(places[[each]]).source) for each in first.tolist()]
        found: np.ndarray = np.array(accepted, bool)[line.ravel()]
        return found

    def _areas(self) -> np.ndarray:
        """Return which blocks are work areas of FFTs: each of a plan's kernels uses them as often.

        What an FFT reads, its first kernel does.
        """
        used = self._used
        of_fft = self._blocks(self._is_fft) & ~self._blocks(~self._is_fft)
        rows = np.flatnonzero(of_fft[used.block])
        pairs = np.stack([used.block[rows], self._name[rows]])
        (block, _), count = np.unique(pairs, axis=1, return_counts=True)
        kernels = np.bincount(block, minlength=self._count)
        most = np.zeros(self._count, np.int64)
        np.maximum.at(most, block, count)
        found: np.ndarray = (kernels > 1) & (
            most * kernels == np.bincount(used.block[rows], minlength=self._count)
        )
        return found

    def _is_unsuitable(self, label: np.ndarray) -> np.ndarray:
        # Those of plans that are older than the recording are no data.
        unsuitable: np.ndarray = super()._is_unsuitable(label) & ~self._areas()
        return unsuitable

    def found(self) -> Iterator[UploadedDoubles]:
        """Yield what is found, those with common work together."""
        uploads = np.flatnonzero(self._uploads)
        if not len(uploads):
            return
        label = self._labels()
        bad = distinct(label[self._is_unsuitable(label)])
        for group in distinct(label[uploads]).tolist():
            if group in bad:
                continue
            chosen = (label == group) & self._is_wide & (self._device.place >= 0)
            of_group = uploads[label[uploads] == group]
            if len(distinct(self._device.site[self._device.place[of_group]])) > 1:
                continue
            found = self._of_group(np.flatnonzero(chosen), of_group)
            if found is not None:
                yield found

    def _of_group(self, blocks: np.ndarray, uploads: np.ndarray) -> UploadedDoubles | None:
        """Return what follows from uploaded arrays among blocks with common work.

        Args:
            blocks: The blocks in double precision with common work.
            uploads: Those that are uploaded.
        """
        like = self._like_others(blocks)
        kind, rows, made, steps = self._steps(blocks, np.append(uploads, like), blocks[:0])
        reached = steps.reached()
        narrowed = blocks[reached[kind[blocks]]]
        others = np.setdiff1d(blocks, narrowed)
        largest = int(self._requested[blocks].max())
        is_data = self._requested[others] > SMALL * largest
        is_data &= ~self._blocks(self._first & self._is_fill)[others]
        launch = self._meeting(narrowed)
        if is_data.any() or launch < 0 or not reached[kind[uploads]].all():
            return None
        areas = self._used.block[rows[reached[made] & self._is_fft[rows]]]
        narrowed = np.union1d(narrowed, areas)
        transforms = np.flatnonzero(self._is_fft & np.isin(self._used.block, narrowed))
        is_older = np.append(self._device.is_initial, True)[self._device.place[narrowed]]
        narrowed = narrowed[~is_older]
        return UploadedDoubles(
            narrowed,
            uploads,
            distinct(self._used.activity[transforms]),
            launch,
            not self._meet(others, narrowed).any(),
        )

    def _like_others(self, blocks: np.ndarray) -> np.ndarray:
        """Return which blocks are filled in lines that make arrays of the type of others."""
        filled = blocks[self._blocks(self._first & self._is_fill)[blocks]]
        like: np.ndarray = filled[self._of_lines(filled, _has_type_of_others)]
        return like

    def _meeting(self, blocks: np.ndarray) -> int:
        """Return a launch that combines some blocks with data in single precision; -1 if none."""
        launches, used = self._launches, self._used
        launch, source = launches.launch, launches.source
        is_wide = np.zeros(self._count, bool)
        is_wide[blocks] = True
        target = launches.target[launch]
        makes = is_wide[target] & (used.first[target] == launches.call[launch])
        wide = np.full(len(launches), -1)
        wide[launch[makes & is_wide[source]]] = source[makes & is_wide[source]]
        rows = makes & (wide[launch] >= 0) & np.isin(launches.kind, NARROW)
        rows &= launches.source_elements == launches.elements[launch]
        meets = np.flatnonzero(rows & (self._device.place[source] >= 0))
        data = meets[self._is_data(source[meets], wide[launch[meets]])]
        return int(launch[data[0]]) if len(data) else -1

    def _is_data(self, narrow: np.ndarray, wide: np.ndarray) -> np.ndarray:
        """Return which arrays in single precision are data, and may be no masks.

        Args:
            narrow: The arrays.
            wide: The array in double precision that each meets.
        """
        launches = self._launches
        makes = self._used.first[launches.target] == launches.call
        is_copy, of_mask = (
            launches.target[makes & launches.where(accepts)]
            for accepts in (lambda each: each.name == "copy", lambda each: "bool" in each.arrays)
        )
        known = self._blocks(self._first & self._is_known & ~self._is_fill)
        known[of_mask] = False
        computed = known & ~self._of_host
        computed[is_copy] = False
        site = self._device.site[self._device.place[narrow]]
        pairs = np.unique(np.stack([site, wide, narrow]), axis=1)
        of_line, count = np.unique(pairs[:2], axis=1, return_counts=True)
        several = {tuple(each) for each in of_line[:, count >= _SEVERAL].T.tolist()}
        is_of_several = [each in several for each in zip(site.tolist(), wide.tolist(), strict=True)]
        found: np.ndarray = computed[narrow] | (known[narrow] & np.array(is_of_several, bool))
        return found


def _has_type_of_others(source: str) -> bool:
    """Return whether a line makes arrays such as `zeros_like` does, and names no type."""
    return "_like(" in source and not names_double(source)
