"""Perfetto's own format: TracePackets with TrackEvents, for ui.perfetto.dev and its SQL."""

from pathlib import Path
from typing import IO

from gpuviz import _core
from gpuviz.data.recording_data import RecordingData
from gpuviz.exports.perfetto_packets import SEQUENCE, clock_packet, text_packets, track_packets
from gpuviz.exports.trace import build_trace, description
from gpuviz.exports.trace_rows import Trace
from gpuviz.formats.output_path import check_free
from gpuviz.formats.whole_file import write_whole


def write(recording: RecordingData, path: Path, *, overwrite: bool = False) -> Path:
    """Write a recording atomically as a Perfetto trace; return the path.

    Times are nanoseconds since the recording's start, or since the first event if that is earlier;
    the file contains the corresponding wall-clock time.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The file cannot be written.
    """
    check_free(path, overwrite=overwrite)
    trace = build_trace(recording)
    return write_whole(
        path, lambda file: write_packets(recording, trace, file), overwrite=overwrite
    )


def write_packets(recording: RecordingData, trace: Trace, file: IO[bytes]) -> None:
    """Write a trace of a recording.

    Args:
        recording: The recording.
        trace: Its trace, or that of one of its hosts.
        file: Where to write.
    """
    zero = -trace.first_time_ns
    started = recording.manifest.start_unix_ns
    file.write(clock_packet(started - zero if started else 0))
    file.writelines(track_packets(trace.shown, description(recording)))
    texts = (trace.names, trace.argument_names, trace.argument_texts)
    file.writelines(text_packets(*(each.all() for each in texts)))
    tables = [table.native() for table in trace.tables]
    _core.write_perfetto_rows(tables, SEQUENCE, zero, file.write)
    for counter in trace.counters:
        _core.write_perfetto_counter(
            counter.track, counter.time, counter.value, SEQUENCE, zero, file.write
        )
