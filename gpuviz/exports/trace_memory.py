"""Memory in a trace: counters and instants."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from gpuviz.analysis.levels import memory_levels
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.exports.trace_lines import Lines
from gpuviz.exports.trace_rows import Counter, EventTable, Trace, present, times_of

# Perfetto's user interface sorts tracks by name; a common start keeps these together.
LEVELS = {
    "memory requested": "requested",
    "memory allocated": "allocated",
    "memory active": "active",
    "memory reserved": "reserved",
}
DEVICE_USED = "memory used on device"
_RELEASES = ("segment_free", "segment_unmap")
OOM = "out of memory"
SNAPSHOT = "snapshot"
RELEASE = "segments released"
EMPTY_CACHE = "empty_cache()"


def add_counters(trace: Trace, recording: RecordingData, devices: Mapping[int, int]) -> None:
    """Add the totals of each device in bytes, one value per change."""
    levels, used = memory_levels(recording), recording.tables["device_memory"]
    of_levels, of_used = plain(levels["device"]), plain(used["device"])
    times, times_used = times_of(levels), times_of(used)
    for device, process in devices.items():
        rows = np.flatnonzero(of_levels == device)
        for name, level in LEVELS.items():
            _add_counter(trace, name, process, times[rows], plain(levels[level])[rows])
        rows = np.flatnonzero(of_used == device)
        _add_counter(trace, DEVICE_USED, process, times_used[rows], plain(used["used"])[rows])


def _add_counter(
    trace: Trace,
    name: str,
    process: int,
    time: np.ndarray,
    value: np.ndarray,
) -> None:
    if not len(time):
        return
    changed = np.flatnonzero(np.diff(value, prepend=value[0] - 1))
    track = trace.add_track(name, process, "counter")
    trace.counters.append(
        Counter(
            track,
            np.ascontiguousarray(time[changed], np.int64),
            np.ascontiguousarray(value[changed], np.int64),
        )
    )


def add_moments(
    trace: Trace,
    recording: RecordingData,
    devices: Mapping[int, int],
    lines: Lines,
) -> None:
    """Add out of memory, snapshots, empty_cache, and each time that segments were released."""
    events = recording.tables["memory_events"]
    actions, device = codes(events["action"], ACTIONS), plain(events["device"])
    first = recording.manifest.initial_events
    own = np.arange(len(actions)) >= first
    failed = np.flatnonzero(own & (actions == ACTIONS.index("oom")))
    taken = np.flatnonzero(own & (actions == ACTIONS.index("snapshot")))
    emptied = np.flatnonzero(own & (actions == ACTIONS.index("empty_cache")))
    starts, counts, sizes = _releases(actions, device, plain(events["size"]), first)
    free = np.minimum(plain(events["address"])[failed], np.uint64(2**63 - 1)).astype(np.int64)
    failure = {
        "requested bytes": plain(events["requested_size"])[failed],
        "bytes": plain(events["size"])[failed],
        "device's free bytes": free,
        "stream": present(plain(events["stream"])[failed]),
    }
    moments: dict[str, tuple[np.ndarray, dict[str, np.ndarray]]] = {
        OOM: (failed, failure),
        SNAPSHOT: (taken, {}),
        RELEASE: (starts, {"segments": counts, "bytes": sizes}),
        EMPTY_CACHE: (emptied, {"bytes": plain(events["size"])[emptied]}),
    }
    rows_of_all = np.concatenate([rows for rows, _ in moments.values()])
    tracks = _memory_tracks(trace, devices, device, rows_of_all)
    for name, (rows, arguments) in moments.items():
        if len(rows):
            chosen = events.take(rows)
            trace.tables.append(_moments(trace, name, chosen, tracks, arguments, lines))


def _moments(  # noqa: PLR0913, PLR0917
    trace: Trace,
    name: str,
    events: pa.Table,
    tracks: Mapping[int, int],
    arguments: Mapping[str, np.ndarray],
    lines: Lines,
) -> EventTable:
    time = times_of(events)
    numbers = [trace.number(each, values) for each, values in arguments.items()]
    return EventTable(
        category=trace.names.position("memory"),
        instant=True,
        time=time,
        end=time,
        track=np.array([tracks[each] for each in plain(events["device"]).tolist()], np.uint32),
        name=np.full(len(time), trace.names.position(name)),
        arguments=[*numbers, trace.text("line", lines.of_stacks(plain(events["stack"])))],
    )


def _releases(
    actions: np.ndarray,
    device: np.ndarray,
    size: np.ndarray,
    first: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first event, count and bytes of each run of releases on a device."""
    codes_of_release = [ACTIONS.index(action) for action in _RELEASES]
    is_release = np.isin(actions, codes_of_release) & (np.arange(len(actions)) >= first)
    starts, counts, sizes = [], [], []
    for each in np.unique(device[is_release]).tolist():
        rows = np.flatnonzero(device == each)
        of_device = is_release[rows].astype(np.int8)
        edges = np.diff(of_device, prepend=0, append=0)
        begin, end = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        total = np.concatenate([[0], np.cumsum(size[rows] * of_device)])
        starts.append(rows[begin])
        counts.append(end - begin)
        sizes.append(total[end] - total[begin])
    if not starts:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    return np.concatenate(starts), np.concatenate(counts), np.concatenate(sizes)


def _memory_tracks(
    trace: Trace,
    devices: Mapping[int, int],
    device: np.ndarray,
    rows: np.ndarray,
) -> dict[int, int]:
    seen = np.unique(device[rows]).tolist()
    return {each: trace.add_track("memory events", devices[each]) for each in seen}
