"""What recording cost a program on its host threads: when, and how much."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuviz.advice.replay.trace import Trace
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.intervals import Intervals
from gpuviz.data.codes import OWN_THREADS
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

# Threads, and when something began and ended in them.
_Spans = tuple[np.ndarray, np.ndarray, np.ndarray]

_GRAPH = "graph_node"
# Kinds of calls in `Manifest.costs`, by the start of their names; others cost as much as a wait.
_KINDS = {
    "cuLaunch": "launch",
    "cuGraphLaunch": _GRAPH,
    "cuMemcpyDtoH": "read_back",
    "cuMemcpy": "copy",
    "cuMemset": "copy",
    "cuEventRecord": "event_record",
    "cuStreamWaitEvent": "stream_wait",
    "cuModuleLoad": "module_load",
    "cuModuleUnload": "module_unload",
    "cuMemAlloc_": "allocation",
    "cuMemFree_": "release",
}
# How many times as much as in a launch CUPTI takes in calls whose cost is not measured. On an
# H200's host with CUDA 13.0 a launch took 1.3 µs more with all records, the load of a module 8.5
# and its removal 2.2, an allocation by the driver 3.6 to 16, and its release 0.5 to 5.4.
_IN_LAUNCHES = {"module_load": 6, "module_unload": 2, "allocation": 4, "release": 2}
_OTHER = "synchronize"
# What older files lack.
_SIMILAR = {"read_back": "copy", _GRAPH: "launch"}
_CALLS_WITHOUT_ROW = "other_calls"
_EVENT = "memory_event"
_DURATION = "launch_duration"
_GAP = "graph_gap"
_LONGEST = 2**60
_MOST_SCALE = 2.0
_OVERHEADS = DICTIONARIES["overheads", "kind"]
# What CUPTI does for itself; loading code and waiting for room in a queue are the program's.
_OF_CUPTI = [
    _OVERHEADS.index(kind)
    for kind in ("buffer_flush", "instrumentation", "resource", "activity_buffer_request")
]
_STATES = DICTIONARIES["host_samples", "state"]
# Between two samples of a thread.
_SAMPLED_NS = 1_000_000


def _tracing_costs(trace: Trace, names: np.ndarray, kinds: list[str], part: float) -> np.ndarray:
    """Return what CUPTI cost in each call of ``api_calls``, in ns.

    Where the program's launches take longer than they did when costs were measured, as on a busy
    machine, so does CUPTI; up to twice as long, because launches also wait for a full queue.

    Args:
        trace: The recording's calls.
        names: A number for the name of each call.
        kinds: The kind of each name in `Manifest.costs`.
        part: Where in the intervals of `Manifest.costs` the costs are: 0 at the low end, 1 at the
            high one.
    """
    is_launch = np.array([kind == "launch" for kind in kinds], bool)[names]
    launches = (trace.returned - trace.called)[is_launch]
    costs = trace.recording.manifest.costs
    low, high = (_scale(launches, costs, end) for end in (0, 1))
    known = [_known(costs, kind) for kind in kinds]
    of_names = [round((1 - part) * low * each[0] + part * high * each[1]) for each in known]
    of_calls: np.ndarray = np.array(of_names, np.int64)[names]
    if _GRAPH in costs:
        is_graph = np.array([kind == _GRAPH for kind in kinds], bool)[names]
        nodes = np.bincount(trace.call[trace.call >= 0], minlength=len(names))
        of_calls[is_graph] *= np.maximum(nodes[is_graph], 1)
    return of_calls


def _known(costs: Mapping[str, Any], kind: str) -> tuple[int, int]:
    """Return the least and the most that CUPTI costs a call of a kind, in ns; 0 if unknown."""
    if kind in costs:
        low, high = costs[kind]
        return low, high
    times = _IN_LAUNCHES.get(kind, 1)
    low, high = costs.get("launch" if kind in _IN_LAUNCHES else _SIMILAR.get(kind, kind), (0, 0))
    return times * low, times * high


def _kinds(trace: Trace) -> tuple[np.ndarray, list[str]]:
    """Return a number for the name of each call, and the kind of each name in `Manifest.costs`."""
    ids = plain(trace.recording.tables["api_calls"]["name"])
    names, first = numbered(ids)
    return names, [_kind(text) for text in texts(trace.recording.tables, ids[first])]


def _most_inside(trace: Trace, names: np.ndarray, kinds: list[str]) -> np.ndarray:
    """Return how much of each call can have been CUPTI's, in ns; see `HostCosts`.

    For a graph, CUPTI takes time for each node, so that little of a long call may be left.
    """
    length: np.ndarray = trace.returned - trace.called
    least = length - length * 2 // 3
    _, of_launch = trace.recording.manifest.costs.get(_DURATION, (0, _LONGEST))
    is_graph = np.array([kind == _GRAPH for kind in kinds], bool)[names]
    most: np.ndarray = length - np.where(is_graph, np.minimum(least, of_launch), least)
    return most


def _scale(launches: np.ndarray, costs: Mapping[str, Any], end: int) -> float:
    """Return how many times as long launches take as when the costs were measured."""
    if _DURATION not in costs or not len(launches):
        return 1.0
    scale = float(np.median(launches)) / max(int(costs[_DURATION][end]), 1)
    return min(max(scale, 1 / _MOST_SCALE), _MOST_SCALE)


def _kind(call: str) -> str:
    return next((kind for start, kind in _KINDS.items() if call.startswith(start)), _OTHER)


def _within(costs: Mapping[str, Any], kind: str, part: float) -> int:
    """Return a cost in ns of what has no kind of calls."""
    low, high = map(int, costs.get(kind, (0, 0)))
    return round((1 - part) * low + part * high)


def _of_tracer(recording: RecordingData) -> _Spans:
    """Return when CUPTI worked for itself in a thread of the program, as it says."""
    rows = recording.tables["overheads"]
    kinds = codes(rows["kind"], _OVERHEADS)
    chosen = np.isin(kinds, _OF_CUPTI) & (plain(rows["thread"]) != 0)
    chosen &= plain(rows["end"]) > plain(rows["time"])
    thread, begin, end = (plain(rows[name])[chosen] for name in ("thread", "time", "end"))
    return thread, begin, end


def _of_own_threads(recording: RecordingData, part: float) -> _Spans:
    """Return when threads waited for the GIL that gpuviz's own threads had, as they were sampled.

    When such a wait began and ended is known to half the time between two samples.
    """
    tables = recording.tables
    threads = tables["threads"].to_pylist()
    own = [row["id"] for row in threads if row["name"].startswith(OWN_THREADS)]
    rows = tables["host_samples"]
    chosen = codes(rows["state"], _STATES) == _STATES.index("gil")
    chosen &= np.isin(plain(rows["holder"]), own)
    thread, begin, end = (plain(rows[name])[chosen] for name in ("thread", "time", "end"))
    cut = np.minimum(round((1 - part) * _SAMPLED_NS / 2), (end - begin) // 2)
    return thread, begin + cut, end - cut


class HostCosts:
    """What recording cost each thread of a recording up to any time.

    A cost of CUPTI is within its call as far as it leaves a third of it, or of a graph the time of
    a launch, and the rest after it;
    what gpuviz did after a call is there, too, and the cost of an event of an allocator is at its
    time. While CUPTI works for itself in a thread, or a thread waits for the GIL that one of
    gpuviz's own has, all time is a cost.

    Args:
        trace: The recording's calls.
        part: Where in the intervals of `Manifest.costs` the costs are: 0 at the low end, 1 at the
            high one.

    Attributes:
        tracing: What CUPTI cost each call, in ns.
        inside: The part of it that is within the call.
        overhead: What CUPTI took for itself beside that, in ns, all together.
        own: What gpuviz cost after each call, at each event and by the GIL, in ns, all together.
        graph_gap: How much later a kernel of a graph began after the one before, in ns.
    """

    def __init__(self, trace: Trace, part: float) -> None:
        recording = trace.recording
        names, kinds = _kinds(trace)
        self.tracing = _tracing_costs(trace, names, kinds, part)
        self.inside = np.minimum(self.tracing, _most_inside(trace, names, kinds))
        after = plain(recording.tables["api_calls"]["own_cost"]).astype(np.int64)
        known = recording.manifest.costs
        event, self.graph_gap = (_within(known, kind, part) for kind in (_EVENT, _GAP))
        self.tracing += _within(known, _CALLS_WITHOUT_ROW, part)
        times, threads = [trace.returned, trace.returned + 1], [trace.thread, trace.thread]
        costs = [self.inside, after + self.tracing - self.inside]
        for name in ("memory_events", "host_memory_events"):
            events = recording.tables[name]
            times.append(plain(events["time"]))
            threads.append(trace.group_of(plain(events["thread"])))
            costs.append(np.full(events.num_rows, event))
        self.own = int(after.sum()) + sum(int(each.sum()) for each in costs[2:])
        time, thread, cost = (np.concatenate(each) for each in (times, threads, costs))
        order = np.lexsort((time, thread))
        self._time, self._thread = time[order], thread[order]
        self._until = np.concatenate([[0], np.cumsum(cost[order])])
        of_tracer, of_own = _of_tracer(recording), _of_own_threads(recording, part)
        self.overhead, held = (int((end - begin).sum()) for _, begin, end in (of_tracer, of_own))
        self.own += held
        spent, begin, end = map(np.concatenate, zip(of_tracer, of_own, strict=True))
        groups = trace.group_of(spent)
        self._spans = {
            each: Intervals(begin[groups == each], end[groups == each])
            for each in np.unique(groups).tolist()
        }

    def between(self, threads: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return what recording cost threads after one time and until another, in ns."""
        spent: np.ndarray = self._spent(threads, end) - self._spent(threads, begin)
        for thread, spans in self._spans.items():
            own = threads == thread
            spent[own] += spans.within(begin[own], end[own])
        return spent

    def _spent(self, threads: np.ndarray, times: np.ndarray) -> np.ndarray:
        spent = np.zeros(len(times), np.int64)
        for thread in np.unique(threads).tolist():
            first, last = np.searchsorted(self._thread, [thread, thread + 1])
            of_thread = threads == thread
            places = np.searchsorted(self._time[first:last], times[of_thread], side="right")
            spent[of_thread] = self._until[first + places]
        return spent
