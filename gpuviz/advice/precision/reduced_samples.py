"""Arrays in double precision because CuPy reduces small integers to it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.precision.double_blocks import SAMPLES, VALUE_BYTES, WIDE, DoubleBlocks
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import distinct, plain
from gpuviz.data.strings import are_named

# Reductions whose result is float64 for all integers.
_MEANS = ("cupy_mean", "cupy_var_core", "cupy_nanmean")
_DOUBLE_BYTES = 8


@dataclass(frozen=True, eq=False, slots=True)
class ReducedSamples:
    """Means of integers of at most 16 bits, and what is computed from them.

    Attributes:
        blocks: Indices of ``used.blocks``: those that would have half of their size.
        means: The first of them, the results of the reductions.
        mixed: A row of ``api_calls`` in which an elementwise function uses some of them together
            with such integers; -1 if none does.
    """

    blocks: np.ndarray
    means: np.ndarray
    mixed: int


def reduced_samples(device: DeviceBlocks, shown: np.ndarray) -> Iterator[ReducedSamples]:
    """Yield the arrays that follow in double precision from means of integers.

    A line of the program reduces integers of at most 16 bits by their mean, variance or standard
    deviation, to more than a value. The result is float64 unless the line names another type. Work
    that `gpuviz.advice.precision.promotions.promotions` knows alone uses it and all that follows
    from it, and nothing else in double precision is used with them.

    That the integers have at most 16 bits is known from the elementwise functions that use them. If
    none does, they have as many bytes for each result as no number of elements in double precision
    has, and what follows from the result is combined with such integers, and with no others.

    Args:
        device: The device's blocks.
        shown: Which of ``used.blocks`` have a finding about their type.
    """
    if np.isin(device.elementwise.output, WIDE).any():
        yield from _Search(device, shown).found()


class _Search(DoubleBlocks):
    """The search for arrays in double precision that follow from means of integers."""

    def found(self) -> Iterator[ReducedSamples]:
        """Yield what is found, those with common work together."""
        label = self._labels()
        bad = np.zeros(self._count, bool)
        bad[label[self._is_unsuitable(label)]] = True
        means, is_known = self._means()
        for groups in self._by_lines(means, label[means]):
            rows = np.isin(label[means], groups)
            own = means[rows]
            if bad[groups].any() or self._is_asked_for(own):
                continue
            of_device = self._device.place >= 0
            blocks = np.flatnonzero(np.isin(label, groups) & self._is_wide & of_device)
            kind, _, _, steps = self._steps(blocks, own, blocks[:0])
            if not steps.reached()[kind[blocks]].all():
                continue
            mixed, is_of_samples = self._mixed(blocks)
            if is_known[rows].all() or is_of_samples:
                yield ReducedSamples(blocks, own, mixed)

    def _by_lines(self, means: np.ndarray, group: np.ndarray) -> list[list[int]]:
        """Return the groups of arrays with common work, together if the same lines make the means.

        Args:
            means: The means.
            group: The group of each.
        """
        sites = self._device.site[self._device.place[means]]
        of_lines: dict[tuple[int, ...], list[int]] = {}
        for each in distinct(group).tolist():
            lines = tuple(distinct(sites[group == each]).tolist())
            of_lines.setdefault(lines, []).append(each)
        return list(of_lines.values())

    def _means(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the float64 results of means, and of which the integers are known.

        Not those of what may be no integers of at most 16 bits.
        """
        used, device, tables = self._used, self._device, self._device.recording.tables
        names = plain(tables["activities"]["name"])[np.maximum(used.activity, 0)]
        is_mean = (used.activity >= 0) & are_named(tables, names, _is_mean)
        writes = np.flatnonzero(is_mean & (used.mode == WRITE) & self._is_wide[used.block])
        writes = writes[used.first[used.block[writes]] == used.call[writes]]
        writes = writes[self._requested[used.block[writes]] > VALUE_BYTES]
        writes = writes[device.place[used.block[writes]] >= 0]
        writes = writes[is_own(device.recording, stacks_of(tables, used.call[writes]))]
        reads = np.flatnonzero(is_mean & (used.mode == READ))
        samples, others = self._kinds_of_integers()
        found, known = [], []
        for row in writes.tolist():
            of_call = reads[used.call[reads] == used.call[row]]
            source = used.block[of_call][~self._is_wide[used.block[of_call]]]
            if len(source) != 1 or others[source[0]]:
                continue
            elements = self._requested[used.block[row]] // _DOUBLE_BYTES
            nbytes = self._requested[source[0]]
            is_odd = nbytes % elements == 0 and nbytes % (elements * _DOUBLE_BYTES) != 0
            if samples[source[0]] or is_odd:
                found.append(used.block[row])
                known.append(bool(samples[source[0]]))
        return np.array(found, np.int64), np.array(known, bool)

    def _kinds_of_integers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which blocks elementwise functions use as integers of few bits, or otherwise."""
        launches = self._launches
        block = np.concatenate([launches.target, launches.source])
        kind = np.concatenate([launches.output, launches.kind])
        of_samples = np.isin(kind, SAMPLES)
        samples, others = (
            np.bincount(block[chosen], minlength=self._count) > 0
            for chosen in (of_samples, ~of_samples & (kind >= 0))
        )
        return samples, others

    def _mixed(self, blocks: np.ndarray) -> tuple[int, bool]:
        """Return a call that uses some blocks with integers, and whether all have few bits."""
        launches = self._launches
        uses = np.zeros(len(launches), bool)
        uses[launches.launch[np.isin(launches.source, blocks)]] = True
        whole = launches.source_elements == launches.elements[launches.launch]
        rows = np.flatnonzero(uses[launches.launch] & whole & ~np.isin(launches.source, blocks))
        if not len(rows):
            return -1, False
        is_of_samples = np.isin(launches.kind[rows], SAMPLES)
        return int(launches.call[launches.launch[rows[0]]]), bool(is_of_samples.all())


def _is_mean(name: str) -> bool:
    return name.startswith(_MEANS)
