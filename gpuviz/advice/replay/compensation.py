"""A recording as if the program had not been recorded: without what recording cost it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.replay.constraints import GAP, LAUNCHED, NESTED, OWN
from gpuviz.advice.replay.recording_costs import HostCosts
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.processes import processes
from gpuviz.analysis.time_map import TimeMap
from gpuviz.analysis.unseen import is_whole
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import codes, plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_Move = Callable[[np.ndarray], np.ndarray]

_NOTE = "Times are those of the program as if it had not been recorded."
_SYNCHRONIZATIONS = DICTIONARIES["synchronizations", "kind"]
_TIMES = {"time", "end", "created", "destroyed"}
# Whose times are those of calls and of the GPU.
_CALLED = ("api_calls", "activities", "synchronizations")
# Whose times are those of the GPU.
_OF_WORK = ("activities", "idle_gaps")
_WORK = (("activities", "time"), ("activities", "end"))
_CALLS = (("api_calls", "time"), ("api_calls", "end"), ("memory_events", "time"))
# Where costs are known as intervals: what is shown lies in the middle.
_LEAST, _SHOWN, _MOST = 0.0, 0.5, 1.0


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """What recording cost a program.

    Attributes:
        recorded_ns: The time from its first launch to the end of its last work, as recorded.
        compensated_ns: The same as if it had not been recorded.
        least_ns: The least that it can have been, as far as costs are known.
        most_ns: The most that it can have been.
        own_ns: What gpuviz took on the program's threads.
        tracing_ns: What CUPTI took there.
    """

    recorded_ns: int
    compensated_ns: int
    least_ns: int
    most_ns: int
    own_ns: int
    tracing_ns: int

    @property
    def cost_ns(self) -> int:
        """By how much recording made the program longer."""
        return self.recorded_ns - self.compensated_ns


@dataclass(frozen=True, eq=False, slots=True)
class _Compensated:
    """A recording without what recording cost, and the recorded times of its work and calls."""

    recording: RecordingData
    work: TimeMap
    calls: TimeMap
    cost: RecordingCost


def compensated(recording: RecordingData) -> RecordingData:
    """Return a recording as if the program had not been recorded.

    Each call and each event of an allocator takes less time on its thread, by what recording it
    cost. What waited for it moves, as in the replay that predicts savings; work on the GPU takes as
    long as recorded, and all orders stay. Rows are those of the recording.

    The recording itself if its costs are not known, as those of an older file, if it is merged, or
    if streams were recorded in windows.
    """
    found = _compensated(recording)
    return recording if found is None else found.recording


def recording_cost(recording: RecordingData) -> RecordingCost | None:
    """Return what recording cost a program; None if that is not known."""
    found = _compensated(recording)
    return None if found is None else found.cost


def recorded_evidence(recording: RecordingData, evidence: Evidence) -> Evidence:
    """Return where a recording has what shows a finding about the compensated one."""
    found = _compensated(recording)
    if found is None:
        return evidence
    rows = evidence.rows
    if evidence.table == "idle_gaps":
        rows = _same_gaps(found.recording, recording, rows)
    window = np.array(evidence.window)
    times = found.work if evidence.table in _OF_WORK else found.calls
    begin, end = int(times.earliest(window)[0]), int(times(window)[1])
    return replace(evidence, rows=rows, window=(begin, end))


def _same_gaps(one: RecordingData, other: RecordingData, rows: tuple[int, ...]) -> tuple[int, ...]:
    """Return the idle times of devices that end with the same work as some of another recording."""
    before = plain(derived(one)["idle_gaps"]["activity"])[np.array(rows, np.int64)]
    gaps = derived(other)["idle_gaps"]
    same = np.isin(plain(gaps["activity"]), before) & (plain(gaps["stream"]) == 0)
    return tuple(np.flatnonzero(same).tolist())


@Once
def _compensated(recording: RecordingData) -> _Compensated | None:
    calls = recording.tables["api_calls"]
    if not recording.manifest.costs or not calls.num_rows or processes(recording):
        return None
    if not is_whole(recording.tables):
        return None
    schedule = Schedule(recording)
    costs = HostCosts(schedule, _SHOWN)
    moved = _times(schedule, costs)
    least, most = (
        _covered(schedule, _times(schedule, HostCosts(schedule, part))) for part in (_MOST, _LEAST)
    )
    cost = RecordingCost(
        recorded_ns=_covered(schedule, schedule.moments.times),
        compensated_ns=_covered(schedule, moved),
        least_ns=least,
        most_ns=most,
        own_ns=costs.own,
        tracing_ns=int(costs.tracing.sum()) + costs.overhead,
    )
    made = _Moved(schedule, moved).recording()
    work, calls = (_recorded(recording, made, columns) for columns in (_WORK, _CALLS))
    return _Compensated(made, work, calls, cost)


def _recorded(
    recording: RecordingData, moved: RecordingData, columns: tuple[tuple[str, str], ...]
) -> TimeMap:
    """Return the recorded times of some columns by those of another recording."""
    before, after = (
        np.concatenate([plain(each.tables[name][column]) for name, column in columns])
        for each in (recording, moved)
    )
    return TimeMap(after, before)


def _covered(schedule: Schedule, times: np.ndarray) -> int:
    """Return the time from the first call to the end of the last call or work."""
    moments = schedule.moments
    last = max(
        int((times[moments.begun] + schedule.duration).max(initial=0)),
        int(times[moments.end].max(initial=0)),
    )
    return last - int(times.min(initial=last))


def _times(schedule: Schedule, costs: HostCosts) -> np.ndarray:
    """Return when each moment of a schedule would have been without some costs."""
    constraints, recorded = schedule.constraints, schedule.moments.times
    target, lag = constraints.target.astype(np.int64), constraints.lag.copy()
    calls = constraints.call
    until = recorded[target]
    # What recording cost in a call that waited was before the end of what it waited for.
    is_own = constraints.work == OWN
    is_own[is_own] = (lag == until - recorded[constraints.source])[is_own]
    host = np.flatnonzero(is_own | np.isin(constraints.work, (GAP, NESTED)))
    spent = costs.between(schedule.thread[calls[host]], (until - lag)[host], until[host])
    # A cost estimated too high must not make calls simultaneous: the first use of a block is the
    # earliest.
    lag[host] = np.where(spent > lag[host], np.minimum(lag[host], 1), lag[host] - spent)
    launches = np.flatnonzero(constraints.work == LAUNCHED)
    lag[launches] = np.maximum(lag[launches] - costs.inside[constraints.call[launches]], 0)
    _shorten_graphs(schedule, lag, costs.graph_gap)
    return schedule.times_behind_host(lag)


def _shorten_graphs(schedule: Schedule, lag: np.ndarray, gap: int) -> None:
    """Shorten the time between kernels of a graph, launched at once, by a gap in `lag`."""
    constraints = schedule.constraints
    begun = np.full(len(schedule.moments.times), -1)
    begun[schedule.moments.begun] = np.arange(len(schedule.moments.begun))
    later = begun[constraints.target]
    known = np.flatnonzero((constraints.work >= 0) & (later >= 0))
    before, later = constraints.work[known], later[known]
    is_of_graph = plain(schedule.recording.tables["activities"]["graph"])[schedule.rows] > 0
    call = schedule.call
    inside = is_of_graph[later] & (call[later] >= 0) & (call[before] == call[later])
    shortened = np.maximum(lag[known] - gap, np.minimum(lag[known], schedule.duration[before]))
    lag[known] = np.where(inside, shortened, lag[known])


class _Moved:
    """The tables of a recording with other times.

    Args:
        schedule: The recording's schedule.
        times: When each moment of the schedule is to be.
    """

    def __init__(self, schedule: Schedule, times: np.ndarray) -> None:
        moments, self._schedule = schedule.moments, schedule
        self._tables = schedule.recording.tables
        self._called, self._returned = times[moments.start], times[moments.end]
        self._shift = schedule.begin - times[moments.begun]
        self._device = TimeMap(
            np.concatenate([schedule.begin, schedule.end]),
            np.concatenate([schedule.begin, schedule.end]) - np.tile(self._shift, 2),
        )
        after = plain(self._tables["api_calls"]["own_cost"])
        self._threads = {
            each: self._of_thread(schedule.thread == each, after)
            for each in np.unique(schedule.thread).tolist()
        }

    def _of_thread(self, calls: np.ndarray, after: np.ndarray) -> TimeMap:
        """Return what the times of a thread become; what gpuviz did after a call takes no time."""
        called, returned = self._schedule.called[calls], self._schedule.returned[calls]
        before = np.concatenate([called, returned, returned + after[calls]])
        own = self._returned[calls]
        return TimeMap(before, np.concatenate([self._called[calls], own, own]))

    def recording(self) -> RecordingData:
        """Return the recording with these times."""
        recording = self._schedule.recording
        tables = dict(self._tables)
        tables["api_calls"] = with_columns(
            tables["api_calls"], time=self._called, end=self._returned
        )
        tables["activities"] = self._activities()
        tables["synchronizations"] = self._synchronizations()
        tables |= {
            name: self._timed(table)
            for name, table in self._tables.items()
            if name not in _CALLED and _TIMES & set(table.schema.names)
        }
        manifest = recording.manifest
        bounds = np.array([manifest.duration_ns, *(recording.bounds or (0, 0))])
        duration, first, last = self._main(bounds).tolist()
        window = {"window_start_ns": first, "window_end_ns": last} if recording.bounds else {}
        return RecordingData(
            tables,
            replace(
                manifest,
                duration_ns=duration,
                **window,
                costs={},
                notes=(*manifest.notes, _NOTE),
                tables={},
            ),
        )

    def _main(self, times: np.ndarray) -> np.ndarray:
        return self._threads[0](times)

    def _activities(self) -> pa.Table:
        table, number = self._tables["activities"], self._schedule.number
        begin, end = plain(table["time"]), plain(table["end"])
        shift = np.where(
            number >= 0, np.append(self._shift, 0)[number], begin - self._device(begin)
        )
        return with_columns(table, time=begin - shift, end=end - shift)

    def _synchronizations(self) -> pa.Table:
        """Return waits with the times of their calls; events were reached by the device."""
        table = self._tables["synchronizations"]
        moved = self._timed(table)
        is_record = codes(table["kind"], _SYNCHRONIZATIONS) == _SYNCHRONIZATIONS.index(
            "event_record"
        )
        columns = {
            name: np.where(is_record, _known(self._device, plain(table[name])), plain(moved[name]))
            for name in ("time", "end")
        }
        return with_columns(table, **columns)

    def _timed(self, table: pa.Table) -> pa.Table:
        """Return a table with the times of the threads, or of the calls, that its rows have."""
        if "thread" in table.schema.names:
            return self._of_groups(table, self._schedule.group_of(plain(table["thread"])))
        if "correlation" in table.schema.names:
            calls = calls_of(self._tables, plain(table["correlation"]))
            return self._of_groups(table, np.append(self._schedule.thread, 0)[calls])
        return _moved(table, self._main)

    def _of_groups(self, table: pa.Table, groups: np.ndarray) -> pa.Table:
        def move(times: np.ndarray) -> np.ndarray:
            moved = times.copy()
            for each in np.unique(groups).tolist():
                rows = groups == each
                moved[rows] = self._threads[each](times[rows])
            return moved

        return _moved(table, move)


def _moved(table: pa.Table, move: _Move) -> pa.Table:
    """Return a table with other times; those that are not known stay, and so does their order."""
    columns = {}
    for name in _TIMES & set(table.schema.names):
        before = plain(table[name])
        after = _known(move, before)
        is_ordered = name == "time" and bool((np.diff(before) >= 0).all())
        columns[name] = np.maximum.accumulate(after) if is_ordered else after
    return with_columns(table, **columns)


def _known(move: _Move, times: np.ndarray) -> np.ndarray:
    """Return what times become; 0 and less is no time, or the start of the recording."""
    return np.where(times > 0, move(times), times)
