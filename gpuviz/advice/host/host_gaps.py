"""The time between CUDA calls of a thread in which the GPU is idle."""

from dataclasses import dataclass

import numpy as np

from gpuviz.advice.replay.trace import MOST_SHOWN
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.preparation import prepares
from gpuviz.analysis.steady_state import within_cells
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_CAUSES = WORDS["idle_gaps", "cause"]
# A launch by CuPy takes 10 to 30 µs of Python, and some of its functions more than 100 µs now and
# then (measured on an H200's host); a longer gap contains other work.
LONG_NS = 250_000


@dataclass(frozen=True, slots=True)
class HostGaps:
    """For each CUDA call, the time since the previous call of its thread returned.

    Attributes:
        previous: The previous call's row; -1 if there is none.
        length: The gap's length in ns.
        idle: How long the device was idle in the gap because this thread had not launched, in ns.
        idle_in_call: The same during the call itself, in ns.
        is_first: Whether the next kernel that the thread launches is its name's first, or a kernel
            or a module is compiled or loaded before it: CuPy and CUDA's libraries prepare it then.
        is_in_cell: Whether the gap is within one notebook cell; without cells, everywhere.
    """

    previous: np.ndarray
    length: np.ndarray
    idle: np.ndarray
    idle_in_call: np.ndarray
    is_first: np.ndarray
    is_in_cell: np.ndarray

    @property
    def is_long(self) -> np.ndarray:
        """Whether the gap contains work of the program other than launching."""
        long: np.ndarray = (self.length >= LONG_NS) & ~self.is_first & self.is_in_cell
        return long

    @property
    def is_short(self) -> np.ndarray:
        """Whether the gap is what a launch costs on the host."""
        short: np.ndarray = (self.length < LONG_NS) & ~self.is_first & self.is_in_cell
        return short


@Once
def _known(_: RecordingData) -> dict[int, HostGaps]:
    return {}


def host_gaps(recording: RecordingData, device: int) -> HostGaps:
    """Return the gaps between calls, with the idle time of a device with the cause ``host``.

    They are computed once for each device of a recording.
    """
    known = _known(recording)
    if device not in known:
        known[device] = _host_gaps(recording, device)
    return known[device]


def _host_gaps(recording: RecordingData, device: int) -> HostGaps:
    calls = recording.tables["api_calls"]
    begin, end, threads = (plain(calls[name]) for name in ("time", "end", "thread"))
    order = np.argsort(begin, kind="stable")
    order = order[np.argsort(threads[order], kind="stable")]
    previous = np.full(len(begin), -1)
    same = threads[order[1:]] == threads[order[:-1]]
    previous[order[1:][same]] = order[:-1][same]
    known = previous >= 0
    since = begin.copy()
    since[known] = np.minimum(end[previous[known]], begin[known])
    idle, idle_in_call = np.zeros(len(begin), np.int64), np.zeros(len(begin), np.int64)
    gaps, late = derived(recording)["idle_gaps"], _late(recording, device)
    started, ended, activity = (plain(gaps[name])[late] for name in ("time", "end", "activity"))
    launches = plain(recording.tables["activities"]["correlation"])[activity]
    launching = calls_of(recording.tables, launches)
    for thread in distinct(threads):
        of_thread = (launching >= 0) & (threads[launching] == thread)
        without_work = Intervals(started[of_thread], ended[of_thread])
        rows = np.flatnonzero(threads == thread)
        idle[rows] = without_work.within(since[rows], begin[rows])
        idle_in_call[rows] = without_work.within(begin[rows], np.maximum(end[rows], begin[rows]))
    return HostGaps(
        previous=previous,
        length=begin - since,
        idle=idle,
        idle_in_call=idle_in_call,
        is_first=prepares(recording),
        is_in_cell=within_cells(recording, since, begin),
    )


def launching_idle(
    recording: RecordingData, device: int, from_ns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return which calls launch work after short gaps, and how long a device was idle for each.

    It was idle in the gap and during the call. A copy is no such work: a wait before it is none for
    a launch that a graph could make.

    Args:
        recording: The recording.
        device: Ordinal.
        from_ns: Calls before that do not count, in ns since the recording's start.
    """
    activities, calls = recording.tables["activities"], recording.tables["api_calls"]
    kinds = codes(activities["kind"], _KINDS)
    of_device = (plain(activities["device"]) == device) & (kinds != _KINDS.index("memcpy"))
    of_device &= kinds != _KINDS.index("range")
    launched = calls_of(recording.tables, plain(activities["correlation"])[of_device])
    launching = np.zeros(calls.num_rows, bool)
    launching[launched[launched >= 0]] = True
    launching &= plain(calls["time"]) >= from_ns
    gaps = host_gaps(recording, device)
    chosen = launching & gaps.is_short
    return chosen, np.where(chosen, gaps.idle, 0) + np.where(launching, gaps.idle_in_call, 0)


def longest_late(recording: RecordingData, device: int) -> tuple[int, ...]:
    """Return the rows of ``idle_gaps`` in which a device waited longest for the host's launch."""
    gaps, rows = derived(recording)["idle_gaps"], np.flatnonzero(_late(recording, device))
    length = (plain(gaps["end"]) - plain(gaps["time"]))[rows]
    longest = rows[np.argsort(-length, kind="stable")[:MOST_SHOWN]]
    return tuple(np.sort(longest).tolist())


def _late(recording: RecordingData, device: int) -> np.ndarray:
    """Return which rows of ``idle_gaps`` end with an activity that the host launched late."""
    gaps = derived(recording)["idle_gaps"]
    late: np.ndarray = (plain(gaps["device"]) == device) & (plain(gaps["stream"]) == 0)
    late &= codes(gaps["cause"], _CAUSES) == _CAUSES.index("host")
    return late & (plain(gaps["activity"]) >= 0)
