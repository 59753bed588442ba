"""Functions that streams call on the host, by ``cudaLaunchHostFunc`` or as callbacks."""

import re

import numpy as np

from gpuviz.analysis.launches import calls_of
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named
from gpuviz.data.tables import Tables
from gpuviz.hazards.queries import CLOCKS_AGREE

_HOST_FUNCTION = re.compile(r"cuLaunchHostFunc|cuStreamAddCallback")


def host_functions(tables: Tables) -> np.ndarray:
    """Return the calls, rows of ``api_calls``, that enqueue a function of the host."""
    names = plain(tables["api_calls"]["name"])
    return np.flatnonzero(are_named(tables, names, _HOST_FUNCTION.match))


def times_of_functions(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """Return the calls that enqueue functions on known streams, and when each function ran.

    The calls are rows of ``api_calls``, the times in ns since the recording's start. A function
    runs when the work is done that its stream was given before it, and may tell the program so, by
    a `threading.Event` for example; whether it does is not recorded. Waits of the stream for others
    are not counted, so that a time is rather too early.
    """
    calls, activities = tables["api_calls"], tables["activities"]
    begins, stream_of = plain(calls["time"]).astype(np.int64), plain(calls["stream"])
    found = host_functions(tables)
    found = found[stream_of[found] != 0]
    ran = begins[found] + 1  # after the function was enqueued
    call = calls_of(tables, plain(activities["correlation"]))
    streams, ends = plain(activities["stream"]), plain(activities["end"]).astype(np.int64)
    for stream in np.unique(stream_of[found]).tolist():
        own = np.flatnonzero(stream_of[found] == stream)
        rows = np.flatnonzero((streams == stream) & (call >= 0))
        launched = begins[call[rows]]
        order = np.argsort(launched, kind="stable")
        latest = np.append(0, np.maximum.accumulate(ends[rows[order]]))
        done = latest[np.searchsorted(launched[order], begins[found[own]])]
        ran[own] = np.maximum(done - CLOCKS_AGREE, ran[own])
    return found, ran
