"""Arrays that are kept until they are joined to one, of which only a reduction is left."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.block_uses import BlockUses
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.joins import joins, joins_of_torch
from gpuviz.advice.reductions.reduction_rounds import LEAST_FACTOR
from gpuviz.advice.reductions.reduction_times import times_of_host_reads
from gpuviz.advice.reductions.reductions_at_last import LEAST_ARRAYS, LEAST_BYTES
from gpuviz.data.columns import distinct, plain

# Of all joined arrays, the largest.
_MOST_JOINED = 64
# What is made of one, before it is reduced.
_MOST_MADE = 32
_ELEMENTWISE = re.compile(r"\bat::native::\w*elementwise_kernel<|^cupy_\w+?__\w+$")
# The reductions whose result follows from those of the parts; variances, medians and the places of
# extremes do not.
_REDUCTION = re.compile(
    r"\bat::native::reduce_kernel<.*"
    r"(?:sum_functor|nansum|MeanOps|Max\w*Functor|Min\w*Functor|and_kernel|or_kernel|prod_functor)"
    r"|^cupy_(?:(?:nan)?(?:sum|mean|prod)|a?max|a?min|any|all|count_nonzero)(?:_core\w*)?$"
)


@dataclass(frozen=True, eq=False, slots=True)
class JoinedAndReduced:
    """Arrays that are joined, and what is made of them until it is reduced.

    Attributes:
        parts: The arrays in the order of their allocations, indices of the device's blocks.
        whole: The joined array and what is computed from it element by element.
    """

    parts: np.ndarray
    whole: np.ndarray


def joined_then_reduced(device: DeviceBlocks) -> Iterator[JoinedAndReduced]:
    """Yield arrays that could be reduced one by one instead of joined.

    At least four arrays of 1 MiB or more are all of an array that is made after them, and joining
    them is their last use. Only elementwise kernels read that array and what they make of it, with
    nothing else but arrays of at most an eighth that were there before it, and sums, means,
    products, extremes, `any` and `all`, whose results have at most an eighth of its bytes. The host
    reads nothing from the first array to the join.
    """
    found = [joins(device), joins_of_torch(device)]
    part, target = (
        np.concatenate([getattr(each, name) for each in found]) for name in ("part", "target")
    )
    can = (device.requested[part] >= LEAST_BYTES) & (device.stack[part] != 0)
    can &= device.begin[part] < device.begin[target]
    part, target = part[can], target[can]
    targets = distinct(target)
    if not len(targets):
        return
    chain = _Chain(device)
    for whole in targets[np.argsort(-device.size[targets], kind="stable")][:_MOST_JOINED].tolist():
        parts = distinct(part[target == whole])
        is_all = device.requested[parts].sum() == device.requested[whole]
        if len(parts) < LEAST_ARRAYS or not is_all:
            continue
        parts = parts[np.argsort(device.begin[parts], kind="stable")]
        made = chain.until_reduced(whole)
        if made and not chain.has_news(int(parts[0]), whole):
            yield JoinedAndReduced(parts, np.array(sorted(made)))


class _Chain:
    """The uses of a device's blocks, and which of them are elementwise or reductions."""

    def __init__(self, device: DeviceBlocks) -> None:
        self._device, self._uses = device, BlockUses(device)
        self._is_elementwise = self._uses.are_of(_ELEMENTWISE)
        self._is_reduction = self._uses.are_of(_REDUCTION)

    def until_reduced(self, whole: int) -> set[int]:
        """Return a joined array and what is made of it up to reductions.

        None if anything else uses it.

        Args:
            whole: The joined array, an index of the device's blocks.
        """
        device, uses = self._device, self._uses
        most = int(device.size[whole]) // LEAST_FACTOR
        made, left, is_reduced = {whole}, [whole], False
        while left:
            block = left.pop()
            if not device.is_freed[block] or len(made) > _MOST_MADE:
                return set()
            for row in uses.of_block(block).tolist():
                call = int(uses.call[row])
                if call == self._first(block):
                    continue
                rows = uses.of_call(row)
                blocks = {*uses.block[rows].tolist()}
                new = {each for each in blocks if self._first(each) == call}
                others = blocks - made - new
                if any(device.size[each] > most for each in others):
                    return set()
                if self._is_elementwise[row]:
                    # Such as the mean of all, which each needs.
                    if any(device.begin[each] > device.begin[whole] for each in others):
                        return set()
                    left += new - made
                    made |= new
                elif self._is_reduction[row] and all(device.size[each] <= most for each in new):
                    is_reduced = True
                else:
                    return set()
        return made if is_reduced else set()

    def has_news(self, first: int, whole: int) -> bool:
        """Return whether the host reads something between the first part and the join."""
        device = self._device
        reads = times_of_host_reads(device)
        begin = device.used.blocks.begin[device.number[first]]
        joined = plain(device.recording.tables["api_calls"]["time"])[self._first(whole)]
        return bool(np.searchsorted(reads, begin) < np.searchsorted(reads, joined))

    def _first(self, block: int) -> int:
        return int(self._device.used.first[self._device.number[block]])
