"""What the calls and the GPU work of a recording had to wait for."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.trace import COPY, KINDS
from gpuviz.analysis.classification import records_of
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.preparation import prepares
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.trace import Trace

    # Activities, and what comes after each of them.
    _Pairs = Iterator[tuple[NDArray[Any], NDArray[Any]]]

_WAITS = WORDS["host_waits", "kind"]
_SYNCHRONIZATIONS = DICTIONARIES["synchronizations", "kind"]
_STREAMS = DICTIONARIES["streams", "kind"]
# Used where a recording has no example: from a launch call to a kernel on an idle GPU, and from the
# end of a kernel to the next one of the stream, on an H100.
_LAUNCH_NS = 6_000
NEXT_NS = 1_000
# A stream has room for 1,022 launches (measured on an H100 and an H200); each of those after them
# waits for the end of one, and returns some µs later. Such a launch takes longer than others.
_LEAST_QUEUED, _LEAST_FACTOR, _MOST_RELEASE_NS = 1000, 3, 100_000
# Functions of the driver that free memory, for which they wait for the memory's device.
_FREE = re.compile(r"cuMemFree(Host)?(_v2)?$")
# Waits for all streams of a device consider at most this many.
_MOST_STREAMS = 64
NEVER = -(2**62)

# Values of `Constraints.call` between activities: why one came after the other.
BY_STREAM, BY_EVENT, BY_DEFAULT_STREAM = -1, -2, -3

# Values of `Constraints.work` other than activities.
GAP, NESTED, OWN, LAUNCHED = -1, -2, -3, -4


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints between moments, in columns.

    Attributes:
        source: The earlier moment.
        target: The later moment, ascending.
        lag: How long after the source, in ns.
        work: The activity at the source, whose duration is in the lag; negative without one.
        call: The call that waits, or why an activity came after another.
    """

    source: "NDArray[Any]"
    target: "NDArray[Any]"
    lag: "NDArray[Any]"
    work: "NDArray[Any]"
    call: "NDArray[Any]"


class Moments:
    """Numbers of the moments of a recording, in the order of their times.

    A call returns before the next one begins.

    Attributes:
        times: The recorded time of each moment, in ns.
        start: The moment at which each call begins.
        end: The moment at which each call returns.
        begun: The moment at which each activity begins.
    """

    def __init__(self, trace: "Trace") -> None:
        calls, works = len(trace.called), len(trace.begin)
        times = np.concatenate([trace.returned, trace.called, trace.begin])
        order = np.lexsort((np.repeat([0, 1, 2], [calls, calls, works]), times))
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        self.times = times[order]
        self.end, self.start, self.begun = np.split(places, [calls, 2 * calls])


class Orders:
    """The constraints between the moments of a recording, found in its tables.

    Args:
        trace: The recording's calls and activities.
        moments: Their moments.
    """

    def __init__(self, trace: "Trace", moments: Moments) -> None:
        self._trace, self._moments = trace, moments
        self._recording = trace.recording
        keys = _pairs(trace.stream, trace.launch)
        self._by_stream = np.argsort(keys, kind="stable")
        self._stream_keys = keys[self._by_stream]

    def constraints(self) -> Constraints:
        """Return all constraints."""
        return _sorted([*self._of_threads(), *self._of_calls(), *self._of_activities()])

    def _of_threads(self) -> "Iterator[Constraints]":
        """Yield the time between the calls of a thread, or of threads that take turns."""
        trace, moments = self._trace, self._moments
        threads = trace.thread
        order = np.lexsort((trace.called, threads))
        before, after = order[:-1], order[1:]
        same = threads[before] == threads[after]
        before, after = before[same], after[same]
        apart = trace.returned[before] <= trace.called[after]
        source = np.where(apart, moments.end[before], moments.start[before])
        lag = trace.called[after] - np.where(apart, trace.returned[before], trace.called[before])
        yield _of(source, moments.start[after], lag, np.where(apart, GAP, NESTED), after)

    def _of_calls(self) -> "Iterator[Constraints]":
        """Yield the own duration of calls, and the activities that they wait for."""
        trace, moments = self._trace, self._moments
        work, call = self._awaited()
        known = (trace.begin[work] < trace.returned[call]) & (call >= 0)
        work, call = work[known], call[known]
        done = np.minimum(trace.end[work], trace.returned[call])
        since = trace.called.copy()
        np.maximum.at(since, call, done)
        calls = np.arange(len(trace.called))
        yield _of(moments.start, moments.end, trace.returned - since, OWN, calls)
        # Of several activities, the call waited for the last.
        late = (done > trace.called[call]) & (done == since[call])
        lag = trace.returned[call] - trace.begin[work]
        usual = trace.duration[work] + np.minimum(trace.returned[call] - done, NEXT_NS)
        lag = np.where(late, lag, np.minimum(lag, usual))
        yield _of(moments.begun[work], moments.end[call], lag, work, call)

    def _awaited(self) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the pairs of an activity and a call that waits for it."""
        trace = self._trace
        waits = derived(self._recording)["host_waits"]
        kinds = codes(waits["kind"], _WAITS)
        calls, rows = plain(waits["call"]), plain(waits["synchronization"])
        copies = calls[(kinds >= _WAITS.index("memcpy")) & (calls >= 0)]
        copied = np.flatnonzero((trace.kind == COPY) & np.isin(trace.call, copies))
        pairs = [(copied, trace.call[copied])]
        waiting = (rows >= 0) & (calls >= 0)
        for kind, found in (
            ("stream_synchronize", self._before_stream_wait),
            ("event_synchronize", self._before_event_wait),
            ("context_synchronize", self._before_device_wait),
        ):
            chosen = np.flatnonzero(waiting & (kinds == _WAITS.index(kind)))
            pairs += [(work, calls[chosen][of]) for work, of in found(rows[chosen])]
        pairs += self._before_frees()
        pairs += self._before_full_queues()
        work, call = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return work, call

    def _before_stream_wait(self, rows: "NDArray[Any]") -> "_Pairs":
        table = self._recording.tables["synchronizations"]
        streams, launched = (plain(table[name])[rows] for name in ("stream", "correlation"))
        yield self._last_until(streams, launched)

    def _before_event_wait(self, rows: "NDArray[Any]") -> "_Pairs":
        table = self._recording.tables["synchronizations"]
        kinds = codes(table["kind"], _SYNCHRONIZATIONS)
        records = np.flatnonzero(kinds == _SYNCHRONIZATIONS.index("event_record"))
        found = records_of(table, records, rows)
        of = np.flatnonzero(found >= 0)
        streams, launched = (plain(table[name])[found[of]] for name in ("stream", "correlation"))
        work, known = self._last_until(streams, launched)
        yield work, of[known]

    def _before_device_wait(self, rows: "NDArray[Any]") -> "_Pairs":
        table = self._recording.tables["synchronizations"]
        devices, launched = (plain(table[name])[rows] for name in ("device", "correlation"))
        for device, stream in self._most_used_streams():
            of = np.flatnonzero(devices == device)
            work, known = self._last_until(np.full(len(of), stream), launched[of])
            yield work, of[known]

    def _before_frees(self) -> "_Pairs":
        """Yield frees of memory of the driver, which wait for the work of the device.

        Of several devices it is not known which one a free is of.
        """
        trace = self._trace
        table = self._recording.tables["api_calls"]
        frees = np.flatnonzero(are_named(self._recording.tables, plain(table["name"]), _FREE.match))
        if not len(frees) or len(np.unique(trace.device)) > 1:
            return
        launched = plain(table["correlation"])[frees]
        for _, stream in self._most_used_streams():
            work, known = self._last_until(np.full(len(frees), stream), launched)
            has_ended = trace.end[work] <= trace.returned[frees[known]]
            yield work[has_ended], frees[known[has_ended]]

    def _before_full_queues(self) -> "_Pairs":
        """Yield launches that took long because the queue of their stream was full.

        Each returned right after the end of the work that made room. Calls that launch several
        activities, such as graphs, and those that load code take long for another reason.
        """
        trace = self._trace
        counts = np.bincount(trace.call[trace.call >= 0], minlength=len(trace.called))
        is_single = (counts == 1) & ~prepares(self._recording)
        for _, stream in self._most_used_streams():
            work = self._by_stream[self._stream_keys >> 32 == stream]
            known = np.flatnonzero(trace.call[work] >= 0)
            known = known[is_single[trace.call[work[known]]]]
            if not stream or len(known) <= _LEAST_QUEUED:
                continue
            calls = trace.call[work[known]]
            ended = np.maximum.accumulate(trace.end[work])
            called, returned = trace.called[calls], trace.returned[calls]
            took = returned - called
            queued = known - np.searchsorted(ended, called, side="right")
            is_full = queued >= _LEAST_QUEUED
            last = np.searchsorted(ended, returned, side="right") - 1
            if is_full.all():
                continue
            waits = is_full & (took >= _LEAST_FACTOR * np.median(took[~is_full]))
            waits &= (last >= 0) & (ended[last] >= called)
            waits &= returned - ended[last] <= _MOST_RELEASE_NS
            yield work[last[waits]], calls[waits]

    def _most_used_streams(self) -> list[tuple[int, int]]:
        trace = self._trace
        keys, counts = np.unique(_pairs(trace.device, trace.stream), return_counts=True)
        most = keys[np.argsort(-counts, kind="stable")[:_MOST_STREAMS]].tolist()
        return [(key >> 32, key & 0xFFFFFFFF) for key in most]

    def _last_until(
        self, streams: "NDArray[Any]", launched: "NDArray[Any]"
    ) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the last activity launched on each stream up to a call, and where there is one."""
        places = np.searchsorted(self._stream_keys, _pairs(streams, launched), side="right") - 1
        there = (places >= 0) & (launched != 0)
        there[there] = self._stream_keys[places[there]] >> 32 == streams[there]
        known = np.flatnonzero(there)
        return self._by_stream[places[known]], known

    def _of_activities(self) -> "Iterator[Constraints]":
        """Yield launches, and the activities that have to end before another begins."""
        trace, moments = self._trace, self._moments
        orders = (
            (BY_STREAM, self._before_on_stream),
            (BY_STREAM, self._before_on_engine),
            (BY_STREAM, self._before_in_graph),
            (BY_EVENT, self._before_events),
            (BY_DEFAULT_STREAM, self._before_on_default_streams),
        )
        pairs = [(*pair, np.full(len(pair[0]), why)) for why, found in orders for pair in found()]
        before, after, order = (np.concatenate(each) for each in zip(*pairs, strict=True))
        launched = np.flatnonzero((trace.call >= 0) & (trace.launch_begin() <= trace.begin))
        calls, launch_begin = trace.call[launched], trace.launch_begin()[launched]
        free = np.full(len(trace.begin), NEVER)
        np.maximum.at(free, after, trace.end[before])
        # What an activity began last after keeps its distance: the launch, or earlier work.
        lag = trace.begin[launched] - launch_begin
        launch_ns = _median(lag[free[launched] <= launch_begin], _LAUNCH_NS)
        ready = np.full(len(trace.begin), NEVER)
        ready[launched] = launch_begin + launch_ns
        apart = trace.begin[after] - trace.end[before]
        # A dependent launch may begin before the end of the work before it.
        queued = (trace.end[before] == free[after]) & (trace.end[before] >= ready[after])
        queued &= apart >= 0
        next_ns = _median(apart[queued], NEXT_NS)
        is_last = ready[launched] >= free[launched] + next_ns
        lag = np.where(is_last, lag, np.minimum(lag, launch_ns))
        yield _of(moments.start[calls], moments.begun[launched], lag, LAUNCHED, calls)
        is_last = (trace.end[before] == free[after]) & (free[after] + next_ns >= ready[after])
        lag = np.where(is_last, apart, np.minimum(apart, next_ns)) + trace.duration[before]
        yield _of(moments.begun[before], moments.begun[after], lag, before, order)

    def _before_on_stream(self) -> "_Pairs":
        trace = self._trace
        before, after = self._by_stream[:-1], self._by_stream[1:]
        same = (trace.stream[before] == trace.stream[after]) & (trace.stream[after] != 0)
        yield before[same], after[same]

    def _before_on_engine(self) -> "_Pairs":
        """Yield activities of which the device did one after the other, unless both would fit."""
        trace = self._trace
        activities = self._recording.tables["activities"]
        known = DICTIONARIES["activities", "copy_kind"]
        copies = codes(activities["copy_kind"], known)[trace.rows].astype(np.int64)
        engines = np.where(trace.kind == COPY, len(KINDS) + copies, trace.kind)
        engines += (len(KINDS) + len(known)) * trace.device.astype(np.int64)
        order = np.lexsort((trace.begin, engines))
        before, after = order[:-1], order[1:]
        alone = (engines[before] == engines[after]) & (trace.end[before] <= trace.begin[after])
        # The stream orders activities of one stream already.
        alone &= (trace.stream[before] != trace.stream[after]) | (trace.stream[after] == 0)
        before, after = before[alone], after[alone]
        alone = ~trace.fit(before, after)
        yield before[alone], after[alone]

    def _before_in_graph(self) -> "_Pairs":
        """Yield launches of a graph on several streams, of which CUDA runs one at a time."""
        trace = self._trace
        graphs = plain(self._recording.tables["activities"]["graph"])[trace.rows]
        rows = np.flatnonzero((graphs != 0) & (trace.launch != 0))
        rows = rows[np.lexsort((trace.begin[rows], trace.launch[rows], graphs[rows]))]
        if not len(rows):
            return
        graph, launch = graphs[rows], trace.launch[rows]
        is_first = np.append(True, (graph[1:] != graph[:-1]) | (launch[1:] != launch[:-1]))
        by_end = rows[np.lexsort((trace.end[rows], np.cumsum(is_first)))]
        before, after = by_end[:-1][is_first[1:]], rows[is_first][1:]
        apart = (graphs[before] == graphs[after]) & (trace.stream[before] != trace.stream[after])
        apart &= trace.end[before] <= trace.begin[after]
        yield before[apart], after[apart]

    def _before_events(self) -> "_Pairs":
        waits = derived(self._recording)["stream_waits"]
        table = self._recording.tables["synchronizations"]
        launched = plain(table["correlation"])
        record, wait = plain(waits["record"]), plain(waits["wait"])
        before, known = self._last_until(plain(waits["recorded_stream"]), launched[record])
        streams, calls = plain(waits["waiting_stream"])[known], launched[wait][known]
        places = np.searchsorted(self._stream_keys, _pairs(streams, calls), side="right")
        there = (places < len(self._stream_keys)) & (calls != 0)
        there[there] = self._stream_keys[places[there]] >> 32 == streams[there]
        yield before[there], self._by_stream[places[there]]

    def _before_on_default_streams(self) -> "_Pairs":
        """Yield what the legacy default stream and blocking streams wait for."""
        streams = self._recording.tables["streams"]
        kinds, ids = codes(streams["kind"], _STREAMS), plain(streams["id"])
        used = [stream for _, stream in self._most_used_streams()]
        default = np.intersect1d(ids[kinds == _STREAMS.index("default")], used)
        blocking = [_STREAMS.index(kind) for kind in ("blocking", "per_thread_default")]
        others = np.intersect1d(ids[np.isin(kinds, blocking)], used)
        of_device = dict(zip(ids.tolist(), plain(streams["device"]).tolist(), strict=True))
        for one in default.tolist():
            for other in others.tolist():
                if of_device[one] == of_device[other]:
                    yield self._before_on(one, other)
                    yield self._before_on(other, one)

    def _before_on(self, stream: int, other: int) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the last activity of another stream before each activity of a stream."""
        trace = self._trace
        after = np.flatnonzero((trace.stream == stream) & (trace.launch != 0))
        before, known = self._last_until(np.full(len(after), other), trace.launch[after])
        return before, after[known]


def _pairs(high: "NDArray[Any]", low: "NDArray[Any]") -> "NDArray[Any]":
    pairs: NDArray[Any] = (high.astype(np.int64) << 32) | low.astype(np.int64)
    return pairs


def _median(values: "NDArray[Any]", otherwise: int) -> int:
    return int(np.median(values)) if len(values) else otherwise


def _of(
    source: "NDArray[Any]",
    target: "NDArray[Any]",
    lag: "NDArray[Any]",
    work: "NDArray[Any] | int",
    call: "NDArray[Any]",
) -> Constraints:
    """Return the constraints whose source precedes their target."""
    work = np.broadcast_to(np.asarray(work, np.int32), source.shape)
    rows = [each.astype(np.int32, copy=False) for each in (source, target, work, call)]
    kept = source < target
    if not kept.all():
        rows, lag = [each[kept] for each in rows], lag[kept]
    source, target, work, call = rows
    return Constraints(source, target, lag, work, call)


def _sorted(parts: list[Constraints]) -> Constraints:
    target = np.concatenate([part.target for part in parts])
    order = np.argsort(target, kind="stable")
    source, lag, work, call = (
        np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("source", "lag", "work", "call")
    )
    return Constraints(source.view(np.uint32), target[order].view(np.uint32), lag, work, call)
