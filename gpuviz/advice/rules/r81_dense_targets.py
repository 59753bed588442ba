"""R81: a cross entropy is computed with a dense row of probabilities for each target."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ
from gpuviz.advice.arrays.part_reads import elements_of_torch
from gpuviz.advice.arrays.scattered import INDEX_BYTES, Scattered, scatters_to_large
from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.data.columns import distinct
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R81",
        "dense targets of a cross entropy",
        "PyTorch fills an array of 8 MiB or more and scatters one number to the places of much "
        "smaller indices, as `one_hot` does; all that uses it, or what is computed from it alone, "
        "are elementwise functions, of which one multiplies it with the result of a log softmax, "
        "or with the logarithm of a softmax that nothing else uses, for a product that is only "
        "summed, to one number for each index; the saving is without these arrays and the kernels "
        "that make them, but for the sum, and without the logarithm and its backward pass",
        "`F.cross_entropy(logits, target)` with class indices, and its `label_smoothing`",
    ),
)

# Scatters of numbers with so many bytes.
_SCATTERS_OF = {
    size: re.compile(rf"scatter_fill\w*<at::native::OpaqueType<{size}>") for size in (2, 4, 8)
}
_ELEMENTWISE = re.compile(r"\bat::native::\w*elementwise_kernel")
_PRODUCT = re.compile(r"\bat::native::\w*elementwise_kernel.*MulFunctor", re.DOTALL)
_LOG_SOFTMAX = re.compile(r"\bat::native::.*SoftMaxForward.*\bLogSoftMaxForwardEpilogue", re.DOTALL)
_SOFTMAX = re.compile(r"\bat::native::.*SoftMaxForward.*\bSoftMaxForwardEpilogue", re.DOTALL)
_LOG = re.compile(r"\bat::native::\w*elementwise_kernel.*\blog_kernel_cuda", re.DOTALL)
_SUM = re.compile(r"\bat::native::reduce_kernel.*sum_functor", re.DOTALL)


@dataclass(frozen=True, eq=False, slots=True)
class _Dense:
    """The arrays that one scatter leads to.

    Attributes:
        blocks: The dense array, what is computed from it alone, and the products.
        work: The numbers in the schedule of the kernels that make them.
        of_log: The blocks of logarithms of softmaxes, and those that their backward passes need.
        work_of_log: The numbers of the kernels that make those.
    """

    blocks: np.ndarray
    work: np.ndarray
    of_log: np.ndarray
    work_of_log: np.ndarray


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find targets that a training program expands to the probabilities of all classes.

    Trigger: a kernel of PyTorch fills a block, the next one scatters a number of the host into it,
    at indices with at most a sixteenth of its bytes. It is only used by elementwise functions that
    use no other block, whose results count as it does, and by ones that multiply it with a block
    that a log softmax has written, and that nothing has changed since, or with the logarithm of a
    softmax. Nothing else of the forward pass uses that logarithm or that softmax. A function that
    changes only a part of the dense block, such as the column of a padding class, is none of
    `cross_entropy`. Only sums to one number for each index, and work of a backward pass, use the
    product: another function of several classes, or of several rows, is none of `cross_entropy`
    either.

    Saving: the decrease of the peak without these blocks, and the recording's `Schedule` without
    the kernels that make them. `cross_entropy` reads the softmax's result at the indices, and sums
    it for label smoothing: the sums stay. It computes a log softmax at once, which takes as long as
    a softmax. Of the backward passes of a logarithm and a softmax, those kernels stay that a log
    softmax has, too, with an array for what goes into it.
    """
    if not scatters_to_large(device):
        return
    graph = _Chains(device)
    found = [dense for dense in map(graph.dense, graph.scatters.tolist()) if dense is not None]
    sites = np.array([device.site[each.blocks[0]] for each in found], np.int64)
    for site in distinct(sites).tolist():
        yield _finding(device, [found[each] for each in np.flatnonzero(sites == site).tolist()])


@dataclass(frozen=True)
class _Logarithm:
    """What a logarithm of a softmax needs, and a log softmax does not.

    Attributes:
        blocks: Blocks.
        work: The numbers in the schedule of kernels.
    """

    blocks: list[int]
    work: list[int]


class _Chains:
    """What follows from the blocks that a number is scattered into.

    Args:
        device: The blocks.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        self._device, self._scattered = device, Scattered(device)
        uses = self._uses = self._scattered.uses
        self._is_elementwise = uses.are_of(_ELEMENTWISE)
        self._is_product, self._is_sum = uses.are_of(_PRODUCT), uses.are_of(_SUM)
        self._is_log_of_softmax = uses.are_of(_LOG_SOFTMAX)
        self._is_softmax, self._is_log = uses.are_of(_SOFTMAX), uses.are_of(_LOG)
        sizes = [*_SCATTERS_OF]
        self._number_bytes = np.select([uses.are_of(_SCATTERS_OF[each]) for each in sizes], sizes)
        tables = device.recording.tables
        self._is_backward = phases_of(tables, stacks_of(tables, uses.call)) == BACKWARD
        self._elements = np.where(
            uses.activity >= 0, elements_of_torch(device.recording, uses.activity), 0
        )
        self._can, self.scatters = self._scattered.can, self._scattered.blocks

    def dense(self, scattered: int) -> _Dense | None:
        """Return what a block leads to; None if not all of it is the target of a cross entropy."""
        uses, requested = self._uses, self._device.requested
        start = self._scattered.start(scattered)
        if start is None:
            return None
        rows, fills, indices = start
        scatter = int(rows[fills])
        size = int(self._number_bytes[scatter])
        numbers = int(requested[scattered]) // size if size else 0
        if not all(self._is_whole(each, numbers) for each in rows[:fills].tolist()):
            return None
        blocks, products, work = [scattered], list[int](), [*uses.work[rows[: fills + 1]].tolist()]
        of_log, work_of_log = list[int](), list[int]()
        left = [rows[fills + 1 :]]
        while left:
            rows = left.pop()
            for row in rows[~self._is_backward[rows]].tolist():
                made = self._made(row, numbers)
                if made is None:
                    return None
                block, factor = made
                work.append(int(uses.work[row]))
                if factor is not None:
                    products.append(block)
                    of_log += factor.blocks
                    work_of_log += factor.work
                elif block >= 0 and block not in blocks:
                    blocks.append(block)
                    left.append(uses.of_block(block)[1:])
        targets = int(requested[indices]) // INDEX_BYTES
        if not products or not all(self._is_summed(each, numbers, targets) for each in products):
            return None
        return _Dense(
            np.array([*blocks, *products]),
            distinct(np.array(work)),
            np.array(of_log, np.int64),
            np.array(work_of_log, np.int64),
        )

    def _made(self, row: int, numbers: int) -> tuple[int, _Logarithm | None] | None:
        """Return the block that an elementwise function makes of a dense one, and its factor.

        -1 if it changes all numbers of the dense one itself; None if something else uses it.
        """
        uses, others = self._uses, self._uses.beside(row)
        if not self._is_elementwise[row] or not self._can[others].all():
            return None
        if not len(others):
            return (-1, None) if self._is_whole(row, numbers) else None
        call = int(uses.call[row])
        first = [int(uses.of_block(each)[0]) for each in others.tolist()]
        made = [
            each for each, use in zip(others.tolist(), first, strict=True) if uses.call[use] == call
        ]
        if len(made) != 1:
            return None
        if len(others) == 1:
            return made[0], None
        factors = [each for each in others.tolist() if each != made[0]]
        if not self._is_product[row] or len(factors) != 1:
            return None
        factor = self._log_softmax(factors[0], call)
        return None if factor is None else (made[0], factor)

    def _is_whole(self, row: int, numbers: int) -> bool:
        """Return whether an elementwise kernel may have so many elements, as far as is known."""
        return not 0 < self._elements[row] < numbers

    def _log_softmax(self, block: int, call: int) -> _Logarithm | None:
        """Return what `cross_entropy` has no need of to make the log softmax in a block.

        None if the block is none, or if something changed it before a call.
        """
        uses = self._uses
        first, *others = uses.of_block(block).tolist()
        if self._is_log[first]:
            is_used_once = [uses.call[each] for each in others] == [call]
            return self._logarithm(block, first) if is_used_once else None
        before = others[: [uses.call[each] for each in others].index(call)]
        is_kept = self._is_log_of_softmax[first] and all(map(self._only_reads, before))
        return _Logarithm([], []) if is_kept else None

    def _logarithm(self, block: int, row: int) -> _Logarithm | None:
        """Return what the logarithm that a row makes needs beside a log softmax.

        None if it is not of a softmax that the rest of the forward pass does not use.
        """
        uses, others = self._uses, self._uses.beside(row)
        if len(others) != 1:
            return None
        first, *rows = uses.of_block(int(others[0])).tolist()
        forward = [uses.call[each] for each in rows if not self._is_backward[each]]
        if not self._is_softmax[first] or forward != [uses.call[row]]:
            return None
        # The gradients of the logarithm and, at last, of what the softmax has summed.
        backward = [each for each in rows if self._is_backward[each] and self._is_elementwise[each]]
        made = [
            each
            for other in backward
            for each in uses.beside(other).tolist()
            if uses.call[uses.of_block(each)[0]] == uses.call[other]
        ]
        work = uses.work[[row, *backward]].tolist()
        return _Logarithm([block, *made[:-1]], work)

    def _only_reads(self, row: int) -> bool:
        """Return whether a call leaves a block as it is: it makes another."""
        uses = self._uses
        others = uses.beside(row).tolist()
        is_made = any(uses.call[uses.of_block(each)[0]] == uses.call[row] for each in others)
        return is_made or uses.mode[row] == READ

    def _is_summed(self, product: int, numbers: int, targets: int) -> bool:
        """Return whether forward work only sums a product, to one number for each target.

        Args:
            product: The block.
            numbers: How many numbers it has.
            targets: The number of indices.
        """
        uses, requested = self._uses, self._device.requested
        rows = uses.of_block(product)[1:]
        rows = rows[~self._is_backward[rows]]
        if not numbers or not len(rows) or not self._is_sum[rows].all():
            return False
        sums = [uses.beside(row) for row in rows.tolist()]
        size = targets * int(requested[product])
        return all(len(each) == 1 and requested[each[0]] * numbers == size for each in sums)


def _finding(device: DeviceBlocks, found: list[_Dense]) -> Finding:
    schedule = device.schedule
    blocks = distinct(
        np.concatenate([part for each in found for part in (each.blocks, each.of_log)])
    )
    work = np.concatenate([part for each in found for part in (each.work, each.work_of_log)])
    work = distinct(work)
    duration = schedule.duration.copy()
    duration[work[work >= 0]] = 0
    is_gone = np.zeros(len(schedule.called), bool)
    is_gone[schedule.call[work[work >= 0]]] = True
    change = ScheduleChange(duration=duration, instant=is_gone)
    scattered = np.array([each.blocks[0] for each in found])
    line = device.lines.line_of(scattered)
    sizes = [int(device.requested[each.blocks].sum()) for each in found]
    dense = format_bytes(int(device.requested[scattered].max()))
    is_written_out = any(len(each.of_log) for each in found)
    factor = "the logarithm of a softmax" if is_written_out else "the result of a log softmax"
    return Finding(
        rule="R81",
        title=f"{named(line.site, line.source)} makes dense targets of class indices: with what is "
        f"computed from them, {format_bytes(max(sizes))} for each cross entropy.",
        reason=(
            f"A number is scattered into an array of {dense}, which is only multiplied with "
            f"{factor} and summed. `cross_entropy` reads the log softmax at the indices instead."
        ),
        change=(
            "Use `F.cross_entropy(logits, target)` with the class indices. For a mixture with the "
            "uniform distribution there is `label_smoothing`, and for padding `ignore_index`."
        ),
        certainty="likely",
        device=device.device,
        lines=device.lines.lines_of(blocks),
        evidence=schedule.evidence(work[work >= 0]),
        lifetimes=Change(
            blocks, device.begin[blocks], device.end[blocks], np.zeros(len(blocks), np.int64)
        ),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )
