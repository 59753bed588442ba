"""Memory that a pool of the program's own gives back to the driver, and has to allocate again."""

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.launches import calls_of, stacks_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_OPERATIONS = DICTIONARIES["memory_operations", "operation"]
_MEMORIES = DICTIONARIES["memory_operations", "memory"]
_ALLOCATION, _DEVICE = _OPERATIONS.index("allocation"), _MEMORIES.index("device")
_RELEASE = re.compile(r"\.free_all_blocks\(")


@dataclass(frozen=True, eq=False, slots=True)
class ReleasedPools:
    """What pools of the program on a device need not have given back.

    Attributes:
        times: How often `free_all_blocks` gave back what was then allocated again.
        made: Rows of ``api_calls`` that allocate as many bytes as were given back before.
        released: Rows of ``api_calls`` that gave these back.
        kept_bytes: The most bytes that the pools have if they keep them.
    """

    times: int
    made: np.ndarray
    released: np.ndarray
    kept_bytes: int


def released_pools(recording: RecordingData, device: int) -> ReleasedPools:
    """Return what the pools of a program on a device need not have given back to the driver.

    A pool that keeps its blocks needs no call of the driver for as many bytes as a block that it
    has kept of the same stream: CuPy's gives none to another stream. Pools whose allocations gpuviz
    records itself have no such calls.

    Args:
        recording: The recording.
        device: Ordinal.
    """
    tables = recording.tables
    table = tables["memory_operations"]
    rows = np.flatnonzero(
        (plain(table["device"]) == device) & (codes(table["memory"], _MEMORIES) == _DEVICE)
    )
    rows = rows[np.argsort(plain(table["time"])[rows], kind="stable")]
    call = first_rows(plain(tables["api_calls"]["correlation"]), plain(table["correlation"])[rows])
    rows, call = rows[call >= 0], call[call >= 0]
    is_new = codes(table["operation"], _OPERATIONS)[rows] == _ALLOCATION
    stacks = stacks_of(tables, call)
    is_given_back = ~is_new & _are_given_back(recording, stacks)
    partner = _partners(plain(table["address"])[rows], is_new, is_given_back)
    size = plain(table["bytes"])[rows]
    stream = _streams(recording, call)
    cached = defaultdict[tuple[int, int], list[int]](list)
    made, released, groups = list[int](), list[int](), set[int]()
    live = kept = most = 0
    allocations = np.flatnonzero(is_new)
    for place in np.flatnonzero(partner >= 0).tolist():
        allocated = place if is_new[place] else partner[place]
        bytes_of_block = int(size[allocated])
        blocks = cached[bytes_of_block, int(stream[allocated])]
        if not is_new[place]:
            blocks.append(place)
            live, kept = live - bytes_of_block, kept + bytes_of_block
            continue
        if blocks:
            again = blocks.pop()
            kept -= bytes_of_block
            made.append(int(call[place]))
            released.append(int(call[again]))
            groups.add(int(np.searchsorted(allocations, again)))
        live += bytes_of_block
        most = max(most, live + kept)
    return ReleasedPools(len(groups), np.array(made, np.int64), np.array(released, np.int64), most)


def _streams(recording: RecordingData, calls: np.ndarray) -> np.ndarray:
    """Return the stream of the first work that a thread launches after each of its calls, or -1."""
    tables = recording.tables
    time, thread = (plain(tables["api_calls"][name]) for name in ("time", "thread"))
    launched = calls_of(tables, plain(tables["activities"]["correlation"]))
    work = np.flatnonzero(launched >= 0)
    work = work[np.argsort(time[launched[work]], kind="stable")]
    streams = plain(tables["activities"]["stream"])[work].astype(np.int64)
    found = np.full(len(calls), -1)
    for each in distinct(thread[calls]).tolist():
        own = np.flatnonzero(thread[launched[work]] == each)
        asked = np.flatnonzero(thread[calls] == each)
        place = np.searchsorted(time[launched[work[own]]], time[calls[asked]])
        found[asked] = np.append(streams[own], -1)[place]
    return found


def _partners(address: np.ndarray, is_new: np.ndarray, is_given_back: np.ndarray) -> np.ndarray:
    """Return the release of each allocation, and that of each release; -1 if not given back."""
    partner = np.full(len(address), -1)
    live: dict[int, int] = {}
    for place, at in enumerate(address.tolist()):
        if is_new[place]:
            live[at] = place
        elif (allocated := live.pop(at, -1)) >= 0 and is_given_back[place]:
            partner[place], partner[allocated] = allocated, place
    return partner


def _are_given_back(recording: RecordingData, stacks: np.ndarray) -> np.ndarray:
    """Return whether a line of the program calls `free_all_blocks` itself, by its call stack."""
    numbers, first = np.unique(stacks, return_inverse=True)
    frames = (recording.call_stacks.frames(stack)[:1] for stack in numbers.tolist())
    found = np.array([any(_is_release(each) for each in inner) for inner in frames], bool)
    given_back: np.ndarray = found[first.ravel()]
    return given_back


def _is_release(frame: Frame) -> bool:
    return not frame.is_installed and bool(_RELEASE.search(frame.source))
