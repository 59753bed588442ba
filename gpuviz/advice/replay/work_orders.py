"""The activities that have to end before others begin."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.replay.launch_order import LaunchOrder
from gpuviz.advice.replay.trace import COPY, KINDS, Trace
from gpuviz.analysis.derived_tables import derived
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES

# Activities, and what comes after each of them.
_Pairs = Iterator[tuple[np.ndarray, np.ndarray]]

_STREAMS = DICTIONARIES["streams", "kind"]
# Why one activity came after another.
BY_STREAM, BY_EVENT, BY_DEFAULT_STREAM = -1, -2, -3


class WorkOrders:
    """The order of the activities of a recording, found in its tables.

    Args:
        trace: The recording's calls and activities.
        order: The order of their launches.
    """

    def __init__(self, trace: Trace, order: LaunchOrder) -> None:
        self._trace, self._order = trace, order
        self._recording = trace.recording

    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return activities, those that come after each of them, and why."""
        orders = (
            (BY_STREAM, self._before_on_stream),
            (BY_STREAM, self._before_on_engine),
            (BY_STREAM, self._before_in_graph),
            (BY_EVENT, self._before_events),
            (BY_DEFAULT_STREAM, self._before_on_default_streams),
        )
        pairs = [(*pair, np.full(len(pair[0]), why)) for why, found in orders for pair in found()]
        before, after, order = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return before, after, order

    def _before_on_stream(self) -> _Pairs:
        trace = self._trace
        before, after = self._order.activities[:-1], self._order.activities[1:]
        same = (trace.stream[before] == trace.stream[after]) & (trace.stream[after] != 0)
        yield before[same], after[same]

    def _before_on_engine(self) -> _Pairs:
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

    def _before_in_graph(self) -> _Pairs:
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

    def _before_events(self) -> _Pairs:
        waits = derived(self._recording)["stream_waits"]
        table = self._recording.tables["synchronizations"]
        launched = plain(table["correlation"])
        record, wait = plain(waits["record"]), plain(waits["wait"])
        before, known = self._order.last_until(plain(waits["recorded_stream"]), launched[record])
        streams, calls = plain(waits["waiting_stream"])[known], launched[wait][known]
        after, there = self._order.first_after(streams, calls)
        yield before[there], after

    def _before_on_default_streams(self) -> _Pairs:
        """Yield what the legacy default stream and blocking streams wait for."""
        streams = self._recording.tables["streams"]
        kinds, ids = codes(streams["kind"], _STREAMS), plain(streams["id"])
        used = [stream for _, stream in self._order.most_used_streams()]
        default = np.intersect1d(ids[kinds == _STREAMS.index("default")], used)
        blocking = [_STREAMS.index(kind) for kind in ("blocking", "per_thread_default")]
        others = np.intersect1d(ids[np.isin(kinds, blocking)], used)
        of_device = dict(zip(ids.tolist(), plain(streams["device"]).tolist(), strict=True))
        for one in default.tolist():
            for other in others.tolist():
                if of_device[one] == of_device[other]:
                    yield self._before_on(one, other)
                    yield self._before_on(other, one)

    def _before_on(self, stream: int, other: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the last activity of another stream before each activity of a stream."""
        trace = self._trace
        after = np.flatnonzero((trace.stream == stream) & (trace.launch != 0))
        before, known = self._order.last_until(np.full(len(after), other), trace.launch[after])
        return before, after[known]
