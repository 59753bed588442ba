"""What the kernels of a device read and write in a second, against what its memory can do."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.replay.trace import blocks_of
from gpuviz.analysis.kernels import short_name
from gpuviz.analysis.launches import calls_of, durations, text_numbers
from gpuviz.analysis.lifetimes import lifetimes
from gpuviz.analysis.touches import alive
from gpuviz.data.codes import FRAMEWORKS
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_MODES = DICTIONARIES["launch_blocks", "mode"]
# Of the time of kernels, whose bytes have to be known.
_LEAST_KNOWN = 0.5
# A shorter kernel does not wait for memory (measured on an H100).
_SHORTEST_NS = 5_000
# Of the rate that clock and width allow; copies on an H100 reach 0.9 of it.
_BOUND = 0.6
# Kernels of libraries, of which the program does not decide how they access memory.
OF_LIBRARIES = re.compile(
    r"gem[mv]|nvjet|cutlass|cudnn|cub::|thrust|fft|conv|fmha|flash|nccl|xmma|^at::|\bat::native|^cupy",
    re.IGNORECASE,
)
_JAX = FRAMEWORKS.index("jax")
# Launches of a kernel whose arrays are looked up.
_MOST_LAUNCHES = 64
_SHORTEST_NAMED_NS = 20_000


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """The memory traffic of kernels.

    Attributes:
        reached: Bytes per second that they read and write.
        possible: Bytes per second that the device's memory can do.
    """

    reached: float
    possible: float

    @property
    def is_limit(self) -> bool:
        """Whether memory limits the kernels."""
        return self.reached >= _BOUND * self.possible

    def __str__(self) -> str:
        unit, name = (1e12, "TB/s") if self.possible >= 1e12 else (1e9, "GB/s")  # noqa: PLR2004
        return f"{self.reached / unit:.2f} of {self.possible / unit:.2f} {name}"


def bandwidth(recording: RecordingData, device: int) -> Bandwidth | None:
    """Return the memory traffic of a device's kernels of 5 µs or more.

    The bytes of a kernel are known if it accesses all elements of each of its arrays, as CuPy's
    elementwise functions and reductions do. None if less than half of the time of such kernels is
    that of known ones, if the device's bandwidth is unknown, or if caches serve so much that the
    kernels exceed it.
    """
    tables = recording.tables
    activities, touched = (tables[name] for name in ("activities", "launch_blocks"))
    possible = possible_bandwidth(recording, device)
    if not possible:
        return None
    spent = durations(activities, recording.bounds)
    kernels = np.flatnonzero(
        (codes(activities["kind"], _KINDS) == _KINDS.index("kernel"))
        & (plain(activities["device"]) == device)
        & (spent >= _SHORTEST_NS)
    )
    sizes, modes = plain(touched["bytes"]), codes(touched["mode"], _MODES)
    launch = first_rows(plain(activities["correlation"])[kernels], plain(touched["correlation"]))
    launch, seen = launch[launch >= 0], launch >= 0
    is_known = (sizes > 0) & (modes != _MODES.index("unknown"))
    times = np.where(modes == _MODES.index("read_write"), 2, 1)
    unknown = np.bincount(launch, ~is_known[seen], minlength=len(kernels))
    moved = np.bincount(launch, (sizes * times)[seen], minlength=len(kernels))
    known = (moved > 0) & (unknown == 0)
    of_known = int(spent[kernels][known].sum())
    if not of_known or of_known < _LEAST_KNOWN * spent[kernels].sum():
        return None
    reached = float(moved[known].sum()) * 1e9 / of_known
    return Bandwidth(reached, possible) if reached <= possible else None


@dataclass(frozen=True, slots=True)
class Use:
    """What a kernel would read and write in a second if it used each of its arrays once.

    Attributes:
        kernel: Its short name.
        bandwidth: The bytes of its arrays in the time that it takes.
    """

    kernel: str
    bandwidth: Bandwidth


def use_once(recording: RecordingData, activities: np.ndarray) -> Use | None:
    """Return what the longest of some kernels moves at most if it uses each array once.

    None if that kernel is a library's, takes less than 20 µs, has so few blocks that most
    multiprocessors are idle, does not name its arrays, or if they are too large to be used as a
    whole.

    Args:
        recording: The recording.
        activities: Rows of ``activities`` of one device.
    """
    tables = recording.tables
    table, touched = tables["activities"], tables["launch_blocks"]
    is_kernel = codes(table["kind"], _KINDS)[activities] == _KINDS.index("kernel")
    kernels = activities[is_kernel]
    if not len(kernels):
        return None
    names, spent = plain(table["name"])[kernels], durations(table, recording.bounds)[kernels]
    numbers = text_numbers(tables, names)
    longest = int(np.argmax(np.bincount(numbers, spent)))
    kernels, spent = (each[numbers == longest][:_MOST_LAUNCHES] for each in (kernels, spent))
    name = texts(tables, plain(table["name"])[kernels[:1]])[0]
    possible = possible_bandwidth(recording, int(plain(table["device"])[kernels[0]]))
    if not possible or OF_LIBRARIES.search(name) or spent.mean() < _SHORTEST_NAMED_NS:
        return None
    if _is_narrow(recording, kernels):
        return None
    launches = plain(table["correlation"])[kernels]
    rows = np.flatnonzero(np.isin(plain(touched["correlation"]), launches))
    launch = first_rows(launches, plain(touched["correlation"])[rows])
    calls = calls_of(tables, launches[launch])
    blocks = lifetimes(recording)
    times = plain(tables["api_calls"]["time"])[calls]
    block = alive(blocks, plain(touched["block"])[rows], times)
    if not len(rows) or (calls < 0).any() or (block < 0).any():
        return None
    frameworks = codes(tables["memory_events"]["framework"], FRAMEWORKS)
    if (frameworks[blocks.alloc[block]] == _JAX).any():
        return None
    _, once = np.unique(launch * len(blocks) + block, return_index=True)
    named = np.bincount(launch[once], minlength=len(launches)) > 0
    moved = int(blocks.requested[block[once]].sum())
    reached = moved * 1e9 / int(spent[named].sum())
    return Use(short_name(name), Bandwidth(reached, possible)) if reached <= possible else None


def _is_narrow(recording: RecordingData, kernels: np.ndarray) -> bool:
    """Return whether a kernel has less than half as many blocks as the GPU has multiprocessors."""
    tables = recording.tables
    launch, devices = (plain(tables["activities"][name])[kernels] for name in ("launch", "device"))
    blocks = int(blocks_of(tables["launch_configurations"], launch).max())
    of_device = plain(tables["devices"]["id"]) == devices[0]
    multiprocessors = int(plain(tables["devices"]["multiprocessors"])[of_device].max(initial=0))
    return 0 < 2 * blocks <= multiprocessors


def possible_bandwidth(recording: RecordingData, device: int) -> int:
    """Return what a device's memory can do, in bytes per second; 0 if unknown."""
    devices = recording.tables["devices"]
    rows = np.flatnonzero(plain(devices["id"]) == device)
    return int(plain(devices["memory_bandwidth"])[rows[0]]) if len(rows) else 0
