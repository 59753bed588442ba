"""Threads that wait for others: for what they hand over, or for what they launch."""

import numpy as np

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.intervals import Intervals, overlaps
from gpuviz.analysis.launches import calls_of, user_frames
from gpuviz.analysis.xla import threads_of_xla
from gpuviz.data.codes import HOST_STATES, OWN_THREADS
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData

_CAUSES = WORDS["idle_gaps", "cause"]
_WAITING = HOST_STATES.index("waiting")
# Threads are looked at about once a millisecond.
_SAMPLE_NS = 2_000_000
_LEAST_TIMES = 3
# Of the time in which the GPU waits for the thread.
_LEAST_SHARE = 0.75


@Once
def handing_threads(recording: RecordingData) -> dict[int, int]:
    """Return the thread that hands work to each thread without Python code, where that is known.

    Such a thread waits until it has something to launch, as those of XLA for copies. The other
    works until then, and begins to wait about when this one begins to launch, in three quarters of
    the time in which the GPU waits for this one. Where several threads do so, none is known. For
    those of XLA see `gpuviz.analysis.xla.threads_of_xla`.
    """
    table = recording.tables["host_samples"]
    threads = plain(table["thread"])
    callers = [each for each in distinct(threads).tolist() if _runs_python(recording, each)]
    found = {**threads_of_xla(recording)}
    for thread in _native_threads(recording):
        if thread in found:
            continue
        begin, end = _gaps_before(recording, thread)
        length = np.maximum(end - begin, 0)
        handing = [
            caller
            for caller in callers
            if (turned := _turns(recording, caller, end)).sum() >= _LEAST_TIMES
            and length[turned].sum() >= _LEAST_SHARE * length.sum() > 0
        ]
        if len(handing) == 1:
            found[thread] = handing[0]
    return found


def handovers(recording: RecordingData, thread: int, begin: np.ndarray) -> np.ndarray:
    """Return until when a thread that waits for work had none, from some times on, in ns.

    That is the time itself if the thread did not wait then.
    """
    table = recording.tables["host_samples"]
    rows = np.flatnonzero(
        (plain(table["thread"]) == thread) & (codes(table["state"], HOST_STATES) == _WAITING)
    )
    waits = Intervals(*(plain(table[name])[rows] for name in ("time", "end")))
    if not len(waits.begin):
        return begin
    place = np.searchsorted(waits.begin, begin + _SAMPLE_NS, side="right") - 1
    known = place >= 0
    ends: np.ndarray = np.where(known, waits.end[np.maximum(place, 0)], begin)
    until: np.ndarray = np.maximum(ends, begin)
    return until


@Once
def waits_beside_launches(recording: RecordingData) -> np.ndarray:
    """Return whether each row of ``host_samples`` is of a wait in which other threads launch work.

    A wait lasts from sample to sample as long as the thread waits in the same line, such as that of
    a backward pass, which runs in another thread. What another thread launches shortly before
    counts too, if the thread has made no call since.
    """
    tables = recording.tables
    table, calls = tables["host_samples"], tables["api_calls"]
    launching = calls_of(tables, plain(tables["activities"]["correlation"]))
    launching = np.unique(launching[launching >= 0])
    times, of_launch = plain(calls["time"])[launching], plain(calls["thread"])[launching]
    beside = np.zeros(table.num_rows, bool)
    waits = codes(table["state"], HOST_STATES) == _WAITING
    threads, begin, end = (plain(table[name]) for name in ("thread", "time", "end"))
    lines = user_frames(tables, plain(table["stack"]))
    for thread in np.unique(threads[waits]).tolist():
        rows = np.flatnonzero(waits & (threads == thread))
        rows = rows[np.argsort(begin[rows], kind="stable")]
        own = np.sort(plain(calls["end"])[plain(calls["thread"]) == thread])
        made = np.searchsorted(own, begin[rows], side="right")
        is_new = np.append(True, lines[rows[1:]] != lines[rows[:-1]])
        is_new[1:] |= begin[rows[1:]] > end[rows[:-1]] + _SAMPLE_NS
        is_new[1:] |= made[1:] != made[:-1]
        first = np.flatnonzero(is_new)
        last = np.append(first[1:], len(rows)) - 1
        called = np.append(0, own)[made[first]]
        since = np.maximum(called, begin[rows[first]] - _SAMPLE_NS)
        others = np.sort(times[of_launch != thread])
        count = np.searchsorted(others, end[rows[last]]) - np.searchsorted(others, since)
        beside[rows] = (count > 0)[np.cumsum(is_new) - 1]
    return beside


@Once
def waiting_stacks(recording: RecordingData) -> np.ndarray:
    """Return the call stack that waits for the work of each row of ``host_samples``; 0 if none.

    A thread without Python code works, as one of XLA's does that copies a function's arguments,
    while the only thread with Python code waits for most of that time.
    """
    table = recording.tables["host_samples"]
    found = np.zeros(table.num_rows, np.uint32)
    threads, stacks = plain(table["thread"]), plain(table["stack"])
    callers = [each for each in distinct(threads).tolist() if _runs_python(recording, each)]
    if len(callers) != 1:
        return found
    waits = codes(table["state"], HOST_STATES) == _WAITING
    by_caller = np.flatnonzero(waits & (threads == callers[0]) & (stacks != 0))
    native = np.flatnonzero(~waits & (threads != callers[0]) & (stacks == 0))
    time, end = plain(table["time"]), plain(table["end"])
    by_caller = by_caller[np.argsort(time[by_caller], kind="stable")]
    row, wait, begins, ends = overlaps(time[native], end[native], time[by_caller], end[by_caller])
    is_most = 2 * (ends - begins) > (end - time)[native[row]]
    found[native[row[is_most]]] = stacks[by_caller[wait[is_most]]]
    return found


def _gaps_before(recording: RecordingData, thread: int) -> tuple[np.ndarray, np.ndarray]:
    """Return when devices begin to wait for a thread, and until when it has nothing to launch."""
    gaps = derived(recording)["idle_gaps"]
    late = (plain(gaps["stream"]) == 0) & (plain(gaps["activity"]) >= 0)
    late &= codes(gaps["cause"], _CAUSES) == _CAUSES.index("host")
    rows = np.flatnonzero(late)
    launched = plain(recording.tables["activities"]["correlation"])[plain(gaps["activity"])[rows]]
    calls = calls_of(recording.tables, launched)
    of_call = np.append(plain(recording.tables["api_calls"]["thread"]), 0)[calls]
    rows = rows[(calls >= 0) & (of_call == thread)]
    begin, end = (plain(gaps[name])[rows] for name in ("time", "end"))
    until = np.minimum(handovers(recording, thread, begin), end)
    return begin[until > begin], until[until > begin]


def _turns(recording: RecordingData, thread: int, moments: np.ndarray) -> np.ndarray:
    """Return at which moments a thread that has worked begins to wait."""
    table = recording.tables["host_samples"]
    own = plain(table["thread"]) == thread
    waits = codes(table["state"], HOST_STATES) == _WAITING
    time, end = plain(table["time"]), plain(table["end"])
    worked = Intervals(time[own & ~waits], end[own & ~waits])
    began = np.sort(time[own & waits])
    has_worked = worked.within(moments - _SAMPLE_NS, moments) > 0
    first = np.searchsorted(began, moments - _SAMPLE_NS)
    turns: np.ndarray = has_worked & (
        first < np.searchsorted(began, moments + _SAMPLE_NS, side="right")
    )
    return turns


def _native_threads(recording: RecordingData) -> list[int]:
    """Return the threads that launch, and run no Python as far as is known."""
    tables = recording.tables
    sampled, launching = (
        {*distinct(plain(tables[name]["thread"])).tolist()}
        for name in ("host_samples", "api_calls")
    )
    return [each for each in sorted(sampled & launching) if not _runs_python(recording, each)]


def _runs_python(recording: RecordingData, thread: int) -> bool:
    """Return whether a thread other than gpuviz's has been seen in Python code."""
    tables = recording.tables
    names = dict(
        zip(tables["threads"]["id"].to_pylist(), tables["threads"]["name"].to_pylist(), strict=True)
    )
    if names.get(thread, "").startswith(OWN_THREADS):
        return False
    stacks = np.concatenate(
        [
            plain(tables[name]["stack"])[plain(tables[name]["thread"]) == thread]
            for name in ("host_samples", "api_calls")
        ]
    )
    return any(recording.call_stacks.frames(each) for each in np.unique(stacks).tolist())
