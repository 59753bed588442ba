"""The processes of a merged recording, each with its own rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from gpuviz.analysis.classification import derive
from gpuviz.analysis.process_rows import ProcessRows
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import plain
from gpuviz.data.derived import OF_ROWS, ROWS
from gpuviz.data.manifest import Manifest
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import Tables

# The class of a recording, which its parts have too.
R_co = TypeVar("R_co", bound="RecordingData", covariant=True)

_FACTS = ("memory_stats", "failures", "delayed_frees", "writes_after_free", "device_links")


@dataclass(frozen=True, eq=False)
class Process(Generic[R_co]):
    """A process of a merged recording.

    Attributes:
        id: Its id in ``processes``.
        rank: Its rank; -1 if unknown.
        name: What it is called: its rank, else its host and process id.
        devices: Its devices in the merged recording, with their ordinals in the process.
        clock_error: Bound of the error of its times, in ns; 0 on the host of the first process, -1
            if unknown.
        recording: Its part of the recording, with the same ids and times.
        rows: The numbers of its rows in the merged recording, by table.
    """

    id: int
    rank: int
    name: str
    devices: Mapping[int, int]
    clock_error: int
    recording: R_co
    rows: Mapping[str, np.ndarray]


@Once
def processes(recording: RecordingData) -> tuple[Process[RecordingData], ...]:
    """Return the processes of a merged recording; none of a recording of one process."""
    rows = recording.tables["processes"].to_pylist()
    if not rows:
        return ()
    found, facts = ProcessRows(recording.tables, rows), _by_device(recording)
    return tuple(
        _process(recording, row, found.tables(number), found.rows(number), facts)
        for number, row in enumerate(rows)
    )


@Once
def device_names(recording: RecordingData) -> dict[int, str]:
    """Return what the devices of a merged recording are called, such as ``rank 3 GPU 0``."""
    names = {}
    for row in recording.tables["processes"].to_pylist():
        for device, ordinal in zip(row["devices"], row["ordinals"], strict=False):
            names[device] = f"{row['name']} GPU {ordinal}"
    return names


def derive_by_process(
    recording: RecordingData, name: str, window: tuple[int, int] | None
) -> pa.Table:
    """Return a derived table, or its part in a window: nothing is classified across processes.

    Only rows are found in all of them, because ids and addresses of processes differ.
    """
    if name in OF_ROWS:
        return derive(recording.tables, name)
    targets = {column: target for table, column, target in ROWS if table == name}
    parts = []
    for process in processes(recording):
        part = derive(process.recording.tables, name, window)
        rows = {
            column: _of_whole(plain(part[column]), process.rows[target])
            for column, target in targets.items()
        }
        parts.append(with_columns(part, **rows))
    return pa.concat_tables(parts).combine_chunks()


def _of_whole(rows: np.ndarray, of_process: np.ndarray) -> np.ndarray:
    """Return rows of a process as those of the merged recording; -1 stays."""
    found: np.ndarray = np.append(of_process, -1)[rows]
    return found


def part_of_device(recording: RecordingData, device: int) -> RecordingData:
    """Return the part of the process that used a device; the recording itself if it has one."""
    of_device = (each for each in processes(recording) if device in each.devices)
    return next((each.recording for each in of_device), recording)


def _by_device(recording: RecordingData) -> dict[int, dict[str, dict[Any, Any]]]:
    """Return the manifest's facts about each device."""
    found: dict[int, dict[str, dict[Any, Any]]] = {}
    for name in _FACTS:
        for key, value in getattr(recording.manifest, name).items():
            device = str(key).partition(":")[0]
            if device.isdecimal():
                found.setdefault(int(device), {}).setdefault(name, {})[key] = value
    return found


def _process(
    recording: RecordingData,
    row: Mapping[str, Any],
    tables: Tables,
    rows: Mapping[str, np.ndarray],
    by_device: Mapping[int, Mapping[str, dict[Any, Any]]],
) -> Process[RecordingData]:
    facts: dict[str, dict[Any, Any]] = {name: {} for name in _FACTS}
    for device in row["devices"]:
        for name, of_device in by_device.get(device, {}).items():
            facts[name] |= of_device
    part = type(recording)(tables, _manifest(recording, row, rows, facts))
    part.take_path(recording.path)
    return Process(
        id=row["id"],
        rank=row["rank"],
        name=row["name"],
        devices=dict(zip(row["devices"], row["ordinals"], strict=False)),
        clock_error=row["clock_error"],
        recording=part,
        rows=rows,
    )


def _manifest(
    recording: RecordingData,
    row: Mapping[str, Any],
    rows: Mapping[str, np.ndarray],
    facts: Mapping[str, dict[Any, Any]],
) -> Manifest:
    whole = recording.manifest
    try:
        own = Manifest.from_json(row["manifest"])
    except ValueError:
        own = whole
    events = rows["memory_events"]
    known: dict[str, Any] = dict(facts)
    return replace(
        own,
        **known,
        start_unix_ns=whole.start_unix_ns,
        start_monotonic_ns=whole.start_monotonic_ns,
        duration_ns=min(row["end"], recording.duration_ns),
        window_start_ns=whole.window_start_ns,
        window_end_ns=whole.window_end_ns,
        events=len(events),
        initial_events=int((events < whole.initial_events).sum()),
        tables={},
        derived_version=0,
    )
