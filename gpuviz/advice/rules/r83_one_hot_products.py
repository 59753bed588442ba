"""R83: matrices are multiplied with a one-hot matrix, instead of looked up or added by index."""

import re
from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.block_uses import BlockUses
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.arrays.scattered import INDEX_BYTES, Scattered, scatters_to_large
from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of, user_frames, values_of_stacks
from gpuviz.data.columns import distinct
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R83",
        "a product with a one-hot matrix",
        "a line that names zeros or `one_hot` makes PyTorch fill an array of 8 MiB or more, and "
        "one number is scattered to the places of much smaller indices, with 1 KiB or more for "
        "each of them; only matrix products with other arrays, sums, and conversions for these use "
        "it, and no backward pass makes its gradient; the saving is without this array, what it is "
        "converted to, and the kernels that make them",
        "`w[index]` for `one_hot @ w`, `index_add_` for `one_hot.T @ x`, `bincount` for its sum",
    ),
)

# With few classes, `index_add_` adds to the same places so often that it may take longer.
_LEAST_ROW_BYTES = 1 << 10
_CONVERSION = re.compile(r"\bat::native::\w*elementwise_kernel.*direct_copy_kernel", re.DOTALL)
# Kernels of convolutions have names of products, too.
_PRODUCT = re.compile(
    r"^(?!.*(?:implicit|fprop|dgrad|wgrad|cudnn)).*(?:gem[mv]|cutlass.*Gemm|splitK)",
    re.IGNORECASE | re.DOTALL,
)
_SUM = re.compile(r"\bat::native::reduce_kernel.*sum_functor", re.DOTALL)
# How lines name what they fill with zeros, and not with what others of the same kernel do.
_OF_ZEROS = re.compile(
    r"^(?!.*(?:fill_|(?:full|ones)(?:_like)?)\().*(?:zero|one_?hot)", re.IGNORECASE
)
_OF_TORCH = re.compile(r"[/\\]torch[/\\]")


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find one-hot matrices that are only multiplied with others, and summed.

    Trigger: a kernel of PyTorch fills a block with zeros, as its line says, the next one scatters a
    number of the host into it, and has 1 KiB or more for each index. Matrix products with other
    blocks read it, or what it is converted to, and nothing else does but sums. A product with such
    a matrix looks rows up, or adds them by index. A program that wants the gradient of the matrix,
    as to choose other indices, needs it.

    Saving: the decrease of the peak without the one-hot matrix and its conversions, and the
    recording's `Schedule` without the kernels that make them. The products and sums stay: a lookup
    or an addition by index takes their place.
    """
    if not scatters_to_large(device):
        return
    scattered = Scattered(device)
    is_product, is_sum, is_conversion = map(scattered.uses.are_of, (_PRODUCT, _SUM, _CONVERSION))
    made: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
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
    device: DeviceBlocks,
    scattered: Scattered,
    block: int,
    kinds: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a block with what it is converted to, and the work that makes them.

    None if it is no one-hot matrix, or something else uses it.
    """
    is_product, is_sum, is_conversion = kinds
    uses, start = scattered.uses, _start(device, scattered, block)
    if start is None:
        return None
    made, used = start
    blocks, work, products = [block], uses.work[made].tolist(), 0
    left = [used]
    while left:
        for row in left.pop().tolist():
            if is_product[row] and _is_factor(uses, row) and not _has_gradient(device, uses, row):
                products += 1
                continue
            if is_sum[row]:
                continue
            converted = _converted(device, scattered, row) if is_conversion[row] else None
            if converted is None:
                return None
            blocks.append(int(uses.block[converted[0]]))
            work.append(int(uses.work[row]))
            left.append(converted[uses.call[converted] != uses.call[row]])
    return (np.array(blocks), np.array(work)) if products else None


def _start(
    device: DeviceBlocks, scattered: Scattered, block: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the uses that make a block of zeros and few indices, and the later ones, else None."""
    start = scattered.start(block)
    if start is None:
        return None
    rows, fills, indices = start
    count = int(device.requested[indices]) // INDEX_BYTES
    is_large = device.requested[block] >= count * _LEAST_ROW_BYTES
    if not (is_large and _name_zeros(device, scattered.uses.call[rows[:fills]])):
        return None
    return rows[: fills + 1], rows[fills + 1 :]


def _converted(device: DeviceBlocks, scattered: Scattered, row: int) -> np.ndarray | None:
    """Return the uses of what a row converts its block to; None if that is a part of the block.

    Such a part lacks a class, as of entries that belong to none.
    """
    uses = scattered.uses
    others = uses.beside(row)
    if len(others) != 1 or not scattered.can[others[0]]:
        return None
    few, many = sorted(device.requested[[uses.block[row], others[0]]].tolist())
    converted = uses.of_block(int(others[0]))
    is_made = uses.call[converted[0]] == uses.call[row]
    return converted if is_made and many in {few, 2 * few, 4 * few, 8 * few} else None


def _name_zeros(device: DeviceBlocks, calls: np.ndarray) -> bool:
    """Return whether the lines of some calls name zeros: the innermost ones outside PyTorch."""
    for stack in distinct(stacks_of(device.recording.tables, calls)).tolist():
        frames = device.recording.call_stacks.frames(stack)
        texts = (each.source for each in frames if not _OF_TORCH.search(each.filename))
        if not _OF_ZEROS.search(next(filter(None, texts), "")):
            return False
    return True


def _is_factor(uses: BlockUses, row: int) -> bool:
    """Return whether the product of a row multiplies its block with another one.

    Kernels name a block twice that is both factors, or that they add to and overwrite. What begins
    within the block may lack a class.
    """
    block, mode = (each[uses.of_call(row)] for each in (uses.block, uses.mode))
    is_ours = block == uses.block[row]
    is_read_once = uses.mode[row] == READ and np.count_nonzero(is_ours) == 1
    return bool(is_read_once and uses.at_begin[row] and (mode[~is_ours] != WRITE).any())


def _has_gradient(device: DeviceBlocks, uses: BlockUses, row: int) -> bool:
    """Return whether the backward pass of a row's line makes an array as large as its block."""
    if device.training is None:
        return False
    tables, size = device.recording.tables, device.requested[uses.block[row]]
    is_alike = (device.training.phase == BACKWARD) & (device.requested == size)
    lines = values_of_stacks(tables, "forward_frame", device.stack[is_alike])
    line = user_frames(tables, stacks_of(tables, uses.call[[row]]))
    return bool(((lines == line) & (line > 0)).any())


def _finding(
    device: DeviceBlocks,
    first: np.ndarray,
    blocks: np.ndarray,
    work: np.ndarray,
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
            "`torch.zeros(classes, n).index_add_(0, index, x)` for `one_hot.T @ x`, "
            "`torch.bincount(index)` for `one_hot.sum(0)`, and "
            "`torch.bincount(classes * index + other)` for the product of two such matrices. If "
            "the number that is scattered is not 1, multiply the result by it. An index that a row "
            "repeats counts once in the matrix, but each time in these functions. The saving is "
            "that of the matrix alone, not of the products. `index_add_` adds in an order that is "
            "not fixed."
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
