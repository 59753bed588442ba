"""Kernels of the program whose blocks have fewer threads than a warp."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from gpuviz.advice.arrays.elementwise import block_threads
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.kernels.bandwidth import OF_LIBRARIES, possible_bandwidth
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.analysis.launches import stacks_of, text_numbers
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named

WARP = 32
# A multiprocessor runs at most this many blocks at a time. With several times as many, there are
# always others to run.
_RESIDENT, _LEAST_WAVES = 32, 4
# A shorter kernel has no work to spread: an empty one takes about 2 µs on an H100.
_SHORTEST_NS = 10_000
_EMPTY_NS = 2_000
# Compilers whose launches are the program's, and names of kernels without C++, as of CuPy's
# `RawKernel`.
_COMPILERS = re.compile(r"[/\\](cupyx[/\\]jit|numba[/\\]cuda|numba_cuda)[/\\]")
_PLAIN = re.compile(r"\w+$")


@dataclass(frozen=True, eq=False, slots=True)
class NarrowBlocks:
    """Launches of a kernel of the program, by one line, in many blocks of less than a warp.

    Attributes:
        work: The activities, as a `Schedule` numbers them.
        threads: The most threads of their blocks.
        blocks: How many blocks each launch has, typically.
        with_full_warps: How long they would take if all lanes of their warps worked, in ns.
    """

    work: np.ndarray
    threads: int
    blocks: int
    with_full_warps: np.ndarray


def narrow_blocks(schedule: Schedule, device: int, least_ns: float) -> Iterator[NarrowBlocks]:
    """Yield the kernels of a device in blocks of fewer than 32 threads, longest first.

    The program launches them itself, they use no shared memory, by which a block's threads could
    depend on how many they are, and there are several times as many blocks as the GPU runs at
    once. A warp is of one block, so that the other lanes do nothing.

    With full warps, they take a share of the time, but not less than their arrays take at the
    memory's bandwidth.

    Args:
        schedule: The schedule.
        device: Ordinal.
        least_ns: How long launches of a kernel by one line take together, at least.
    """
    recording = schedule.recording
    least = schedule.multiprocessors.get(device, 0) * _RESIDENT * _LEAST_WAVES
    if not least:
        return
    threads = _threads(recording, schedule.rows)
    chosen = np.flatnonzero(
        (schedule.device == device)
        & (schedule.kind == KERNEL)
        & (schedule.duration >= _SHORTEST_NS)
        & (schedule.blocks >= least)
        & (threads > 0)
        & (threads < WARP)
    )
    chosen = chosen[_are_of_program(schedule, chosen)]
    if not len(chosen):
        return
    names = plain(recording.tables["activities"]["name"])[schedule.rows[chosen]]
    lines = line_numbers(recording, stacks_of(recording.tables, schedule.call[chosen]))
    keys = lines * len(chosen) + text_numbers(recording.tables, names)
    number = np.unique(keys, return_inverse=True)[1].ravel()
    totals = np.bincount(number, schedule.duration[chosen])
    for group in np.argsort(-totals, kind="stable").tolist():
        if totals[group] < least_ns:
            return
        work = chosen[number == group]
        spent = (schedule.duration[work] * threads[work] / WARP).astype(np.int64)
        spent = np.maximum(spent, _memory_ns(schedule, device, work))
        spent = np.minimum(np.maximum(spent, _EMPTY_NS), schedule.duration[work])
        blocks = int(np.median(schedule.blocks[work]))
        yield NarrowBlocks(work, int(threads[work].max()), blocks, spent)


def _threads(recording: RecordingData, rows: np.ndarray) -> np.ndarray:
    """Return the threads per block of activities without shared memory; 0 of others."""
    table = recording.tables["launch_configurations"]
    shared = plain(table["static_shared_memory"]) + plain(table["dynamic_shared_memory"])
    launches = plain(recording.tables["activities"]["launch"])[rows]
    has_none = np.append(shared == 0, False)[first_rows(plain(table["id"]), launches)]
    threads: np.ndarray = np.where(has_none, block_threads(recording, rows), 0)
    return threads


def _are_of_program(schedule: Schedule, work: np.ndarray) -> np.ndarray:
    """Return whether the program launches each kernel itself, so that it chooses the blocks."""
    recording = schedule.recording
    names = plain(recording.tables["activities"]["name"])[schedule.rows[work]]
    is_plain = are_named(recording.tables, names, _PLAIN.match)
    is_plain &= ~are_named(recording.tables, names, OF_LIBRARIES.search)
    stacks, place = np.unique(stacks_of(recording.tables, schedule.call[work]), return_inverse=True)
    compiled, own = np.zeros(len(stacks), bool), np.zeros(len(stacks), bool)
    for row, stack in enumerate(stacks.tolist()):
        frames = recording.call_stacks.frames(stack)
        inner = list(takewhile(lambda frame: frame.is_installed, frames))
        compiled[row] = bool(inner) and all(_COMPILERS.search(each.filename) for each in inner)
        own[row] = not inner and bool(frames)
    found: np.ndarray = compiled[place.ravel()] | (own[place.ravel()] & is_plain)
    return found


def _memory_ns(schedule: Schedule, device: int, work: np.ndarray) -> np.ndarray:
    """Return how long the memory takes for the arrays of some kernels, each once, in ns."""
    used, possible = schedule.touches, possible_bandwidth(schedule.recording, device)
    moved = np.zeros(len(schedule.rows))
    if used is not None and possible:
        rows = np.flatnonzero(np.isin(used.activity, schedule.rows[work]))
        pairs = np.unique(np.stack([used.activity[rows], used.block[rows]]), axis=1)
        np.add.at(moved, schedule.number[pairs[0]], used.blocks.requested[pairs[1]])
        moved *= 1e9 / possible
    spent: np.ndarray = moved[work].astype(np.int64)
    return spent
