"""Conversion of a recording to a trace: tracks with events, counters and flows."""

import numpy as np

from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.processes import device_names, part_of_device, processes
from gpuviz.data.columns import codes, plain
from gpuviz.data.escaping import as_unicode
from gpuviz.data.recording_data import RecordingData
from gpuviz.exports.trace_device import KINDS, add_activities
from gpuviz.exports.trace_host import HostTracks, add_calls, add_ranges, add_synchronizations
from gpuviz.exports.trace_lines import Lines
from gpuviz.exports.trace_memory import add_counters, add_moments
from gpuviz.exports.trace_rows import Trace, times_of

_MAIN_THREAD = "MainThread"


def build_trace(recording: RecordingData) -> Trace:
    """Return the trace of a recording: a process for each device, and one for each program."""
    trace = Trace()
    numbers = _Numbers()
    hosts, otherwise = _host_processes(trace, recording, numbers)
    devices = _device_processes(trace, recording, numbers)
    lines = Lines(recording, trace.argument_texts)
    threads = HostTracks(trace, recording, hosts, otherwise)
    add_ranges(trace, recording, threads)
    calls, flows, begun = _flows(recording)
    stacks = plain(recording.tables["api_calls"]["stack"])
    lines_of_calls = lines.of_stacks(stacks)
    add_calls(trace, recording, threads, begun, lines_of_calls)
    add_synchronizations(trace, recording, threads)
    add_activities(trace, recording, devices, flows, _taken(lines_of_calls, calls))
    add_moments(trace, recording, devices, lines)
    add_counters(trace, recording, devices)
    trace.separate()
    return trace


class _Numbers:
    """Process ids of a trace, each of which is used once."""

    def __init__(self) -> None:
        self._used: set[int] = set()

    def own(self, wanted: int) -> int:
        """Return a process id, or a free one if it is used or not possible."""
        number = wanted if 0 < wanted < 2**31 and wanted not in self._used else self.free()
        self._used.add(number)
        return number

    def free(self) -> int:
        """Return the lowest free process id."""
        number = next(each for each in range(1, 2**31) if each not in self._used)
        self._used.add(number)
        return number


def _host_processes(
    trace: Trace, recording: RecordingData, numbers: _Numbers
) -> tuple[dict[int, int], int]:
    """Return the position of the process of each thread, and that of all other threads."""
    rows = recording.tables["processes"].to_pylist()
    if not rows:
        program = _program_name(" ".join(recording.manifest.program))
        host = _host_name(recording)
        return {}, trace.add_process(program, numbers.own(_program_id(recording)), host)
    hosts: dict[int, int] = {}
    positions: list[int] = []
    for row, process in zip(rows, processes(recording), strict=True):
        name = _program_name(f"{row['name']}: {row['program']}".rstrip(": "))
        host = _host_name(process.recording)
        positions.append(trace.add_process(name, numbers.own(row["process_id"]), host))
        hosts |= dict.fromkeys(row["threads"], positions[-1])
    return hosts, positions[0]


def _host_name(recording: RecordingData) -> str:
    return as_unicode(recording.manifest.host)


def _program_name(program: str) -> str:
    # Undecodable bytes of a command line are lone surrogates.
    return as_unicode(program) or "host"


def _program_id(recording: RecordingData) -> int:
    """Return the process id of the program; on Linux, that of its main thread."""
    threads = recording.tables["threads"].to_pylist()
    main = [row["id"] for row in threads if row["name"] == _MAIN_THREAD]
    return int(main[0]) if main and 0 < main[0] < 2**31 else 1


def _device_processes(trace: Trace, recording: RecordingData, numbers: _Numbers) -> dict[int, int]:
    """Return the position of each device's process; ids start at 1 and skip the programs'."""
    devices = recording.tables["devices"].to_pydict()
    names = dict(zip(devices["id"], devices["name"], strict=True))
    processes = {}
    labels = device_names(recording)
    for device in _devices(recording):
        name = names.get(device, "")
        label = labels.get(device, f"GPU {device}")
        title = f"{label}: {name}" if name else label
        host = _host_name(part_of_device(recording, device))
        processes[device] = trace.add_process(title, numbers.free(), host)
    return processes


def _devices(recording: RecordingData) -> list[int]:
    sampled = recording.tables["device_memory"]["device"].unique().to_pylist()
    return sorted({*recording.devices, *sampled})


def _flows(recording: RecordingData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the call and the flow of each activity, and the number of flows from each call.

    The call is -1 and the flow 0 if there is none. Flows are numbered from 1, call by call. If the
    clocks disagree so that a flow would go backward in time, it is omitted.
    """
    activities, api_calls = recording.tables["activities"], recording.tables["api_calls"]
    calls = calls_of(recording.tables, plain(activities["correlation"]))
    calls[codes(activities["kind"], KINDS) == KINDS.index("range")] = -1
    flows = np.zeros(len(calls), np.uint64)
    rows = np.flatnonzero(calls >= 0)
    rows = rows[times_of(api_calls)[calls[rows]] < times_of(activities)[rows]]
    rows = rows[np.argsort(calls[rows], kind="stable")]
    flows[rows] = np.arange(1, len(rows) + 1)
    return calls, flows, np.bincount(calls[rows], minlength=api_calls.num_rows)


def _taken(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    taken = np.full(len(rows), -1, np.int64)
    taken[rows >= 0] = values[rows[rows >= 0]]
    return taken


def description(recording: RecordingData) -> str:
    """Return a description of the recording for a reader of the trace."""
    manifest = recording.manifest
    began = f", begun {manifest.created}" if manifest.created else ""
    sentences = [
        f"Recorded by gpuviz {manifest.gpuviz_version}".rstrip() + f"{began}.",
        "Sizes are bytes.",
        *recording.notes,
    ]
    return as_unicode(" ".join(sentences))
