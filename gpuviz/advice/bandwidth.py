"""What the kernels of a device read and write in a second, against what its memory can do."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.analysis.launches import durations
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

_KINDS = DICTIONARIES["activities", "kind"]
_MODES = DICTIONARIES["launch_blocks", "mode"]
# Of the time of kernels, whose bytes have to be known.
_LEAST_KNOWN = 0.5
# A shorter kernel does not wait for memory (measured on an H100).
_SHORTEST_NS = 5_000
# Of the rate that clock and width allow; copies on an H100 reach 0.9 of it.
_BOUND = 0.6


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


def bandwidth(recording: "RecordingData", device: int) -> Bandwidth | None:
    """Return the memory traffic of a device's kernels of 5 µs or more.

    The bytes of a kernel are known if it accesses all elements of each of its arrays, as CuPy's
    elementwise functions and reductions do. None if less than half of the time of such kernels is
    that of known ones, if the device's bandwidth is unknown, or if caches serve so much that the
    kernels exceed it.
    """
    tables = recording.tables
    devices, activities, touched = (
        tables[name] for name in ("devices", "activities", "launch_blocks")
    )
    rows = np.flatnonzero(plain(devices["id"]) == device)
    possible = int(plain(devices["memory_bandwidth"])[rows[0]]) if len(rows) else 0
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
