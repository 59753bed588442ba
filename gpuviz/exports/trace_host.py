"""Host activities in a trace: one track per thread."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from gpuviz.analysis.calls import call_kinds
from gpuviz.analysis.launches import calls_of, durations
from gpuviz.analysis.phases import phase_rows
from gpuviz.data.codes import ALL_RANGE_KINDS, CallKind
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES
from gpuviz.exports.trace_device import named
from gpuviz.exports.trace_rows import EventTable, Trace, present, times_of

_WAITS = ("event_synchronize", "stream_synchronize", "context_synchronize")
UNKNOWN_THREAD = "unknown thread"


class HostTracks:
    """The tracks of threads, created on first use.

    Args:
        trace: The trace to add to.
        recording: The recording, for the names of threads.
        hosts: The position of the track of each thread's process.
        otherwise: That of threads which are not in ``hosts``.
    """

    def __init__(
        self, trace: Trace, recording: RecordingData, hosts: Mapping[int, int], otherwise: int
    ) -> None:
        threads = recording.tables["threads"].to_pydict()
        self._names = dict(zip(threads["id"], threads["name"], strict=True))
        self._trace = trace
        self._hosts = hosts
        self._otherwise = otherwise
        self._tracks: dict[int, int] = {}

    def of(self, threads: np.ndarray) -> np.ndarray:
        """Return the track of each of the operating system's thread ids; 0 if unknown."""
        distinct, rows = np.unique(threads, return_inverse=True)
        tracks = [self._track(thread) for thread in distinct.tolist()]
        return np.array(tracks, np.uint32)[rows.reshape(-1)]

    def _track(self, thread: int) -> int:
        if thread not in self._tracks:
            name = self._names.get(thread) or (f"thread {thread}" if thread else UNKNOWN_THREAD)
            process = self._hosts.get(thread, self._otherwise)
            self._tracks[thread] = self._trace.add_track(name, process, "thread", thread)
        return self._tracks[thread]


def add_calls(
    trace: Trace,
    recording: RecordingData,
    tracks: HostTracks,
    arriving: np.ndarray,
    lines: np.ndarray,
) -> None:
    """Add the CUDA calls.

    Args:
        trace: The trace to add to.
        recording: The recording.
        tracks: The tracks of threads.
        arriving: The number of flows from each call; flows are numbered from 1, call by call.
        lines: For each call, the text number of the line that made it; -1 if unknown.
    """
    calls = recording.tables["api_calls"]
    time = times_of(calls)
    table = EventTable(
        category=trace.names.position("call"),
        contains=True,
        time=time,
        end=time + durations(calls),
        track=tracks.of(plain(calls["thread"])),
        name=named(trace, recording, plain(calls["name"]), "call"),
        first_flow=1 + np.cumsum(arriving) - arriving,
        flow_count=arriving,
        arguments=[
            trace.number("correlation", present(plain(calls["correlation"]))),
            trace.text("line", lines),
        ],
    )
    trace.tables.append(table)


def add_ranges(trace: Trace, recording: RecordingData, tracks: HostTracks) -> None:
    """Add cells, ranges, NVTX ranges and phases; open ranges end with the recording."""
    ranges = pa.concat_tables([recording.tables["ranges"], phase_rows(recording)])
    kinds = codes(ranges["kind"], ALL_RANGE_KINDS)
    time = times_of(ranges)
    is_open = plain(ranges["end"]) == -1
    end = np.where(is_open, np.maximum(recording.duration_ns, time), time + durations(ranges))
    track = tracks.of(plain(ranges["thread"]))
    for code, kind in enumerate(ALL_RANGE_KINDS):
        rows = np.flatnonzero(kinds == code)
        if not len(rows):
            continue
        table = EventTable(
            category=trace.names.position(kind),
            contains=True,
            time=time[rows],
            end=end[rows],
            track=track[rows],
            name=named(trace, recording, plain(ranges["name"])[rows], kind),
            arguments=[
                trace.number("range", plain(ranges["id"])[rows].astype(np.int64)),
                trace.number("still open at the end", present(is_open[rows].astype(np.int64))),
            ],
        )
        trace.tables.append(table)


def add_synchronizations(trace: Trace, recording: RecordingData, tracks: HostTracks) -> None:
    """Add the times during which threads waited for the GPU; queries do not wait."""
    table = recording.tables["synchronizations"]
    kinds = codes(table["kind"], DICTIONARIES["synchronizations", "kind"])
    known = [DICTIONARIES["synchronizations", "kind"].index(kind) for kind in _WAITS]
    calls = calls_of(recording.tables, plain(table["correlation"]))
    kinds_of_calls = call_kinds(recording.tables)
    waited = np.isin(kinds, known)
    if len(kinds_of_calls):
        # Calls that wait are always recorded, queries only when all calls are.
        waited &= (calls >= 0) & (kinds_of_calls[calls] != CallKind.QUERY)
    rows = np.flatnonzero(waited)
    chosen, calls = table.take(rows), calls[rows]
    threads = np.zeros(len(rows), np.uint32)
    threads[calls >= 0] = plain(recording.tables["api_calls"]["thread"])[calls[calls >= 0]]
    positions = np.zeros(max(known) + 1, np.int64)
    positions[known] = [trace.names.position(kind.replace("_", " ")) for kind in _WAITS]
    time = times_of(chosen)
    trace.tables.append(
        EventTable(
            category=trace.names.position("synchronization"),
            time=time,
            end=time + durations(chosen),
            track=tracks.of(threads),
            name=positions[kinds[rows]],
            arguments=[
                trace.number("device", plain(chosen["device"]).astype(np.int64)),
                trace.number("stream", present(plain(chosen["stream"]))),
                trace.number("event", present(plain(chosen["event"]))),
                trace.number("correlation", present(plain(chosen["correlation"]))),
            ],
        )
    )
