"""Threads that begin sooner because another one has less to do."""

import numpy as np

from gpuviz.advice.host.host_gaps import HostGaps
from gpuviz.analysis.handovers import handing_threads
from gpuviz.analysis.intervals import Intervals
from gpuviz.data.codes import HOST_STATES
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.recording_data import RecordingData

_WAITING = HOST_STATES.index("waiting")


def with_waiting(recording: RecordingData, gaps: HostGaps, sooner: np.ndarray) -> np.ndarray:
    """Return by how much sooner all calls begin, in ns, if some do because of less work.

    A thread that was sampled waiting between its calls meanwhile waits as much less, such as those
    of XLA that copy what Python hands over; and so does the thread that does the work for them.

    Args:
        recording: The recording.
        gaps: What is before each call.
        sooner: By how much sooner each call begins after the previous one of its thread, in ns.
    """
    table, samples = recording.tables["api_calls"], recording.tables["host_samples"]
    begin, thread = plain(table["time"]), plain(table["thread"])
    rows = np.flatnonzero(sooner > 0)
    if not len(rows) or not samples.num_rows:
        return sooner
    of_sample, since, until = (plain(samples[name]) for name in ("thread", "time", "end"))
    waits = codes(samples["state"], HOST_STATES) == _WAITING
    waits |= np.isin(of_sample, list(handing_threads(recording).values()))
    found, middle = sooner.copy(), begin[rows] - gaps.length[rows] // 2
    for other in distinct(of_sample[waits]).tolist():
        calls = np.flatnonzero(thread == other)
        calls = calls[np.argsort(begin[calls], kind="stable")]
        # The next call of the thread after the middle of the gap in which it has waited.
        place = np.searchsorted(begin[calls], middle)
        known = (place < len(calls)) & (thread[rows] != other)
        chosen = waits & (of_sample == other)
        waited = Intervals(since[chosen], until[chosen]).within(
            (begin - gaps.length)[rows[known]], begin[rows[known]]
        )
        less = np.minimum(waited, sooner[rows[known]])
        np.add.at(found, calls[place[known]], less)
    less_at_most: np.ndarray = np.minimum(found, gaps.length)
    return less_at_most
