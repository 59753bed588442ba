"""R83: matrices are multiplied with a one-hot matrix, instead of looked up or added by index."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.finding import Finding, named
from gpuviz.advice.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.scattered import INDEX_BYTES, Scattered, scatters_to_large
from gpuviz.data.columns import distinct
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks

RULES = (
    Rule(
        "R83",
        "a product with a one-hot matrix",
        "PyTorch fills an array of 8 MiB or more and scatters one number to the places of much "
        "smaller indices, as `one_hot` does, with 1 KiB or more for each of them; only matrix "
        "products with other arrays, sums, and conversions for these use it; the saving is without "
        "this array, what it is converted to, and the kernels that make them",
        "`w[index]` for `one_hot @ w`, `index_add_` for `one_hot.T @ x`, `bincount` for its sum",
    ),
)

# With few classes, `index_add_` adds to the same places so often that it may take longer.
_LEAST_ROW_BYTES = 1 << 10
_CONVERSION = re.compile(r"\bat::native::\w*elementwise_kernel.*direct_copy_kernel", re.DOTALL)
_PRODUCT = re.compile(r"gem[mv]|cutlass.*Gemm|splitK", re.IGNORECASE)
_SUM = re.compile(r"\bat::native::reduce_kernel.*sum_functor", re.DOTALL)


def find(device: "DeviceBlocks") -> "Iterator[Finding]":
    """Find one-hot matrices that are only multiplied with others, and summed.

    Trigger: a kernel of PyTorch fills a block, the next one scatters a number of the host into it,
    and has 1 KiB or more for each index. Matrix products with other blocks use it, or what it is
    converted to, and nothing else does but sums. A product with such a matrix looks rows up, or
    adds them by index.

    Saving: the decrease of the peak without the one-hot matrix and its conversions, and the
    recording's `Schedule` without the kernels that make them. The products and sums stay: a lookup
    or an addition by index takes their place.
    """
    if not scatters_to_large(device):
        return
    scattered = Scattered(device)
    is_product, is_sum, is_conversion = map(scattered.uses.are_of, (_PRODUCT, _SUM, _CONVERSION))
    made: dict[int, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
    for block in scattered.blocks.tolist():
        found = _one_hot(device, scattered, block, (is_product, is_sum, is_conversion))
        if found is not None:
            made.setdefault(int(device.site[block]), []).append(found)
    for parts in made.values():
        blocks, work = (np.concatenate(each) for each in zip(*parts, strict=True))
        first = np.array([part[0][0] for part in parts])
        most = max(int(device.requested[part[0]].sum()) for part in parts)
        yield _finding(device, first, distinct(blocks), distinct(work[work >= 0]), most)


def _one_hot(
    device: "DeviceBlocks",
    scattered: Scattered,
    block: int,
    kinds: "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]",
) -> "tuple[NDArray[Any], NDArray[Any]] | None":
    """Return a block with what it is converted to, and the work that makes them.

    None if it is no one-hot matrix, or something else uses it.
    """
    is_product, is_sum, is_conversion = kinds
    uses, start = scattered.uses, scattered.start(block)
    if start is None:
        return None
    rows, fills, indices = start
    count = int(device.requested[indices]) // INDEX_BYTES
    if device.requested[block] < count * _LEAST_ROW_BYTES:
        return None
    blocks, work, products = [block], uses.work[rows[: fills + 1]].tolist(), 0
    left = [rows[fills + 1 :]]
    while left:
        for row in left.pop().tolist():
            others = uses.beside(row)
            is_older = device.begin[others] < device.begin[block]
            if is_product[row] and (is_older.any() or _is_used_before(scattered, row, others)):
                products += 1
                continue
            if is_sum[row]:
                continue
            if not is_conversion[row] or len(others) != 1 or not scattered.can[others[0]]:
                return None
            converted = uses.of_block(int(others[0]))
            if uses.call[converted[0]] != uses.call[row]:
                return None
            blocks.append(int(others[0]))
            work.append(int(uses.work[row]))
            left.append(converted[uses.call[converted] != uses.call[row]])
    return (np.array(blocks), np.array(work)) if products else None


def _is_used_before(scattered: Scattered, row: int, others: "NDArray[Any]") -> bool:
    """Return whether one of some blocks was used before the call of a row."""
    uses = scattered.uses
    return any(uses.call[uses.of_block(each)[0]] < uses.call[row] for each in others.tolist())


def _finding(
    device: "DeviceBlocks",
    first: "NDArray[Any]",
    blocks: "NDArray[Any]",
    work: "NDArray[Any]",
    most: int,
) -> Finding:
    schedule = device.schedule
    change = schedule.without_work(work)
    line = device.lines.line_of(first)
    return Finding(
        rule="R83",
        title=f"{named(line.site, line.source)} makes a one-hot matrix, of up to "
        f"{format_bytes(most)} with its conversions, only for matrix products.",
        reason=(
            "A number is scattered at indices into an array of zeros, which matrix products and "
            "sums alone use. Such a product only looks rows up, or adds those of equal index."
        ),
        change=(
            "Use the indices themselves: `w[index]` or `F.embedding(index, w)` for `one_hot @ w`, "
            '`F.embedding_bag(index, w, mode="sum")` if its rows have several ones, '
            "`torch.zeros(classes, n).index_add_(0, index, x)` for `one_hot.T @ x`, and "
            "`torch.bincount(index)` for `one_hot.sum(0)`. The saving is that of the matrix alone, "
            "not of the products. `index_add_` adds in an order that is not fixed."
        ),
        certainty="likely",
        device=device.device,
        lines=device.lines.lines_of(blocks),
        evidence=schedule.evidence(work),
        lifetimes=Change(
            blocks, device.begin[blocks], device.end[blocks], np.zeros(len(blocks), np.int64)
        ),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )
