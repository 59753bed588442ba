"""R91: differences of all pairs of vectors are stored, only to be squared and summed."""

import re
from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.block_uses import BlockUses
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.kernels.matrix_kernels import bandwidth_of
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import phases_of, stacks_of, user_frames, values_of_stacks
from gpuviz.data.columns import distinct
from gpuviz.data.strings import ids_named
from gpuviz.quantities import format_bytes, format_count, format_duration

RULES = (
    Rule(
        "R91",
        "differences of all pairs of vectors",
        "a line of PyTorch subtracts two arrays and gets one of 8 MiB or more, which has at least "
        "eight times the bytes of each; only a norm or a square reads it, only a sum reads the "
        "square, and the result has at most half the bytes; the saving is without the differences, "
        "their squares and gradients, and leaves the time to write and read the result five times",
        "`torch.cdist(a, b)`, which multiplies matrices instead",
    ),
)

_LEAST_BYTES = 8 << 20
_LEAST_FACTOR = 8
_MOST_RESULT = 1 / 2
# Of the result: the product writes it, and a limit and the root read and write it.
_PASSES = 5
_ACCESSES = 2
# Functions with a state of two arrays also add; the line tells.
_SUBTRACTION = re.compile(
    r"\bat::native::\w*elementwise_kernel<.*CUDAFunctor(?:On\w+)?_add<", re.DOTALL
)
_SQUARE = re.compile(
    r"\bat::native::\w*elementwise_kernel<.*"
    r"(pow_tensor_scalar_kernel_impl|MulFunctor|abs_kernel|AbsFunctor)",
    re.DOTALL,
)
_NORM = re.compile(r"\bat::native::reduce_kernel<.*Norm(One|Two)Ops<", re.DOTALL)
_SUM = re.compile(r"\bat::native::reduce_kernel<.*(sum_functor|MeanOps)<", re.DOTALL)
_MINUS = re.compile(r"[^\w(\[,=*/+-]\s*-|\bsub(tract)?_?\(")


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find lines that compute distances from the differences of all pairs of vectors.

    Trigger: a kernel of PyTorch's sums and differences alone writes a block, in a line that has a
    minus, and reads blocks of at most an eighth of its bytes. Besides backward passes, only a norm
    reads it, or a square whose result only a sum reads; what that writes has at most half the
    bytes. The differences themselves are not used, as forces between bodies would.

    Saving: the decrease of the peak without the differences, the squares, and what the backward
    passes of their lines make of that size. The recording's `Schedule` without the kernels that
    write them and with the time to write or read the result five times in place of the norm, and of
    as many passes for a backward pass: `torch.cdist` gets more than 25 vectors by a product of
    matrices, a limit and a root.
    """
    if not len(ids_named(device.recording.tables, _SUBTRACTION.search)):
        return
    pairs = _Pairs(device)
    found = list(pairs.found())
    sites = device.site[[blocks[0] for blocks, _ in found]]
    for site in distinct(sites).tolist():
        chosen = [each for each, of in zip(found, sites.tolist(), strict=True) if of == site]
        yield _finding(device, pairs, chosen)


class _Pairs:
    """The differences of all pairs on a device, and what is made of them."""

    def __init__(self, device: DeviceBlocks) -> None:
        self._device = device
        self.uses = uses = BlockUses(device)
        self._is_subtraction = uses.are_of(_SUBTRACTION)
        is_large = device.is_freed & ~device.is_initial & ~device.is_shared & device.is_seen
        is_large &= device.requested >= _LEAST_BYTES
        written = uses.block[self._is_subtraction & (uses.mode == WRITE)]
        self._differences = distinct(written[is_large[written]])
        self._is_square, self._is_norm, self._is_sum = map(uses.are_of, (_SQUARE, _NORM, _SUM))
        tables = device.recording.tables
        phases = phases_of(tables, stacks_of(tables, uses.call))
        self._is_backward = phases == BACKWARD

    def found(self) -> Iterator[tuple[list[int], int]]:
        """Find the differences, with their squares if they are stored, and the block of the sums.

        Yields:
            The blocks that are not needed, and the one that is.
        """
        size = self._device.requested
        for block in self._differences.tolist():
            stored, reader = self._until_summed(block)
            result = None if reader is None else self._written(reader)
            if result is not None and size[result] <= _MOST_RESULT * size[block]:
                yield stored, result

    def _until_summed(self, block: int) -> tuple[list[int], int | None]:
        """Return differences with their squares, and a use by the kernel that sums them.

        None if they are no differences of pairs, or used otherwise.
        """
        reader, is_by_pairs = self._reader(block, self._is_subtraction)
        if reader is None or not is_by_pairs or not self._has_minus(block):
            return [block], None
        if self._is_norm[reader]:
            return [block], reader
        square = self._written(reader) if self._is_square[reader] else None
        if square is None:
            return [block], None
        reader, _ = self._reader(square, self._is_square)
        is_summed = reader is not None and bool(self._is_sum[reader])
        return [block, square], reader if is_summed else None

    def _has_minus(self, block: int) -> bool:
        return bool(_MINUS.search(self._device.lines.line_of(np.array([block])).source))

    def _reader(self, block: int, is_maker: np.ndarray) -> tuple[int | None, bool]:
        """Return a use by the only kernel but backward passes that reads a block.

        Large arrays are read and written in parts, by as many kernels of a line.

        Returns:
            The use; None if other kernels write the block, or several lines read it. And whether
            all that was read for the block has an eighth of its bytes at most.
        """
        uses, size = self.uses, self._device.requested
        rows = uses.of_block(block)
        rows = rows[~self._is_backward[rows]]
        is_made = is_maker[rows] & (uses.mode[rows] == WRITE)
        written, read = rows[is_made], rows[~is_made]
        if not (len(written) and len(read)) or (uses.mode[read] != READ).any():
            return None, False
        stacks = stacks_of(self._device.recording.tables, uses.call[read])
        if (stacks != stacks[0]).any():
            return None, False
        others = distinct(np.concatenate([uses.beside(row) for row in written.tolist()]))
        return int(read[0]), bool((size[others] * _LEAST_FACTOR <= size[block]).all())

    def _written(self, row: int) -> int | None:
        """Return the block that the kernel of a use writes."""
        rows = self.uses.of_call(row)
        blocks = distinct(self.uses.block[rows[self.uses.mode[rows] == WRITE]])
        return int(blocks[0]) if len(blocks) == 1 else None

    def of_backward(self, blocks: np.ndarray) -> np.ndarray:
        """Return the blocks of the size of some that backward passes of their lines make."""
        device = self._device
        if device.training is None:
            return blocks[:0]
        tables = device.recording.tables
        stacks = device.stack[blocks]
        lines = distinct(user_frames(tables, stacks))
        forward = values_of_stacks(tables, "forward_frame", device.stack)
        sizes = distinct(device.requested[blocks])
        is_gone = (forward > 0) & np.isin(forward, lines) & np.isin(device.requested, sizes)
        return np.flatnonzero(is_gone & (device.training.phase == BACKWARD))


def _finding(device: DeviceBlocks, pairs: _Pairs, found: list[tuple[list[int], int]]) -> Finding:
    schedule, uses = device.schedule, pairs.uses
    differences = np.array([blocks[0] for blocks, _ in found])
    stored = np.array([each for blocks, _ in found for each in blocks])
    results = np.array([result for _, result in found])
    gradients = pairs.of_backward(stored)
    gone = np.concatenate([stored, gradients])
    rows = np.flatnonzero(np.isin(uses.block, gone))
    work = distinct(uses.work[rows][uses.work[rows] >= 0])
    passes = 2 * _PASSES if len(gradients) else _PASSES
    spent_ns = int(schedule.duration[work].sum())
    # Each difference was written and read.
    rate = bandwidth_of(device) / 1e9 or _ACCESSES * device.requested[gone].sum() / max(spent_ns, 1)
    left_ns = min(int(passes * device.requested[results].sum() / rate), spent_ns)
    # The kernels that write the sums take that time, each its part.
    duration = schedule.duration.copy()
    duration[work] = 0
    last = distinct(uses.work[rows][np.isin(uses.call[rows], _writers(uses, results))])
    last = last[last >= 0]
    duration[last] = left_ns // max(len(last), 1)
    change = ScheduleChange(duration=duration)
    line = device.lines.line_of(differences)
    times = f", {format_count(len(found))} times" if len(found) > 1 else ""
    return Finding(
        rule="R91",
        title=f"{named(line.site, line.source)} stores the differences of all pairs, up to "
        f"{format_bytes(int(device.requested[differences].max()))}, only for their norms{times}.",
        reason=(
            f"The kernels that write and read the differences take {format_duration(spent_ns)}; "
            f"the result has {format_bytes(int(device.requested[results].max()))}. Distances of "
            "many vectors need only a matrix product: |a - b|² = |a|² + |b|² - 2 a·b."
        ),
        change=(
            "Use `torch.cdist(a, b)`, or `torch.cdist(a, b).square()` for the squares. For more "
            "than 25 vectors it uses a matrix product, which is less exact for vectors that are "
            'close to each other; `compute_mode="donot_use_mm_for_euclid_dist"` is as exact as '
            "before, takes longer, and stores no differences either."
        ),
        certainty="likely",
        device=device.device,
        lines=(line,),
        evidence=schedule.evidence(work),
        lifetimes=Change(gone, device.begin[gone], device.begin[gone]),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )


def _writers(uses: BlockUses, blocks: np.ndarray) -> np.ndarray:
    """Return the calls that write some blocks."""
    calls: np.ndarray = uses.call[np.isin(uses.block, blocks) & (uses.mode == WRITE)]
    return calls
