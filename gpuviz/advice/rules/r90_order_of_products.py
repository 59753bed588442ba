"""R90: matrices are multiplied in an order that takes longer than another one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpuviz.advice.arrays.block_uses import BlockUses
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.kernels.matrix_kernels import bandwidth_of, operand_bytes
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.grouping import components
from gpuviz.analysis.launches import stacks_of, user_frames, values_of_stacks
from gpuviz.analysis.touches import PRODUCT, work_areas
from gpuviz.data.columns import distinct
from gpuviz.data.strings import ids_named
from gpuviz.quantities import format_bytes, format_count, format_duration

RULES = (
    Rule(
        "R90",
        "matrix products in the slower order",
        "a product makes a matrix of 1 MiB or more, all that reads it are other products, and by "
        "the sizes of their operands it would take at most half as long to multiply what follows "
        "with one of its factors first, and the result with the other; the saving is that time, "
        "and the bytes by which the matrix is larger than the one made instead",
        "`a @ (b @ c)` for `a @ b @ c`, or `torch.linalg.multi_dot`",
    ),
)

_LEAST_BYTES = 1 << 20
# Of the time of the products: the other order takes as much at most.
_MOST_LEFT = 1 / 2
# By how much ratios of the bytes of operands may differ that are the same ratio of rows.
_TOLERANCE = 0.01
# A shorter product does not end sooner for being smaller (measured on an H200).
_SHORTEST_NS = 3_000
_FACTORS = 2


class _Use(NamedTuple):
    """A product that reads a matrix.

    Attributes:
        other: The bytes of what the matrix is multiplied with.
        result: The bytes of the result.
        ns: How long it takes.
        work: The number in the schedule of its kernel.
    """

    other: int
    result: int
    ns: float
    work: int


class _Product(NamedTuple):
    """A product.

    Attributes:
        factors: The blocks that its factors are in.
        sizes: The bytes of these.
        result: The block of the result, which it fills.
        work: The number in the schedule of its kernel.
    """

    factors: tuple[int, int]
    sizes: tuple[int, int]
    result: int
    work: int


@dataclass(frozen=True, slots=True)
class _Reordered:
    """What another order makes instead of a matrix.

    Attributes:
        block: The matrix.
        product: The product that makes it.
        uses: The products that read it.
        made: The bytes of the largest matrix that is made instead.
    """

    block: int
    product: _Product
    uses: list[_Use]
    made: int


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find products whose result is only multiplied, and would better be multiplied in parts.

    Trigger: a product C = A B is read by products with other matrices alone. For C D, the rows of
    the result E relate to those of D as do those of C to its columns, or as A to B in bytes; that
    tells whether D meets A or B, also for transposed matrices and batches. With X of the two and Y
    the other one, X D has E X / C bytes. It takes X / C of the time of C D, and Y (X D) takes E / C
    of that of A B: a product needs as many multiplications as the root of the product of the bytes
    of its three matrices. Neither takes less than the time to read and write its matrices, nor
    less than 3 µs. Together they take at most half as long as the products that were recorded.

    Chains of several products are followed from their end: what takes the place of the last
    product is multiplied with the result of the one before.

    Saving: the recorded `Schedule` with these times, and the decrease of the peak if C had the
    bytes of X D. Results are rounded otherwise.
    """
    if not len(ids_named(device.recording.tables, PRODUCT.search)):
        return
    orders = _Orders(device)
    found = list(orders.better())
    groups = _of_common_lines(device, found)
    for group in distinct(groups).tolist():
        chosen = [each for each, of in zip(found, groups.tolist(), strict=True) if of == group]
        yield _finding(device, orders, chosen)


def _of_common_lines(device: DeviceBlocks, found: list[_Reordered]) -> np.ndarray:
    """Return a number for each matrix, equal for those whose products are in common lines.

    What a backward pass does is in the line that it belongs to.
    """
    tables = device.recording.tables
    works = [[each.product.work, *_numbers(each)] for each in found]
    matrix = np.repeat(np.arange(len(found)), [len(each) for each in works])
    calls = device.schedule.call[np.array([work for each in works for work in each], np.int64)]
    stacks = stacks_of(tables, calls)
    forward = values_of_stacks(tables, "forward_frame", stacks)
    lines = np.where(forward > 0, forward, user_frames(tables, stacks))
    _, line = np.unique(lines, return_inverse=True)
    nodes = len(found) + int(line.max(initial=-1)) + 1
    return components(nodes, matrix, len(found) + line)[: len(found)]


class _Orders:
    """The products of a device, and how long each takes if some are done in another order.

    Attributes:
        left: For each number in the schedule, how long its work takes in the better order, in ns.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        self._device, self._uses = device, BlockUses(device)
        areas = device.place[work_areas(device.recording, device.used.blocks)]
        self._is_operand = self._uses.are_of(PRODUCT) & ~np.isin(self._uses.block, areas)
        self._is_multiplied = self._only_multiplied()
        self._products = {each.result: each for each in self._found()}
        self._readers: dict[int, list[_Use]] = {}
        for each in self._products.values():
            self._add_readers(each)
        self._rate = bandwidth_of(device) / 1e9
        self.left = device.schedule.duration.astype(float)

    def _add_readers(self, product: _Product) -> None:
        result = int(self._device.requested[product.result])
        spent = float(self._device.schedule.duration[product.work])
        others = dict(zip(product.factors, product.sizes[::-1], strict=True))
        for block, other in others.items():
            use = _Use(other, result, spent, product.work)
            self._readers.setdefault(block, []).append(use)

    def _only_multiplied(self) -> np.ndarray:
        """Return which blocks products write and read, and nothing else uses."""
        device, uses, count = self._device, self._uses, len(self._device.size)
        is_chosen: np.ndarray = (
            device.is_freed & ~device.is_initial & ~device.is_shared & device.is_seen
        )
        is_chosen &= device.requested >= _LEAST_BYTES
        is_chosen &= np.bincount(uses.block, ~self._is_operand, count) == 0
        for mode in (READ, WRITE):
            is_chosen &= np.bincount(uses.block, uses.mode == mode, count) > 0
        return is_chosen

    def _found(self) -> Iterator[_Product]:
        """Find products of two arrays that fill a block, of which one is only multiplied."""
        device, uses, is_operand = self._device, self._uses, self._is_operand
        size = np.zeros(len(uses.block), np.int64)
        size[is_operand] = operand_bytes(device.used, uses.touch[is_operand])
        calls = distinct(uses.call[self._is_multiplied[uses.block]])
        made = np.flatnonzero(is_operand & (uses.mode == WRITE) & np.isin(uses.call, calls))
        # Kernels name a result twice that they could also add to.
        for row in made[np.unique(uses.call[made], return_index=True)[1]].tolist():
            rows = uses.of_call(row)
            rows = rows[is_operand[rows]]
            is_read = uses.mode[rows] == READ
            read = rows[is_read]
            results = distinct(uses.block[rows[~is_read]])
            fills = bool(uses.at_begin[row]) and len(results) == 1
            if fills and 0 < len(read) <= _FACTORS and results[0] not in uses.block[read]:
                first, second = read[0], read[-1]
                yield _Product(
                    (int(uses.block[first]), int(uses.block[second])),
                    (int(size[first]), int(size[second])),
                    int(results[0]),
                    int(uses.work[row]),
                )

    def better(self) -> Iterator[_Reordered]:
        """Find matrices that another order does without, the last ones first."""
        for block in self._multiplied()[::-1].tolist():
            product, uses = self._products[block], self._readers[block]
            others = [self._other_order(product, each) for each in uses]
            known = [each for each in others if each is not None]
            now = self.left[product.work] + sum(each.ns for each in uses)
            later = sum(each.ns for pair in known for each in pair[:2])
            if len(known) == len(uses) and later <= _MOST_LEFT * now:
                self._replace(product, uses, known)
                made = max(inner.result for inner, _, _, _ in known)
                yield _Reordered(block, product, uses, made)

    def _multiplied(self) -> np.ndarray:
        """Return the blocks that products make and alone read, in the order of their makers."""
        device, uses = self._device, self._uses
        made = [
            each for each in self._products if self._is_multiplied[each] and each in self._readers
        ]
        blocks = np.array(made, np.int64)
        counts = np.array([len(distinct(uses.call[uses.of_block(each)])) for each in made])
        known = np.array([1 + len(self._readers[each]) for each in made], np.int64)
        blocks = blocks[counts == known] if made else blocks
        return blocks[np.argsort(device.begin[blocks], kind="stable")]

    def _other_order(self, product: _Product, use: _Use) -> tuple[_Use, _Use, int, int] | None:
        """Return the two products that take the place of a use, and the factor that each reads."""
        matrix = int(self._device.requested[product.result])
        factors = list(zip(product.factors, product.sizes, strict=True))
        for (inner, met), (outer, rest) in (factors, factors[::-1]):
            if abs(use.result * met - use.other * rest) <= _TOLERANCE * use.other * rest:
                made = use.result * met // matrix
                first = self._time(use.ns * met / matrix, met + use.other + made)
                second = self.left[product.work] * use.result / matrix
                second = self._time(second, rest + made + use.result)
                return (
                    _Use(use.other, made, first, use.work),
                    _Use(made, use.result, second, use.work),
                    inner,
                    outer,
                )
        return None

    def _time(self, ns: float, moved: int) -> float:
        """Return how long a product takes that moves some bytes, at least."""
        return max(ns, moved / self._rate if self._rate else 0.0, _SHORTEST_NS)

    def _replace(
        self, product: _Product, uses: list[_Use], others: list[tuple[_Use, _Use, int, int]]
    ) -> None:
        """Let products in another order take the place of some."""
        self.left[product.work] = 0
        for block in product.factors:
            self._readers[block] = [
                each for each in self._readers[block] if each.work != product.work
            ]
        for use, (first, second, inner, outer) in zip(uses, others, strict=True):
            self.left[use.work] += first.ns + second.ns - use.ns
            self._readers[inner].append(first)
            self._readers[outer].append(second)


def _finding(device: DeviceBlocks, orders: _Orders, found: list[_Reordered]) -> Finding:
    schedule, tables = device.schedule, device.recording.tables
    blocks = np.array([each.block for each in found])
    work = distinct(
        np.array([number for each in found for number in (each.product.work, *_numbers(each))])
    )
    duration = schedule.duration.copy()
    duration[work] = orders.left[work].astype(np.int64)
    change = ScheduleChange(duration=duration)
    is_forward = values_of_stacks(tables, "forward_frame", device.stack[blocks]) == 0
    line = device.lines.line_of(blocks[is_forward] if is_forward.any() else blocks)
    size = format_bytes(int(device.requested[blocks].max()))
    other = format_bytes(max(use.other for each in found for use in each.uses))
    times = f", {format_count(len(blocks))} times" if len(blocks) > 1 else ""
    spent, left = (
        format_duration(int(each[work].sum())) for each in (schedule.duration, orders.left)
    )
    return Finding(
        rule="R90",
        title=f"{named(line.site, line.source)} makes a matrix of {size} only to multiply it with "
        f"one of {other}{times}.",
        reason=(
            f"The products take {spent}. In the other order, by the sizes of the matrices, they "
            f"take about {left}, and the largest one between them has "
            f"{format_bytes(max(each.made for each in found))}."
        ),
        change=(
            "Multiply what follows with one of the factors first: `a @ (b @ c)` for `a @ b @ c`, "
            "which Python evaluates from the left. `torch.linalg.multi_dot([a, b, c])` chooses the "
            "order for matrices of two dimensions. Results are rounded otherwise."
        ),
        certainty="likely",
        device=device.device,
        lines=(line,),
        evidence=schedule.evidence(work),
        lifetimes=Change(
            blocks,
            device.begin[blocks],
            device.end[blocks],
            np.array([each.made for each in found], np.int64),
        ),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )


def _numbers(found: _Reordered) -> list[int]:
    return [each.work for each in found.uses]
