"""R76: ``einsum`` of CuPy makes a product that is much larger than its operands and its result."""

import re
from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.block_uses import BlockUses
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.subscripts import has_small_order, subscripts_in
from gpuviz.analysis.launches import have_frame
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import distinct
from gpuviz.quantities import format_bytes, format_count, format_duration

RULES = (
    Rule(
        "R76",
        "an einsum that makes an outer product first",
        "within `cupy.einsum` without `optimize`, an elementwise product makes an array of 8 MiB "
        "or more, which only this call uses, and which has at least eight times the bytes of each "
        "operand and of the result; another order of the products needs no array with more indices "
        "than an operand or the result has; the saving leaves two arrays of the largest of these, "
        "and the time that they need, at least an eighth",
        "`optimize=True`, or matrix products in the order that contracts first",
    ),
)

_LEAST_BYTES = 8 << 20
_LEAST_FACTOR = 8
# A result of a product and the result of its use, as in `((x @ a) * x).sum(axis=1)`.
_REPLACING = 2
# For each byte of the largest operand: what a product reads and writes, and its use reads.
_MOVED = 3
_LEAST_LEFT = 1 / 8
_FILE = re.compile(r"cupy[/\\]linalg[/\\]_einsum\.py$")
_OUTER = re.compile(r"^cupy_multiply__")


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find lines whose ``einsum`` multiplies operands elementwise before it contracts.

    Trigger: CuPy multiplies the last operands first unless ``optimize`` is given. Operands without
    a common index that is summed give an outer product: an elementwise function of CuPy within
    ``einsum`` writes a block that only this call uses. It has at least eight times the bytes of
    each block that is used with it, as the operands and the result. The subscripts in the text of
    the line must allow an order in which each array in between has the indices of an operand or of
    the result: the product of rows that are combined in all ways needs the large array.

    Saving: the decrease of the peak if the array had twice the size of the largest block that is
    used with it, and the recording's `Schedule` if the kernels that write and read it moved three
    times as much for each byte of that; an eighth of their time stays at least.
    """
    is_made = have_frame(device.recording, device.stack, _is_einsum)
    is_made &= device.is_freed & ~device.is_initial & ~device.is_shared & device.is_seen
    is_made &= device.requested >= _LEAST_BYTES
    if not is_made.any():
        return
    uses = BlockUses(device)
    chosen, beside = _outer_products(device, uses, is_made)
    for site in distinct(device.site[chosen]).tolist():
        of_site = device.site[chosen] == site
        line = device.lines.line_of(chosen[of_site])
        subscripts = subscripts_in(line.source)
        if subscripts is not None and has_small_order(*subscripts):
            yield _finding(device, uses, chosen[of_site], beside[of_site])


def _is_einsum(frame: Frame) -> bool:
    return _FILE.search(frame.filename) is not None


def _outer_products(
    device: DeviceBlocks, uses: BlockUses, is_made: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the large products within ``einsum``, and the bytes of the largest block beside each.

    Other large arrays within ``einsum``, such as a copy in another order, are no operands.
    """
    count = len(device.size)
    outside = np.bincount(uses.block, ~uses.are_within(_is_einsum), count)
    is_internal = is_made & (outside == 0) & ~device.is_returned
    is_outer = uses.are_of(_OUTER)
    blocks, beside = [], []
    for block in np.flatnonzero(is_internal).tolist():
        rows = uses.of_block(block)
        if len(rows) and is_outer[rows[0]]:
            others = distinct(np.concatenate([uses.beside(row) for row in rows.tolist()]))
            others = others[~is_internal[others]]
            largest = int(device.requested[others].max(initial=0))
            if largest and device.requested[block] >= _LEAST_FACTOR * largest:
                blocks.append(block)
                beside.append(largest)
    return np.array(blocks, np.int64), np.array(beside, np.int64)


def _finding(
    device: DeviceBlocks, uses: BlockUses, blocks: np.ndarray, beside: np.ndarray
) -> Finding:
    schedule, requested = device.schedule, device.requested[blocks]
    duration, all_work = schedule.duration.copy(), []
    for block, largest, size in zip(
        blocks.tolist(), beside.tolist(), requested.tolist(), strict=True
    ):
        work = distinct(uses.work[uses.of_block(block)])
        work = work[work >= 0]
        left = max(_MOVED * largest / size, _LEAST_LEFT)
        duration[work] = (schedule.duration[work] * left).astype(np.int64)
        all_work.append(work)
    change, work = ScheduleChange(duration=duration), distinct(np.concatenate(all_work))
    line = device.lines.line_of(blocks)
    times = f" {format_count(len(blocks))} times" if len(blocks) > 1 else ""
    spent = format_duration(int(schedule.duration[work].sum()))
    return Finding(
        rule="R76",
        title=f"{named(line.site, line.source)} makes a product of "
        f"{format_bytes(int(requested.max()))}{times}, from operands of at most "
        f"{format_bytes(int(beside.max()))}.",
        reason=(
            "Without `optimize`, CuPy multiplies the last two operands first, elementwise, and "
            f"then contracts their outer product. The kernels that write and read it take {spent}. "
            "Another order needs no array with more indices than an operand or the result has."
        ),
        change=(
            "Pass `optimize=True`, or write the products in the order that contracts first, such "
            'as `((x @ a) * x).sum(axis=1)` for `einsum("ij,ni,nj->n", a, x, x)`.'
        ),
        certainty="likely",
        device=device.device,
        lines=(line,),
        evidence=schedule.evidence(work),
        lifetimes=Change(blocks, device.begin[blocks], device.end[blocks], _REPLACING * beside),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )
