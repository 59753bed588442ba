"""The activities that calls of the host wait for."""

import re
from collections.abc import Iterator

import numpy as np

from gpuviz.advice.replay.launch_order import LaunchOrder
from gpuviz.advice.replay.trace import COPY, Trace
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.preparation import prepares
from gpuviz.analysis.stream_waits import records_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

# Activities, and the wait, of some, that each of them belongs to.
_Pairs = Iterator[tuple[np.ndarray, np.ndarray]]

_WAITS = WORDS["host_waits", "kind"]
_SYNCHRONIZATIONS = DICTIONARIES["synchronizations", "kind"]
# A stream has room for up to 1,022 launches, and for 936 or 980 of some kernels (on an H100 and an
# H200); each of those after them waits for the end of one, and returns some µs later. Such a launch
# takes longer than others.
_LEAST_QUEUED, _LEAST_FACTOR, _MOST_RELEASE_NS = 900, 3, 100_000
# Functions of the driver that free memory, for which they wait for the memory's device.
_FREE = re.compile(r"cuMemFree(Host)?(_v2)?$")


class AwaitedWork:
    """What synchronizations, copies, frees and launches to full queues wait for.

    Args:
        trace: The recording's calls and activities.
        order: The order of the launches.
    """

    def __init__(self, trace: Trace, order: LaunchOrder) -> None:
        self._trace, self._order = trace, order
        self._recording = trace.recording

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
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

    def _before_stream_wait(self, rows: np.ndarray) -> _Pairs:
        table = self._recording.tables["synchronizations"]
        streams, launched = (plain(table[name])[rows] for name in ("stream", "correlation"))
        yield self._order.last_until(streams, launched)

    def _before_event_wait(self, rows: np.ndarray) -> _Pairs:
        table = self._recording.tables["synchronizations"]
        kinds = codes(table["kind"], _SYNCHRONIZATIONS)
        records = np.flatnonzero(kinds == _SYNCHRONIZATIONS.index("event_record"))
        found = records_of(table, records, rows)
        of = np.flatnonzero(found >= 0)
        streams, launched = (plain(table[name])[found[of]] for name in ("stream", "correlation"))
        work, known = self._order.last_until(streams, launched)
        yield work, of[known]

    def _before_device_wait(self, rows: np.ndarray) -> _Pairs:
        table = self._recording.tables["synchronizations"]
        devices, launched = (plain(table[name])[rows] for name in ("device", "correlation"))
        for device, stream in self._order.most_used_streams():
            of = np.flatnonzero(devices == device)
            work, known = self._order.last_until(np.full(len(of), stream), launched[of])
            yield work, of[known]

    def _before_frees(self) -> _Pairs:
        """Yield frees of memory of the driver, which wait for the work of the device.

        Of several devices it is not known which one a free is of.
        """
        trace = self._trace
        table = self._recording.tables["api_calls"]
        frees = np.flatnonzero(are_named(self._recording.tables, plain(table["name"]), _FREE.match))
        if not len(frees) or len(np.unique(trace.device)) > 1:
            return
        launched = plain(table["correlation"])[frees]
        for _, stream in self._order.most_used_streams():
            work, known = self._order.last_until(np.full(len(frees), stream), launched)
            has_ended = trace.end[work] <= trace.returned[frees[known]]
            yield work[has_ended], frees[known[has_ended]]

    def _before_full_queues(self) -> _Pairs:
        """Yield launches that took long because the queue of their stream was full.

        Each returned right after the end of the work that made room. Calls that launch several
        activities, such as graphs, and those that load code take long for another reason.
        """
        trace = self._trace
        counts = np.bincount(trace.call[trace.call >= 0], minlength=len(trace.called))
        is_single = (counts == 1) & ~prepares(self._recording)
        for _, stream in self._order.most_used_streams():
            work = self._order.activities[self._order.streams == stream]
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
