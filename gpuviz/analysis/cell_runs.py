"""What each run of a notebook cell cost."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.span_costs import busy_ns, peak_bytes
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["ranges", "kind"]
_NAME = re.compile(r"In \[(\d+)\]$")


@dataclass(frozen=True, slots=True)
class CellRun:
    """One run of a notebook cell.

    Attributes:
        number: The execution count.
        duration_ns: From the cell's first to its last line, or to the end of the recording.
        peak_bytes: Most bytes allocated meanwhile, on the device with the most.
        busy_ns: The time in which an activity ran on the busiest device; None if streams were not
            recorded.
    """

    number: int
    duration_ns: int
    peak_bytes: int
    busy_ns: int | None


def cell_runs(recording: RecordingData, *, streams: bool) -> list[CellRun]:
    """Return the cells that ran in a recording and used memory or the GPU, in their order.

    A cell that is still running ends with the recording. Cells inside other cells are left out.

    Args:
        recording: The recording.
        streams: Whether GPU activities were recorded.
    """
    ranges, (first, last) = recording.tables["ranges"], recording.time_range
    is_cell = codes(ranges["kind"], _KINDS) == _KINDS.index("cell")
    rows = np.flatnonzero(is_cell & (plain(ranges["parent"]) == 0))
    rows = rows[np.argsort(plain(ranges["time"])[rows], kind="stable")]
    begins, ends = plain(ranges["time"])[rows], plain(ranges["end"])[rows]
    begins = np.clip(begins, first, last)
    ends = np.clip(np.where(ends < 0, last, ends), begins, last)
    activities = recording.tables["activities"]
    events = recording.tables["memory_events"].slice(recording.manifest.initial_events)
    happened = [plain(events["time"]), plain(activities["time"])]
    times = np.sort(np.concatenate(happened))
    has_used = np.searchsorted(times, begins) < np.searchsorted(times, ends, side="right")
    names = texts(recording.tables, plain(ranges["name"])[rows])
    found = [_NAME.match(name) for name in names]
    is_known = np.array([each is not None for each in found], bool)
    chosen = np.flatnonzero(has_used & is_known)
    if not chosen.size:
        return []
    begins, ends = begins[chosen], ends[chosen]
    peaks, busy = (
        np.max([cost(recording, each, begins, ends) for each in recording.devices], axis=0).tolist()
        for cost in (peak_bytes, busy_ns)
    )
    numbers = [int(match[1]) for match in found if match is not None and match[1]]
    known = np.array(numbers)[np.cumsum(is_known)[chosen] - 1].tolist()
    return [
        CellRun(*row) if streams else CellRun(*row[:3], None)
        for row in zip(known, (ends - begins).tolist(), peaks, busy, strict=True)
    ]
