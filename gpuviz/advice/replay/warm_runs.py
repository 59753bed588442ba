"""What a recording is in a warm run, without what the host prepares once."""

import numpy as np

from gpuviz.advice.replay.constraints import GAP, LAUNCHED, NESTED, OWN, Constraints
from gpuviz.advice.replay.trace import Trace
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.preparation import PREPARATIONS, preparations
from gpuviz.analysis.repeated_compilations import times_of_repeated_compilations
from gpuviz.analysis.repeated_loads import times_of_repeated_loads
from gpuviz.data.columns import distinct, plain

_COMPILATION = PREPARATIONS.index("compilation")


class Preparation:
    """When the host prepares in a recording, as in `gpuviz.analysis.preparation`.

    What it compiles or loads again and again is none.

    Args:
        trace: The recording's calls and activities.

    Attributes:
        spans: When each thread with calls prepared, by its number in ``trace.thread``.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace, recording = trace, trace.recording
        self.spans: dict[int, Intervals] = {}
        self._compiling: dict[int, Intervals] = {}
        for thread in distinct(plain(recording.tables["api_calls"]["thread"])).tolist():
            again = times_of_repeated_loads(recording, thread)
            again = again.joined(times_of_repeated_compilations(recording, thread))
            number = int(trace.group_of(np.array([thread]))[0])
            for kind, prepared in enumerate(preparations(recording, thread)):
                spans = prepared.without(again)
                if spans.length:
                    _add(self.spans, number, spans)
                if spans.length and kind == _COMPILATION:
                    _add(self._compiling, number, spans)

    def without(self, constraints: Constraints, times: np.ndarray) -> np.ndarray:
        """Return the lags of constraints in a warm run, in ns.

        The host compiles nothing, loads no code, and its first launch of a kernel takes as long as
        its launches usually do.

        Args:
            constraints: The constraints between the moments of the trace.
            times: The recorded time of each moment, in ns.
        """
        lag, calls = constraints.lag.copy(), constraints.call
        until = times[constraints.target.astype(np.int64)]
        rows = np.flatnonzero(np.isin(constraints.work, (GAP, NESTED, OWN, LAUNCHED)))
        # Of a launch, only what the activity waited for last.
        is_last = until[rows] - times[constraints.source[rows].astype(np.int64)] == lag[rows]
        rows = rows[(constraints.work[rows] != LAUNCHED) | is_last]
        threads = self._trace.thread[calls[rows]]
        for thread, spans in self.spans.items():
            own = rows[threads == thread]
            less = spans.within(until[own] - lag[own], until[own])
            lag[own] = np.maximum(lag[own] - less, self._usual(constraints, own))
        return lag

    def is_for_it(self) -> np.ndarray:
        """Return which activities the host launched to compile, as XLA does to try kernels."""
        trace = self._trace
        found = np.zeros(len(trace.call), bool)
        launched = np.flatnonzero(trace.call >= 0)
        calls = trace.call[launched]
        for thread, spans in self._compiling.items():
            begin = trace.called[calls]
            is_inside = spans.within(begin, begin + 1) > 0
            found[launched[is_inside & (trace.thread[calls] == thread)]] = True
        return found

    def _usual(self, constraints: Constraints, rows: np.ndarray) -> np.ndarray:
        """Return the least that constraints keep of their lags, in ns: what a launch takes."""
        trace = self._trace
        launches = np.zeros(len(trace.called), bool)
        launches[trace.call[trace.call >= 0]] = True
        kept = np.zeros(len(rows), np.int64)
        for kind in (OWN, LAUNCHED):
            usual = constraints.lag[(constraints.work == kind) & launches[constraints.call]]
            if len(usual):
                is_kind = (constraints.work[rows] == kind) & launches[constraints.call[rows]]
                kept[is_kind] = int(np.median(usual))
        least: np.ndarray = np.minimum(constraints.lag[rows], kept)
        return least


def _add(found: dict[int, Intervals], number: int, spans: Intervals) -> None:
    found[number] = found[number].joined(spans) if number in found else spans
