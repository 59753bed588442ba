"""The time of a device without its program's preparation and without the time between cells."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.main_loop import regular_from
from gpuviz.analysis.overlap import DeviceOverlap, whole_overlap
from gpuviz.analysis.preparation import PREPARATIONS, preparations
from gpuviz.analysis.processes import part_of_device
from gpuviz.analysis.repeated_compilations import times_of_repeated_compilations
from gpuviz.analysis.repeated_loads import times_of_repeated_loads
from gpuviz.analysis.span_costs import busy_before
from gpuviz.analysis.unseen import is_whole
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_RANGES = DICTIONARIES["ranges", "kind"]
_CAUSES = WORDS["idle_gaps", "cause"]
# What is left out besides the time between cells; the last is what none of the others explains.
WARM_UP = (*PREPARATIONS, "before the first iteration")
# Idle time that the host's preparation causes: it has not launched, or it allocates.
_OF_HOST = tuple(_CAUSES.index(cause) for cause in ("host", "allocation", "unknown"))


@dataclass(frozen=True, slots=True)
class SteadyState:
    """How long a device worked and was idle while its program worked, in ns.

    Attributes:
        device: Ordinal.
        window_ns: From the device's first activity to the end of its last, or the recording's own
            window.
        from_ns: When the first iteration began that takes as long as the others; without
            iterations, when the window begins.
        busy_ns: The time of the steady state in which an activity ran.
        warm_up_work_ns: The time before the first iteration in which an activity ran, if the
            iterations take longer and the device works in them; else it is part of the steady
            state.
        warm_up_ns: The idle time in which the host prepared, for each of `WARM_UP`.
        between_cells_ns: The idle time between notebook cells, in which nobody asked for work.
        causes_ns: The idle time of the steady state by cause, of those of
            `gpuviz.analysis.overlap.LaneOverlap`.
    """

    device: int
    window_ns: int
    from_ns: int
    busy_ns: int
    warm_up_work_ns: int
    warm_up_ns: tuple[int, ...]
    between_cells_ns: int
    causes_ns: Mapping[str, int]

    @property
    def left_out_ns(self) -> int:
        """The time that is not the steady state's."""
        return self.warm_up_work_ns + self.idle_left_out_ns

    @property
    def idle_left_out_ns(self) -> int:
        """The idle time that is not the steady state's."""
        return sum(self.warm_up_ns) + self.between_cells_ns

    @property
    def duration_ns(self) -> int:
        """The length of the steady state: the window without what is left out."""
        return self.window_ns - self.left_out_ns

    @property
    def idle_ns(self) -> int:
        """The part of the steady state in which no activity ran."""
        return self.duration_ns - self.busy_ns

    @property
    def host_ns(self) -> int:
        """The idle time in which the host had not launched."""
        return self.causes_ns["host"]

    @property
    def busy(self) -> float:
        """The share of the steady state in which an activity ran."""
        return self.busy_ns / max(self.duration_ns, 1)


def steady_state(recording: RecordingData, device: int) -> SteadyState | None:
    """Return the steady state of a device; None if no activity of it was recorded.

    What is left out is idle time that ends with work whose host thread compiled, loaded code or
    used it for the first time meanwhile, see `gpuviz.analysis.preparation`, but not again and
    again, see `gpuviz.analysis.repeated_loads` and `repeated_compilations`; that is before the
    first iteration of the main loop that takes as long as the others, or between notebook cells. A
    repeated run of the same program in a warm process has none of it. Work before that iteration is
    left out too, unless it takes longer than all that follows.
    """
    return _by_device(recording).get(device)


def steady_of(recording: RecordingData, device: int) -> SteadyState:
    """Return the steady state of a device with activities."""
    return _by_device(recording)[device]


@Once
def _by_device(recording: RecordingData) -> dict[int, SteadyState]:
    return {each.device: each for each in steady_states(recording)}


def steady_ns(recording: RecordingData) -> int:
    """Return the time that a recording covers without the idle time left out, in ns.

    All work of its devices belongs to it.
    """
    left_out = max((each.idle_left_out_ns for each in steady_states(recording)), default=0)
    return recording.covered_ns - left_out


@Once
def steady_states(recording: RecordingData) -> tuple[SteadyState, ...]:
    """Return the steady state of each device with activities."""
    return tuple(
        _steady_state(part_of_device(recording, lane.device), lane)
        for lane in whole_overlap(recording).devices
    )


def _steady_state(recording: RecordingData, lane: DeviceOverlap) -> SteadyState:
    gaps = derived(recording)["idle_gaps"]
    is_own = (plain(gaps["device"]) == lane.device) & (plain(gaps["stream"]) == 0)
    causes, asked = codes(gaps["cause"], _CAUSES), cells(recording)
    idle = {cause: np.flatnonzero(is_own & (causes == cause)) for cause in range(len(_CAUSES))}
    inside = {cause: _within(recording, rows, asked) for cause, rows in idle.items()}
    # A window may begin within an iteration.
    is_part = recording.bounds is not None or not is_whole(recording.tables)
    from_ns = None if is_part else regular_from(recording)
    from_ns = lane.start if from_ns is None else from_ns
    before = Intervals(np.array([min(lane.start, from_ns)]), np.array([from_ns]))
    prepared = {cause: _prepared(recording, idle[cause], before, asked) for cause in _OF_HOST}
    warm_up = np.sum([*prepared.values()], axis=0)
    between_cells_ns = max(lane.idle_ns - sum(inside.values()), 0) if asked else 0
    early_ns = busy_before(recording, lane.device, from_ns)
    is_longer = early_ns > lane.window_ns - early_ns - int(warm_up.sum()) - between_cells_ns
    if is_longer or early_ns >= lane.busy_ns:
        early_ns = 0
    return SteadyState(
        device=lane.device,
        window_ns=lane.window_ns,
        from_ns=from_ns,
        busy_ns=lane.busy_ns - early_ns,
        warm_up_work_ns=early_ns,
        warm_up_ns=tuple(warm_up.tolist()),
        between_cells_ns=between_cells_ns,
        causes_ns={
            _CAUSES[cause]: time - int(prepared[cause].sum() if cause in prepared else 0)
            for cause, time in inside.items()
        },
    )


def _within(recording: RecordingData, rows: np.ndarray, asked: Intervals | None) -> int:
    """Return the idle time in some rows of ``idle_gaps`` within cells, if there are cells."""
    begin, end = (plain(derived(recording)["idle_gaps"][name])[rows] for name in ("time", "end"))
    return int((end - begin if asked is None else asked.within(begin, end)).sum())


def _prepared(
    recording: RecordingData, rows: np.ndarray, before: Intervals, asked: Intervals | None
) -> np.ndarray:
    """Return the idle time in some rows of ``idle_gaps`` that is warm-up, by kind."""
    gaps = derived(recording)["idle_gaps"]
    rows = rows[plain(gaps["activity"])[rows] >= 0]
    launches = plain(recording.tables["activities"]["correlation"])[plain(gaps["activity"])[rows]]
    calls = calls_of(recording.tables, launches)
    rows, calls = rows[calls >= 0], calls[calls >= 0]
    threads = plain(recording.tables["api_calls"]["thread"])[calls]
    begin, end = (plain(gaps[name])[rows] for name in ("time", "end"))
    totals = np.zeros(len(WARM_UP), np.int64)
    for thread in np.unique(threads).tolist():
        chosen = threads == thread
        idle = Intervals(begin[chosen], end[chosen])
        idle = idle if asked is None else idle.common(asked)
        again = times_of_repeated_loads(recording, thread)
        again = again.joined(times_of_repeated_compilations(recording, thread))
        for kind, spans in enumerate(preparations(recording, thread)):
            found = idle.common(spans.without(again))
            totals[kind] += found.length
            idle = idle.without(found)
        totals[-1] += idle.common(before).length
    return totals


def within_cells(recording: RecordingData, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return which intervals are within notebook cells; all if no cell was recorded.

    Between cells the user thinks, and the program can do nothing about it.
    """
    asked = cells(recording)
    if asked is None:
        return np.ones(len(begin), bool)
    inside: np.ndarray = asked.within(begin, end) == end - begin
    return inside


def cells(recording: RecordingData) -> Intervals | None:
    """Return when notebook cells ran; None if none was recorded."""
    ranges = recording.tables["ranges"]
    are_cells = codes(ranges["kind"], _RANGES) == _RANGES.index("cell")
    if not are_cells.any():
        return None
    first, last = (plain(ranges[name])[are_cells] for name in ("time", "end"))
    return Intervals(first, np.where(last < first, recording.duration_ns, last))
