"""When arrays that wait for a reduction were written, read by the host, and made in turn."""

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ
from gpuviz.advice.source.conditions import is_comprehension
from gpuviz.advice.source.own_lines import is_own
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_HOST = _COPY_KINDS.index("device_to_host")
_NEVER = 2**62


def times_of_host_reads(device: DeviceBlocks) -> np.ndarray:
    """Return when the host calls copies to itself, in ns, ascending."""
    tables = device.recording.tables
    kinds = codes(tables["activities"]["copy_kind"], _COPY_KINDS)
    reads = plain(tables["activities"]["correlation"])[kinds == _TO_HOST]
    calls = first_rows(plain(tables["api_calls"]["correlation"]), reads)
    return np.sort(plain(tables["api_calls"]["time"])[calls[calls >= 0]])


def written_before(
    device: DeviceBlocks, touches: np.ndarray, blocks: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """Return when each block may last have been written before a time, in ns; -1 if never.

    Args:
        device: All blocks.
        touches: The rows of ``device.used`` that count.
        blocks: The blocks.
        times: The time for each of them, in ns; that of a call.
    """
    used = device.used
    called = plain(device.recording.tables["api_calls"]["time"])
    place = device.place[used.block[touches]]
    touches = touches[(place >= 0) & (used.mode[touches] != READ)]
    is_part = len(touches) < len(called)
    moments = distinct(called[used.call[touches]] if is_part else called)
    writes = device.place[used.block[touches]] * (len(moments) + 1)
    writes = np.sort(writes + np.searchsorted(moments, called[used.call[touches]]))
    wanted = blocks * (len(moments) + 1) + np.searchsorted(moments, times)
    before = np.append(writes, -1)[np.searchsorted(writes, wanted) - 1]
    owner, moment = np.divmod(before, len(moments) + 1)
    found: np.ndarray = np.where(owner == blocks, np.append(moments, -1)[moment], -1)
    return found


def in_loops_of_one_line(
    device: DeviceBlocks, made: np.ndarray, blocks: np.ndarray, calls: np.ndarray
) -> np.ndarray:
    """Return the places after some calls, also within a loop that has no other line.

    If the program itself makes some arrays, or a comprehension of it one after the other, it has
    done with a call when it makes the second array after it. What else a function of a library
    makes in one line may belong together.

    Args:
        device: All blocks.
        made: The blocks that the line makes.
        blocks: Those whose places are returned.
        calls: For each of them, a call; -1 if it has none, as when it was made.
    """
    times = plain(device.recording.tables["api_calls"]["time"])
    begins = device.used.blocks.begin
    order = np.argsort(begins[device.number[made]], kind="stable")
    done = np.where(calls >= 0, times[calls], begins[device.number[blocks]])
    later = np.searchsorted(begins[device.number[made]][order], done, side="right") + 1
    places = np.append(device.begin[made][order], [_NEVER, _NEVER])[later]
    stacks = np.unique(device.stack[made])
    is_made_here = bool(is_own(device.recording, stacks).all()) or all(
        is_comprehension(device.recording, stack) for stack in stacks.tolist()
    )
    return np.where(is_made_here, places, _NEVER)
