"""Kernels of matrix products, by their names, and the arrays that they use."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.analysis.categories import block_categories
from gpuviz.analysis.touches import Touches
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import plain
from gpuviz.data.strings import ids_named

_NO_CONVOLUTION = r"^(?!.*(?:fprop|dgrad|wgrad|cudnn)).*"
# Products of float32 that use no Tensor Cores: with fused multiply-adds, as cuBLAS names them.
IN_FLOAT32 = re.compile(
    rf"{_NO_CONVOLUTION}(gemm\w*f32f32_f32f32_f32\w*ffma|simt_sgemm|(ampere|volta|maxwell)_sgemm)"
)
WITH_TF32 = re.compile(rf"{_NO_CONVOLUTION}(gemm\w*_tf32f32|tensorop_s1688gemm)")
# Products on Tensor Cores that load one element at a time, since rows begin at any address. Those
# with double precision or complex numbers, whose elements are larger, do so anyway.
UNALIGNED = re.compile(r"tensorop_(?![cdz]\d*gemm)\w*gemm\w*_align1\b")
# GPUs that multiply about eight times as fast with TF32 as in float32, by NVIDIA's data sheets.
_WITH_TF32 = re.compile(r"\b(GH200|GB?[23]00|H[1-8]00|H200|A[18]00|B[23]00)\b")
# GPUs on which kernels for aligned rows were measured to be several times as fast as others.
_HOPPER = re.compile(r"\b(GH200|H[128]00)\b")
_PARAMETER, _WORKSPACE = map(CATEGORIES.index, ("parameter", "workspace"))
# The two factors and the result.
_OPERANDS = 3
# Rows of several arrays in one block are closer to each other.
_LEAST_APART = 64 << 10


@dataclass(frozen=True, eq=False, slots=True)
class Products:
    """Matrix products of a device.

    Attributes:
        work: Their numbers in the schedule, ascending.
        bytes: The bytes of the arrays that each uses. Of several in one block, each ends where the
            next one begins, unless that is less than 64 KiB behind.
        smallest: The bytes of the smallest of the three largest arrays, which are the two factors
            and the result; 0 if fewer are known. Each ends where the next one begins.
        uses_parameter: Whether each uses a parameter of a model.
    """

    work: np.ndarray
    bytes: np.ndarray
    smallest: np.ndarray
    uses_parameter: np.ndarray


def kernels_named(schedule: Schedule, device: int, pattern: re.Pattern[str]) -> np.ndarray:
    """Return the numbers of the kernels of a device whose names have a pattern, ascending."""
    tables = schedule.recording.tables
    ids = ids_named(tables, pattern.search)
    if not len(ids):
        return np.zeros(0, np.int64)
    names = plain(tables["activities"]["name"])[schedule.rows]
    is_chosen = (schedule.kind == KERNEL) & (schedule.device == device) & np.isin(names, ids)
    return np.flatnonzero(is_chosen)


def products(device: DeviceBlocks, pattern: re.Pattern[str]) -> Products:
    """Return the products of a device whose kernels' names have a pattern."""
    schedule, used = device.schedule, device.used
    work = kernels_named(schedule, device.device, pattern)
    seen = np.flatnonzero(used.activity >= 0)
    number = schedule.number[used.activity[seen]]
    is_of_work = np.isin(number, work)
    block, size, part = _parts(used, seen[is_of_work])
    place = np.searchsorted(work, number[is_of_work])
    place, part = np.unique(np.stack([place, part]), axis=1)
    category = block_categories(device.recording)[1][block[part]]
    is_operand = category != _WORKSPACE
    place, part, category = place[is_operand], part[is_operand], category[is_operand]
    whole = np.where(size < _LEAST_APART, used.blocks.requested[block], size)
    return Products(
        work=work,
        bytes=np.bincount(place, whole[part], len(work)),
        smallest=_in_order(place, size[part], len(work), _OPERANDS),
        uses_parameter=np.bincount(place[category == _PARAMETER], minlength=len(work)) > 0,
    )


def operand_bytes(used: Touches, rows: np.ndarray) -> np.ndarray:
    """Return the bytes of the arrays that begin at the addresses of some touches.

    Each ends where the next one begins. If any two of a block begin less than 64 KiB apart, their
    rows are taken to alternate, and each to have an equal part of the block.
    """
    block, size, part = _parts(used, rows)
    _, first, place, count = np.unique(
        block, return_index=True, return_inverse=True, return_counts=True
    )
    alternate = np.minimum.reduceat(size, first) < _LEAST_APART if len(first) else first
    equal = used.blocks.requested[block] // count[place]
    found: np.ndarray = np.where(alternate[place], equal, size)[part]
    return found


def _parts(used: Touches, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the parts of blocks that begin at the addresses of some touches.

    Returns:
        The block of each part; its bytes, up to the next part or the end of the block; and the part
        of each touch.
    """
    blocks = used.blocks
    first = blocks.address[used.block[rows]].astype(np.int64)
    places = np.stack(
        [used.block[rows].astype(np.int64), used.address[rows].astype(np.int64) - first]
    )
    (block, start), part = np.unique(places, axis=1, return_inverse=True)
    end = blocks.requested[block].astype(np.int64)
    followed = np.flatnonzero(block[1:] == block[:-1])
    end[followed] = start[followed + 1]
    return block, np.maximum(end - start, 0), part.ravel()


def has_fast_tf32(device: DeviceBlocks) -> bool:
    """Return whether TF32 makes matrix products of a GPU several times as fast."""
    return bool(_WITH_TF32.search(_name_of(device)))


def is_hopper(device: DeviceBlocks) -> bool:
    """Return whether a GPU is of the architecture that this was measured on."""
    return bool(_HOPPER.search(_name_of(device)))


def bandwidth_of(device: DeviceBlocks) -> int:
    """Return the most bytes per second of a GPU's memory; 0 if unknown."""
    return int(_row_of(device).get("memory_bandwidth", 0))


def _name_of(device: DeviceBlocks) -> str:
    return str(_row_of(device).get("name", ""))


def _row_of(device: DeviceBlocks) -> dict[str, Any]:
    rows = device.recording.tables["devices"].to_pylist()
    return next((row for row in rows if row["id"] == device.device), {})


def _in_order(place: np.ndarray, size: np.ndarray, count: int, rank: int) -> np.ndarray:
    """Return the size of this rank, from 1, of each place, largest first; 0 if it has fewer."""
    order = np.lexsort((-size, place))
    place, size = place[order], size[order]
    first = np.searchsorted(place, np.arange(count))
    found = np.zeros(count, np.int64)
    has = np.bincount(place, minlength=count) >= rank
    found[has] = size[first[has] + rank - 1]
    return found
