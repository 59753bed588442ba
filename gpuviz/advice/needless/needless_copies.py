"""Copies by `cupy.array` of arrays that could be used themselves."""

import re

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, Function
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.source.conditions import statement_text
from gpuviz.analysis.launches import stacks_of

_ARRAY = re.compile(r"[/\\]cupy[/\\]_creation[/\\]from_data\.py$")
# Arguments that `cupy.asarray` lacks, or with which it copies too.
_ARRANGES = re.compile(r"\b(order|ndmin)\s*=|[\"'][CFcf][\"']")
_LEAST_BYTES = 1 << 20
_NEVER = 2**62


def needless_copies(device: DeviceBlocks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the copies that `cupy.array` makes of arrays of the same type without need.

    Nothing writes to a copy, or to what it is made of while the copy is allocated, so that this
    could be used instead. So it is for all copies that a line makes of arrays of the same type. The
    function keeps the order of the elements unless it gets another one.

    Returns:
        Indices of `device.elementwise`, and for each its copy and the array that it is made of,
        which is no such copy itself; indices of ``used.blocks``.
    """
    launches, used = device.elementwise, device.used
    requested = used.blocks.requested
    made = np.flatnonzero(launches.where(_keeps_type))
    made = made[_by_array(device, launches.call[made])]
    chosen = launches.is_whole[made] & ~launches.is_update[made]
    chosen &= used.first[launches.target[made]] == launches.call[made]
    sources = np.bincount(launches.launch, minlength=len(launches)) == 1
    source = np.full(len(launches), -1)
    source[launches.launch[launches.at_begin]] = launches.source[launches.at_begin]
    chosen &= sources[made] & (source[made] >= 0)
    rows = made[chosen]
    rows = rows[requested[source[rows]] == requested[launches.target[rows]]]
    place = device.place[launches.target[rows]], device.place[source[rows]]
    able = np.append(device.is_seen & ~device.is_shared & ~device.is_used_at_any_time, False)
    rows = rows[able[place[0]] & able[place[1]]]
    rows = rows[_are_unchanged(device, rows, source[rows])]
    line = line_numbers(device.recording, stacks_of(device.recording.tables, launches.call[made]))
    rows = rows[_are_whole_lines(rows, made, line)]
    target, origin = launches.target[rows], source[rows]
    made_of = dict(zip(target.tolist(), origin.tolist(), strict=True))
    for _ in range(len(made_of)):
        further = np.array([made_of.get(each, each) for each in origin.tolist()], np.int64)
        if (further == origin).all():
            break
        origin = further
    kept = _are_unchanged(device, rows, origin)
    kept[kept] = _are_whole_lines(rows[kept], made, line)
    kept &= requested[target] >= _LEAST_BYTES
    return rows[kept], target[kept], origin[kept]


def _are_whole_lines(rows: np.ndarray, made: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Return which of some launches are on lines whose launches are all among them.

    Args:
        rows: The launches.
        made: All launches.
        line: The number of the line of each of the latter.
    """
    is_left = ~np.isin(made, rows)
    whole: np.ndarray = np.isin(rows, made[~np.isin(line, line[is_left])])
    return whole


def _keeps_type(function: Function) -> bool:
    return function.name == "copy" and tuple(function.arrays) == (function.output,)


def _by_array(device: DeviceBlocks, calls: np.ndarray) -> np.ndarray:
    """Return which calls are of `cupy.array` on a line of the program that only passes arrays."""
    recording = device.recording
    stacks, place = np.unique(stacks_of(recording.tables, calls), return_inverse=True)
    found = np.zeros(len(stacks), bool)
    for row, stack in enumerate(stacks.tolist()):
        inner, *outer = recording.call_stacks.frames(stack) or (None,)
        if inner is None or not outer or outer[0].is_installed:
            continue
        by_array = inner.name == "array" and _ARRAY.search(inner.filename)
        found[row] = bool(by_array) and not _ARRANGES.search(statement_text(recording, stack))
    by: np.ndarray = found[place.ravel()]
    return by


def _are_unchanged(device: DeviceBlocks, rows: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Return whether nothing else writes to a copy, nor to its source while the copy is there."""
    launches, used, times = device.elementwise, device.used, device.call_times
    writes = np.flatnonzero(used.mode != READ)
    order = np.lexsort((times[used.call[writes]], used.block[writes]))
    block, time = used.block[writes[order]], times[used.call[writes[order]]]
    counts = np.bincount(block, minlength=len(used.blocks))
    starts = np.cumsum(counts) - counts
    unchanged: np.ndarray = counts[launches.target[rows]] == 1
    ends = np.where(used.blocks.end < 0, _NEVER, used.blocks.end)
    for number, row in enumerate(rows.tolist()):
        own = time[starts[source[number]] :][: counts[source[number]]]
        begin, end = times[launches.call[row]], ends[launches.target[row]]
        unchanged[number] &= not ((own > begin) & (own <= end)).any()
    return unchanged
