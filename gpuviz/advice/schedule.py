"""The calls and the GPU work of a recording as a schedule that can be replayed with changes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.advice.finding import Evidence
from gpuviz.analysis.classification import records_of
from gpuviz.analysis.columns import codes, plain
from gpuviz.analysis.launches import calls_of, durations, first_rows
from gpuviz.recording.derived import DICTIONARIES as WORDS
from gpuviz.recording.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording

    # Activities, and what comes after each of them.
    _Pairs = Iterator[tuple[NDArray[Any], NDArray[Any]]]

KINDS = DICTIONARIES["activities", "kind"]
KERNEL, COPY = KINDS.index("kernel"), KINDS.index("memcpy")
_WAITS = WORDS["host_waits", "kind"]
_SYNCHRONIZATIONS = DICTIONARIES["synchronizations", "kind"]
_STREAMS = DICTIONARIES["streams", "kind"]
# Used where a recording has no example: from a launch call to a kernel on an idle GPU, and from the
# end of a kernel to the next one of the stream, on an H100.
_LAUNCH_NS = 6_000
_NEXT_NS = 1_000
# Waits for all streams of a device consider at most this many.
_MOST_STREAMS = 64
# More than any GPU runs at once; a product of three damaged numbers could overflow.
_MOST_BLOCKS = 1 << 31
# Rows in the evidence of a finding.
_MOST_SHOWN = 1000
_NEVER = -(2**62)
# Times of a damaged recording are clipped, so that no sum of them overflows.
_LIMIT = 2**60


@dataclass(frozen=True, slots=True)
class _Constraints:
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


class Schedule:
    """When each call began and returned and each activity began, and what each had to wait for.

    A call begins at the recorded distance from the previous call of its thread. It returns after
    its own duration, and if it waits, not before the activities that it waits for. An activity
    begins after its launch, after the previous activity of its stream and of its engine (kernels,
    copies in each direction), and after the events and default streams that its stream waits for.
    Whichever of these was last keeps its recorded distance; the others may come as close as is
    typical for the recording. Without a change the replay is the recording, to the ns.

    What the recording does not explain stays at its recorded time, so that a prediction is rather
    too small: activities without a call, the first call of a thread.

    Attributes:
        recording: The recording.
        rows: The rows of ``activities``, which exclude ranges on streams.
        begin: Begin of each of these, in ns.
        duration: Their durations in ns.
        kind: Their positions in `KINDS`.
        device: Their devices.
        stream: Their streams.
        call: The row of the call that launched each; -1 if unknown.
        blocks: The number of thread blocks of each kernel; 0 if unknown.
        multiprocessors: The number of multiprocessors of each device; 0 if unknown.
    """

    def __init__(self, recording: "Recording") -> None:
        import numpy as np

        tables = recording.tables
        self.recording = recording
        activities, self._calls = tables["activities"], tables["api_calls"]
        kinds = codes(activities["kind"], KINDS)
        self.rows = np.flatnonzero(kinds != KINDS.index("range"))
        self.kind = kinds[self.rows]
        self.begin, self.device, self.stream, self._launch = (
            plain(activities[name])[self.rows]
            for name in ("time", "device", "stream", "correlation")
        )
        self.begin = np.clip(self.begin, -_LIMIT, _LIMIT)
        self.duration = durations(activities)[self.rows]
        self.end = self.begin + self.duration
        self.call = calls_of(tables, self._launch)
        self.blocks = _blocks(
            tables["launch_configurations"], plain(activities["launch"])[self.rows]
        )
        devices = tables["devices"]
        self.multiprocessors: dict[int, int] = dict(
            zip(devices["id"].to_pylist(), devices["multiprocessors"].to_pylist(), strict=True)
        )
        self._called = np.clip(plain(self._calls["time"]), -_LIMIT, _LIMIT)
        self._returned = self._called + durations(self._calls)
        self._place_moments()
        self._by_stream = np.argsort(_pairs(self.stream, self._launch), kind="stable")
        self._stream_keys = _pairs(self.stream, self._launch)[self._by_stream]
        parts = [*self._of_threads(), *self._of_calls(), *self._of_activities()]
        self._constraints = _sorted(parts)
        self._pin_unexplained()

    def evidence(self, work: "NDArray[Any]") -> Evidence:
        """Return the longest of some activities, and the time from the first to the last."""
        import numpy as np

        longest = work[np.argsort(-self.duration[work], kind="stable")[:_MOST_SHOWN]]
        rows = tuple(np.sort(self.rows[longest]).tolist())
        return Evidence(
            "activities", rows, (int(self.begin[work].min()), int(self.end[work].max()))
        )

    def saved_ns(
        self,
        *,
        duration: "NDArray[Any] | None" = None,
        without_wait: "NDArray[Any] | None" = None,
        without_gap: "NDArray[Any] | None" = None,
        instant: "NDArray[Any] | None" = None,
        without_order: int | None = None,
    ) -> int:
        """Return by how much the last activity or call would end earlier after a change, in ns.

        Args:
            duration: Other durations of the activities.
            without_wait: Mask of calls that wait for nothing.
            without_gap: Mask of calls that begin when the previous call of the thread returns.
            instant: Mask of calls that take no time of their own.
            without_order: `BY_EVENT` or `BY_DEFAULT_STREAM`, an order that no longer holds.
        """
        import numpy as np

        constraints = self._constraints
        lags = constraints.lag.copy()
        of_calls = constraints.call
        if without_gap is not None:
            gaps = np.flatnonzero(constraints.work == _GAP)
            gaps = gaps[without_gap[of_calls[gaps]]]
            lags[gaps] = np.minimum(lags[gaps], 0)
        if instant is not None:
            own = np.flatnonzero(constraints.work == _OWN)
            lags[own[instant[of_calls[own]]]] = 0
        of_work = np.flatnonzero(constraints.work >= 0)
        if duration is not None:
            change = (duration - self.duration)[constraints.work[of_work]]
            lags[of_work] = np.maximum(lags[of_work] + change, 0)
        if without_wait is not None:
            waits = of_work[of_calls[of_work] >= 0]
            lags[waits[without_wait[of_calls[waits]]]] = _NEVER
        if without_order is not None:
            lags[of_work[of_calls[of_work] == without_order]] = _NEVER
        times = _core.earliest_times(self._not_before, constraints.source, constraints.target, lags)
        return max(0, self._last(self._recorded) - self._last(times, duration))

    def _last(self, times: Any, duration: "NDArray[Any] | None" = None) -> int:
        ends = times[self._begun] + (self.duration if duration is None else duration)
        returned = times[self._end]
        return max(int(ends.max(initial=0)), int(returned.max(initial=0)))

    def _place_moments(self) -> None:
        """Number the moments by their time; a call returns before the next one begins."""
        import numpy as np

        calls, works = len(self._called), len(self.begin)
        self._returned = np.maximum(self._returned, self._called + 1)
        times = np.concatenate([self._returned, self._called, self.begin])
        order = np.lexsort((np.repeat([0, 1, 2], [calls, calls, works]), times))
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        self._recorded = times[order]
        self._end, self._start, self._begun = np.split(places, [calls, 2 * calls])

    def _of_threads(self) -> "Iterator[_Constraints]":
        """Yield the time between the calls of a thread."""
        import numpy as np

        threads = plain(self._calls["thread"])
        order = np.lexsort((self._called, threads))
        before, after = order[:-1], order[1:]
        same = threads[before] == threads[after]
        before, after = before[same], after[same]
        apart = self._returned[before] <= self._called[after]
        source = np.where(apart, self._end[before], self._start[before])
        lag = self._called[after] - np.where(apart, self._returned[before], self._called[before])
        yield _of(source, self._start[after], lag, np.where(apart, _GAP, _NESTED), after)

    def _of_calls(self) -> "Iterator[_Constraints]":
        """Yield the own duration of calls, and the activities that they wait for."""
        import numpy as np

        work, call = self._awaited()
        known = (self.begin[work] < self._returned[call]) & (call >= 0)
        work, call = work[known], call[known]
        done = np.minimum(self.end[work], self._returned[call])
        since = self._called.copy()
        np.maximum.at(since, call, done)
        calls = np.arange(len(self._called))
        yield _of(self._start, self._end, self._returned - since, _OWN, calls)
        late = done > self._called[call]
        lag = self._returned[call] - self.begin[work]
        usual = self.duration[work] + np.minimum(self._returned[call] - done, _NEXT_NS)
        lag = np.where(late, lag, np.minimum(lag, usual))
        yield _of(self._begun[work], self._end[call], lag, work, call)

    def _awaited(self) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the pairs of an activity and a call that waits for it."""
        import numpy as np

        waits = self.recording.derived["host_waits"]
        kinds = codes(waits["kind"], _WAITS)
        calls, rows = plain(waits["call"]), plain(waits["synchronization"])
        copies = calls[(kinds >= _WAITS.index("memcpy")) & (calls >= 0)]
        copied = np.flatnonzero((self.kind == COPY) & np.isin(self.call, copies))
        pairs = [(copied, self.call[copied])]
        waiting = (rows >= 0) & (calls >= 0)
        for kind, found in (
            ("stream_synchronize", self._before_stream_wait),
            ("event_synchronize", self._before_event_wait),
            ("context_synchronize", self._before_device_wait),
        ):
            chosen = np.flatnonzero(waiting & (kinds == _WAITS.index(kind)))
            pairs += [(work, calls[chosen][of]) for work, of in found(rows[chosen])]
        work, call = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return work, call

    def _before_stream_wait(self, rows: "NDArray[Any]") -> "_Pairs":
        table = self.recording.tables["synchronizations"]
        streams, launched = (plain(table[name])[rows] for name in ("stream", "correlation"))
        yield self._last_until(streams, launched)

    def _before_event_wait(self, rows: "NDArray[Any]") -> "_Pairs":
        import numpy as np

        table = self.recording.tables["synchronizations"]
        kinds = codes(table["kind"], _SYNCHRONIZATIONS)
        records = np.flatnonzero(kinds == _SYNCHRONIZATIONS.index("event_record"))
        found = records_of(table, records, rows)
        of = np.flatnonzero(found >= 0)
        streams, launched = (plain(table[name])[found[of]] for name in ("stream", "correlation"))
        work, known = self._last_until(streams, launched)
        yield work, of[known]

    def _before_device_wait(self, rows: "NDArray[Any]") -> "_Pairs":
        import numpy as np

        table = self.recording.tables["synchronizations"]
        devices, launched = (plain(table[name])[rows] for name in ("device", "correlation"))
        for device, stream in self._most_used_streams():
            of = np.flatnonzero(devices == device)
            work, known = self._last_until(np.full(len(of), stream), launched[of])
            yield work, of[known]

    def _most_used_streams(self) -> list[tuple[int, int]]:
        import numpy as np

        keys, counts = np.unique(_pairs(self.device, self.stream), return_counts=True)
        most = keys[np.argsort(-counts, kind="stable")[:_MOST_STREAMS]].tolist()
        return [(key >> 32, key & 0xFFFFFFFF) for key in most]

    def _last_until(
        self, streams: "NDArray[Any]", launched: "NDArray[Any]"
    ) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the last activity launched on each stream up to a call, and where there is one."""
        import numpy as np

        places = np.searchsorted(self._stream_keys, _pairs(streams, launched), side="right") - 1
        there = (places >= 0) & (launched != 0)
        there[there] = self._stream_keys[places[there]] >> 32 == streams[there]
        known = np.flatnonzero(there)
        return self._by_stream[places[known]], known

    def _of_activities(self) -> "Iterator[_Constraints]":
        """Yield launches, and the activities that have to end before another begins."""
        import numpy as np

        orders = (
            (BY_STREAM, self._before_on_stream),
            (BY_STREAM, self._before_on_engine),
            (BY_EVENT, self._before_events),
            (BY_DEFAULT_STREAM, self._before_on_default_streams),
        )
        pairs = [(*pair, np.full(len(pair[0]), why)) for why, found in orders for pair in found()]
        before, after, order = (np.concatenate(each) for each in zip(*pairs, strict=True))
        launched = np.flatnonzero((self.call >= 0) & (self.launch_begin() <= self.begin))
        last = np.full(len(self.begin), _NEVER)
        last[launched] = self.launch_begin()[launched]
        by_launch = last.copy()
        np.maximum.at(last, after, self.end[before])
        idle = launched[last[launched] == by_launch[launched]]
        launch_ns = _median(self.begin[idle] - by_launch[idle], _LAUNCH_NS)
        lag = self.begin[launched] - by_launch[launched]
        lag = np.where(by_launch[launched] == last[launched], lag, np.minimum(lag, launch_ns))
        calls = self.call[launched]
        yield _of(self._start[calls], self._begun[launched], lag, _LAUNCHED, calls)
        apart = self.begin[after] - self.end[before]
        queued = (self.end[before] == last[after]) & (self.end[before] >= self._returns()[after])
        next_ns = _median(apart[queued], _NEXT_NS)
        lag = np.where(self.end[before] == last[after], apart, np.minimum(apart, next_ns))
        lag = lag + self.duration[before]
        yield _of(self._begun[before], self._begun[after], lag, before, order)

    def launch_begin(self) -> "NDArray[Any]":
        """Return when the call that launched each activity began; undefined without a call."""
        return self._called[self.call] if len(self._called) else self.begin

    def _returns(self) -> "NDArray[Any]":
        return self._returned[self.call] if len(self._called) else self.begin

    def _before_on_stream(self) -> "_Pairs":
        before, after = self._by_stream[:-1], self._by_stream[1:]
        same = (self.stream[before] == self.stream[after]) & (self.stream[after] != 0)
        yield before[same], after[same]

    def _before_on_engine(self) -> "_Pairs":
        """Yield activities of which the device did one after the other, unless both would fit."""
        import numpy as np

        activities = self.recording.tables["activities"]
        known = DICTIONARIES["activities", "copy_kind"]
        copies = codes(activities["copy_kind"], known)[self.rows].astype(np.int64)
        engines = np.where(self.kind == COPY, len(KINDS) + copies, self.kind)
        engines += (len(KINDS) + len(known)) * self.device.astype(np.int64)
        order = np.lexsort((self.begin, engines))
        before, after = order[:-1], order[1:]
        alone = (engines[before] == engines[after]) & (self.end[before] <= self.begin[after])
        # The stream orders activities of one stream already.
        alone &= (self.stream[before] != self.stream[after]) | (self.stream[after] == 0)
        before, after = before[alone], after[alone]
        alone = ~self.fit(before, after)
        yield before[alone], after[alone]

    def fit(self, first: "NDArray[Any]", second: "NDArray[Any]") -> "NDArray[Any]":
        """Return whether two kernels have one multiprocessor for each block; False if unknown."""
        import numpy as np

        blocks = self.blocks[first] + self.blocks[second]
        most = np.zeros(len(blocks), np.int64)
        for device, multiprocessors in self.multiprocessors.items():
            most[self.device[first] == device] = multiprocessors
        kernels = (self.kind[first] == KERNEL) & (self.kind[second] == KERNEL)
        known = (self.blocks[first] > 0) & (self.blocks[second] > 0)
        fit: NDArray[Any] = kernels & known & (blocks <= most)
        return fit

    def _before_events(self) -> "_Pairs":
        import numpy as np

        waits = self.recording.derived["stream_waits"]
        table = self.recording.tables["synchronizations"]
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
        import numpy as np

        streams = self.recording.tables["streams"]
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
        import numpy as np

        after = np.flatnonzero((self.stream == stream) & (self._launch != 0))
        before, known = self._last_until(np.full(len(after), other), self._launch[after])
        return before, after[known]

    def _pin_unexplained(self) -> None:
        """Keep the recorded time of moments that no constraint explains."""
        import numpy as np

        constraints = self._constraints
        self._not_before = np.full(len(self._recorded), _NEVER)
        explained = np.zeros(len(self._recorded), bool)
        explained[constraints.target] = True
        explained[self._begun[self.call < 0]] = False
        self._not_before[~explained] = self._recorded[~explained]
        times: Any = _core.earliest_times(
            self._not_before, constraints.source, constraints.target, constraints.lag
        )
        early = times < self._recorded
        self._not_before[early] = self._recorded[early]


# Values of `_Constraints.call` between activities: why one came after the other.
BY_STREAM, BY_EVENT, BY_DEFAULT_STREAM = -1, -2, -3

# Values of `_Constraints.work` other than activities.
_GAP, _NESTED, _OWN, _LAUNCHED = -1, -2, -3, -4


def _blocks(table: "pa.Table", launches: "NDArray[Any]") -> "NDArray[Any]":
    """Return the number of blocks of each launch configuration; 0 if unknown."""
    import numpy as np

    ids = plain(table["id"])
    x, y, z = (plain(table[f"grid_{axis}"]).astype(np.int64) for axis in "xyz")
    grids = np.minimum(np.minimum(x * y, _MOST_BLOCKS) * z, _MOST_BLOCKS)
    found = first_rows(ids, launches)
    blocks: NDArray[Any] = np.append(grids, 0)[found]
    return blocks


def _pairs(high: "NDArray[Any]", low: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    pairs: NDArray[Any] = (high.astype(np.int64) << 32) | low.astype(np.int64)
    return pairs


def _median(values: "NDArray[Any]", otherwise: int) -> int:
    import numpy as np

    return int(np.median(values)) if len(values) else otherwise


def _of(
    source: "NDArray[Any]",
    target: "NDArray[Any]",
    lag: "NDArray[Any]",
    work: "NDArray[Any] | int",
    call: "NDArray[Any]",
) -> _Constraints:
    """Return the constraints whose source precedes their target."""
    import numpy as np

    work = np.broadcast_to(np.asarray(work, np.int32), source.shape)
    rows = [each.astype(np.int32, copy=False) for each in (source, target, work, call)]
    kept = source < target
    if not kept.all():
        rows, lag = [each[kept] for each in rows], lag[kept]
    source, target, work, call = rows
    return _Constraints(source, target, lag, work, call)


def _sorted(parts: list[_Constraints]) -> _Constraints:
    import numpy as np

    target = np.concatenate([part.target for part in parts])
    order = np.argsort(target, kind="stable")
    source, lag, work, call = (
        np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("source", "lag", "work", "call")
    )
    return _Constraints(source.view(np.uint32), target[order].view(np.uint32), lag, work, call)
