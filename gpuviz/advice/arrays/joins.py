"""Arrays that a program joins to a larger one."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.data.columns import codes, plain
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

# CuPy's kernels that join arrays, of `concatenate`, `stack` and what is made of them. Large parts
# are copied one by one.
_JOIN = re.compile(r"cupy_concatenate")
_COPY = re.compile(r"cupy_copy__(\w+)_\1$")
# PyTorch's kernels of `torch.cat` and `torch.stack`, which have their parts among their arguments.
_JOIN_OF_TORCH = re.compile(r"\bCatArrayBatchedCopy")
# Of those of one kernel, which look through all arrays.
_MOST_JOINS = 1000
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]


@dataclass(frozen=True, eq=False, slots=True)
class Joins:
    """Parts and the arrays that they were copied to, in columns.

    Attributes:
        part: Indices of the device's blocks, used for the last time there.
        target: The block that each was copied to, whose other parts may be used later.
        activity: The row of ``activities`` of the copy, or of the kernel that joins all parts.
        is_shared: Whether that kernel joins all parts.
    """

    part: np.ndarray
    target: np.ndarray
    activity: np.ndarray
    is_shared: np.ndarray

    def of(self, rows: np.ndarray) -> "Joins":
        """Return some rows."""
        return Joins(self.part[rows], self.target[rows], self.activity[rows], self.is_shared[rows])


def joins(device: DeviceBlocks) -> Joins:
    """Return the parts that are joined to larger arrays, and not used afterwards.

    Which arrays a kernel that joins receives is a table in the memory of the device: its parts are
    the arrays whose last use it may be.
    """
    copied, joined = _copied(device), _joined(device)
    return Joins(*(np.concatenate(pair) for pair in zip(copied, joined, strict=True)))


def joins_of_torch(device: DeviceBlocks) -> Joins:
    """Return the parts that kernels of PyTorch join to new arrays, and not used afterwards."""
    used, tables = device.used, device.recording.tables
    joining = are_named(tables, plain(tables["activities"]["name"]), _JOIN_OF_TORCH.search)
    touch = np.flatnonzero((used.activity >= 0) & np.append(joining, False)[used.activity])
    place, call = device.place[used.block[touch]], used.call[touch]
    is_target = (place >= 0) & used.at_begin[touch] & (used.first[used.block[touch]] == call)
    is_target &= ~device.is_initial[place]
    # Unset bytes of the arguments may be the same address again.
    made = np.unique(np.stack([call[is_target], place[is_target]]), axis=1)
    calls, first, count = np.unique(made[0], return_index=True, return_counts=True)
    calls, targets = calls[count == 1], made[1][first[count == 1]]
    found = np.searchsorted(calls, call)
    known = np.append(calls, -1)[found] == call
    touch, place, target = touch[known], place[known], targets[found[known]]
    is_part = (place >= 0) & (place != target) & device.is_freed[place] & ~device.is_shared[place]
    is_part &= used.last[used.block[touch]] == used.call[touch]
    is_part &= device.requested[place] < device.requested[target]
    part, target, touch = place[is_part], target[is_part], touch[is_part]
    return Joins(part, target, used.activity[touch], np.ones(len(part), bool))


def copies_of_parts(device: DeviceBlocks) -> tuple[np.ndarray, ...]:
    """Return arrays that are copied whole into larger ones, each by a copy of its own.

    Returns:
        The parts and their targets, indices of the device's blocks, and the rows of ``activities``
        and of ``api_calls`` of the copies.
    """
    used, tables = device.used, device.recording.tables
    activities = tables["activities"]
    copies = _named(device, _COPY)
    kinds = codes(activities["copy_kind"], _COPY_KINDS)
    copies |= kinds == _COPY_KINDS.index("device_to_device")
    touch = np.flatnonzero((used.activity >= 0) & np.append(copies, False)[used.activity])
    reads, writes = touch[used.mode[touch] == READ], touch[used.mode[touch] == WRITE]
    calls, first, count = np.unique(used.call[writes], return_index=True, return_counts=True)
    calls, writes = calls[count == 1], writes[first[count == 1]]
    place = np.searchsorted(calls, used.call[reads])
    found = place < len(calls)
    found[found] = calls[place[found]] == used.call[reads[found]]
    reads, writes = reads[found], writes[place[found]]
    part, target = device.place[used.block[reads]], device.place[used.block[writes]]
    kept = (part >= 0) & (target >= 0) & used.at_begin[reads]
    kept &= device.requested[target] > device.requested[part]
    kept &= ~device.is_initial[target]
    return part[kept], target[kept], used.activity[reads][kept], used.call[reads][kept]


def _copied(device: DeviceBlocks) -> tuple[np.ndarray, ...]:
    """Return the parts that are copied whole for the last time, each by a copy of its own."""
    part, target, activity, call = copies_of_parts(device)
    kept = device.used.last[device.number[part]] == call
    kept &= device.is_freed[part] & ~device.is_shared[part]
    return part[kept], target[kept], activity[kept], np.zeros(int(kept.sum()), bool)


def _joined(device: DeviceBlocks) -> tuple[np.ndarray, ...]:
    """Return the arrays that may be parts of those that are first used by a joining kernel."""
    used = device.used
    joining = np.append(_named(device, _JOIN), False)[used.activity] & (used.activity >= 0)
    joining &= used.first[used.block] == used.call
    touch = np.flatnonzero(joining)
    target = device.place[used.block[touch]]
    known = (target >= 0) & ~device.is_initial[target]
    _, once = np.unique(target[known], return_index=True)
    touch, target = touch[known][once], target[known][once]
    largest = np.argsort(-device.requested[target], kind="stable")[:_MOST_JOINS]
    touch, target = touch[largest], target[largest]
    last = used.last[device.number]
    parts, targets, rows = [], [], []
    for each, block in zip(touch.tolist(), target.tolist(), strict=True):
        part = np.flatnonzero(
            (last == used.call[each])
            & device.is_freed
            & ~device.is_shared
            & (device.begin < device.begin[block])
        )
        parts.append(part)
        targets.append(np.full(len(part), block))
        rows.append(np.full(len(part), used.activity[each]))
    none = np.zeros(0, np.int64)
    columns = [np.concatenate([none, *each]) for each in (parts, targets, rows)]
    return (*columns, np.ones(len(columns[0]), bool))


def _named(device: DeviceBlocks, pattern: re.Pattern[str]) -> np.ndarray:
    """Return which activities have a name that matches."""
    tables = device.recording.tables
    return are_named(tables, plain(tables["activities"]["name"]), pattern.match)
