"""What one kernel can be for elementwise launches that pass their results to a reduction."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import Function, kernel_threads
from gpuviz.advice.fusion.fusion import Groups
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named

# How long a `cupy.ReductionKernel` takes for an element, in ns (134 million of them, 8 to a result,
# on an H100 and an H200).
_REDUCED_NS = 5.5e-3
# The same on one thread block: of two arrays of 17 and 25 million elements on an H200.
_ON_ONE_BLOCK_NS = 0.8
# CUB's reductions along an axis, and those of whole arrays.
_ALONG_AN_AXIS = re.compile(r"\bDevice\w*SegmentedReduceKernel\b")
_OF_ALL = re.compile(r"\bDeviceReduce\w*Kernel\b|\bcupy_cub_\w+_pass1\b")
_SUM = re.compile(r"\bDevice\w*Reduce\w*Kernel\b.*\bplus\b|\bcupy_(cub_)?(sum|mean)(_|\b)")
_FACTORS = 2
_OF_CUBLAS = ({"float32"}, {"float64"})
# Threads of a thread block.
_MOST_OF_A_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class ReductionKernel:
    """What one kernel can be for a group of launches with a reduction.

    Attributes:
        is_along_an_axis: Whether it does not reduce all elements to one number.
        is_broadcast: Whether it reads an array again for several elements.
        is_of_products: Whether it only adds up the products of two arrays of floats.
        is_dot_product: Whether cuBLAS computes all of that.
        is_slow: Whether a `cupy.ReductionKernel` takes longer than all these launches.
    """

    is_along_an_axis: bool
    is_broadcast: bool
    is_of_products: bool
    is_dot_product: bool
    is_slow: bool

    @property
    def is_matrix_product(self) -> bool:
        """Whether a matrix product does the same."""
        return self.is_of_products and self.is_along_an_axis and self.is_broadcast

    def advice(self, what: str) -> str:
        """Return what to do with some lines, such as ``the expression``."""
        if self.is_matrix_product:
            return (
                "A sum of products along an axis is a matrix product (`@`, `cupy.einsum`), which "
                "makes no such array: `x.T @ y` instead of "
                "`(x[:, :, None] * y[:, None, :]).sum(0)`."
            )
        if self.is_dot_product:
            return (
                "Compute the sum of products with `cupy.cublas.dot(x.ravel(), y.ravel())`, after "
                "`import cupy.cublas`: unlike `@` and `cupy.dot` of vectors, it makes no such "
                "array."
            )
        if self.is_slow:
            return (
                f"Make one kernel of {what}, of your own: a `cupy.ReductionKernel` that reads "
                "several arrays reduces them to one number on a single thread block, which takes "
                "longer."
            )
        return f"Make one kernel of {what}, with `cupy.ReductionKernel` or a kernel of your own."


def reduction_kernel(device: DeviceBlocks, groups: Groups) -> ReductionKernel:
    """Return what one kernel can be for the first of some groups that has a reduction."""
    number = groups.group[np.flatnonzero(groups.launch < 0)[0]]
    first = groups.of(np.flatnonzero(groups.group == number))
    launches, schedule = device.elementwise, device.schedule
    own = first.launch[first.launch >= 0]
    reads = np.isin(launches.launch, own) & ~np.isin(launches.source, launches.target[own])
    arrays = np.stack([launches.source, launches.address])[:, reads]
    functions = [launches.functions[each] for each in launches.function[own]]
    is_broadcast = bool(_broadcast(device, first).any())
    is_sum = arrays.shape[1] == _FACTORS and bool(_are(device, first, _SUM).any())
    is_of_products = is_sum and all(map(_multiplies_floats, functions))
    # CUB reduces one array without gaps.
    by_cub = np.unique(arrays, axis=1).shape[1] == 1 and not is_broadcast
    taken = int(schedule.duration[schedule.number[first.activity]].sum())
    along = not _of_all(device, first).any()
    return ReductionKernel(
        is_along_an_axis=along,
        is_broadcast=is_broadcast,
        is_of_products=is_of_products,
        is_dot_product=is_of_products
        and not (along or is_broadcast)
        and all(set(each.types) in _OF_CUBLAS for each in functions),
        is_slow=not (along or by_cub)
        and int(launches.elements[own].max()) * _ON_ONE_BLOCK_NS > taken,
    )


def _multiplies_floats(function: Function) -> bool:
    """Return whether a function multiplies numbers of types for which there are fast products."""
    return function.name == "multiply" and np.dtype(function.output).kind in "fc"


def least_durations(
    device: DeviceBlocks,
    groups: Groups,
    elements: np.ndarray,
    computed: np.ndarray,
) -> np.ndarray:
    """Return how long one kernel takes for each group at least, in ns, besides what memory needs.

    Unlike CUB's reductions along an axis, a `cupy.ReductionKernel` computes the place of each
    element, which takes longer than to read it, and so it does for arrays that are broadcast. A
    matrix product takes what memory needs.

    Args:
        device: The blocks of a device.
        groups: Launches that one kernel could do, of the same lines.
        elements: How many elements each launch writes; 0 for reductions.
        computed: For each group, what its launches compute besides, in ns.
    """
    _, group = np.unique(groups.group, return_inverse=True)
    if not (groups.launch < 0).any():
        return computed
    if reduction_kernel(device, groups).is_matrix_product:
        return np.zeros(len(computed))
    places = np.zeros(len(computed))
    np.maximum.at(places, group, elements * _REDUCED_NS)
    is_slow = _are(device, groups, _ALONG_AN_AXIS)
    along = (groups.launch < 0) & ~_of_all(device, groups)
    is_slow |= along & (np.bincount(group, _broadcast(device, groups)) > 0)[group]
    return np.where(np.bincount(group, is_slow) > 0, np.maximum(computed, places), computed)


def _of_all(device: DeviceBlocks, groups: Groups) -> np.ndarray:
    """Return which launches reduce all elements to one number: by CUB, or on one thread block."""
    threads = kernel_threads(device.recording, groups.activity)
    on_one_block = (groups.launch < 0) & (threads > 0) & (threads <= _MOST_OF_A_BLOCK)
    return _are(device, groups, _OF_ALL) | on_one_block


def _are(device: DeviceBlocks, groups: Groups, pattern: re.Pattern[str]) -> np.ndarray:
    """Return which launches are of kernels with a name that has a pattern."""
    names = plain(device.recording.tables["activities"]["name"])[groups.activity]
    return are_named(device.recording.tables, names, pattern.search)


def _broadcast(device: DeviceBlocks, groups: Groups) -> np.ndarray:
    """Return which launches read an array with fewer elements than they write."""
    launches = device.elementwise
    fewer = launches.source_elements < launches.elements[launches.launch]
    rows = np.flatnonzero(fewer & (launches.source_elements > 0))
    found: np.ndarray = np.isin(groups.launch, launches.launch[rows])
    return found
