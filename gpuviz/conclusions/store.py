"""The conclusions of a recording, read from its file or computed on first use."""

from collections.abc import Callable, Mapping
from contextlib import suppress

import pyarrow as pa

from gpuviz._core import DeviceError
from gpuviz.analysis.categories import category_rows, is_training
from gpuviz.analysis.host_work import host_work_rows
from gpuviz.analysis.iterations import iterations
from gpuviz.analysis.other_memory import other_memory_samples
from gpuviz.analysis.phases import phase_rows
from gpuviz.analysis.processes import part_of_device
from gpuviz.analysis.what_if import what_if
from gpuviz.conclusions.ranking import conclusions
from gpuviz.conclusions.rows import table_of
from gpuviz.conclusions.shown import shown_conclusions
from gpuviz.data.columns import plain
from gpuviz.data.conclusions import marked, schemas, stored_conclusions
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import Tables
from gpuviz.errors import RecordingError
from gpuviz.hazards.known import known_hazards

# Rows of memory events and activities whose conclusions take about a tenth of a second.
_MOST_CHEAP_ROWS = 10_000
# Memory events; replays of more would take a noticeable part of writing a report.
_MOST_REPLAYED = 200_000
# Memory events; the categories of more blocks would be a noticeable part of a report.
MOST_CATEGORIZED = 500_000


@Once
def _what_if_by_device(recording: RecordingData) -> dict[int, pa.Table]:
    stored = stored_conclusions(recording).get("what_if")
    return {} if stored is None else _by_device(stored)


@Once
def _iterations_by_device(recording: RecordingData) -> dict[int, pa.Table]:
    stored = stored_conclusions(recording).get("iterations")
    if stored is None:
        return {}
    none = schemas()["iterations"].empty_table().drop_columns(["device"])
    return dict.fromkeys(recording.devices, none) | _by_device(stored)


def known_what_if(recording: RecordingData, device: int) -> pa.Table:
    """Return what a device would need under the settings that matter.

    Raises:
        FormatError: The recording lacks the description of a stream.
        RecordingError: Two allocators were recorded.
    """
    known = _what_if_by_device(recording)
    if device not in known:
        known[device] = what_if(recording, device=device)
    return known[device]


def affordable_what_if(recording: RecordingData, device: int) -> pa.Table | None:
    """Return what a device would need under other settings; None if that would take long.

    Raises:
        RecordingError: As `known_what_if`.
    """
    is_long = recording.tables["memory_events"].num_rows > _MOST_REPLAYED
    if is_long:
        return _what_if_by_device(recording).get(device)
    return known_what_if(recording, device)


def known_iterations(recording: RecordingData, device: int) -> pa.Table:
    """Return the iterations of the program's main loop, and their costs on a device."""
    known = _iterations_by_device(recording)
    if device not in known:
        known[device] = iterations(part_of_device(recording, device), device)
    return known[device]


# Tables of the whole recording.
_DRAWN: dict[str, Callable[[RecordingData], pa.Table]] = {
    "shown": shown_conclusions,
    "other_memory": other_memory_samples,
    "host_work": host_work_rows,
    "categories": category_rows,
    "phases": phase_rows,
}


def conclusion_table(recording: RecordingData, name: str) -> pa.Table:
    """Return a table of `gpuviz.data.conclusions.schemas` by name.

    Raises:
        RecordingError: As `known_what_if`.
    """
    if name == "conclusions":
        return table_of(conclusions(recording))
    if name == "sections":
        # Only reports have them.
        return stored_conclusions(recording).get(name, schemas()[name].empty_table())
    if name in _DRAWN:
        return _DRAWN[name](recording)
    if name == "hazards":
        found = known_hazards(recording)
        return schemas()[name].empty_table() if isinstance(found, str) else found
    of_device = known_iterations if name == "iterations" else known_what_if
    return _joined(name, {each: of_device(recording, each) for each in recording.devices})


def for_file(recording: RecordingData) -> dict[str, pa.Table]:
    """Return the marked tables of a file: what is known, or cheap to compute."""
    rows = sum(recording.tables[name].num_rows for name in ("memory_events", "activities"))
    if rows <= _MOST_CHEAP_ROWS:
        # Whatever a rule makes of unusual rows, a recording must be saved.
        with suppress(Exception):
            conclusions(recording)
            conclusion_table(recording, "iterations")
            conclusion_table(recording, "host_work")
    return for_recorder(recording)


def for_recorder(recording: RecordingData) -> dict[str, pa.Table]:
    """Return the marked tables of the file that a recorder writes: what it was asked for."""
    if recording.manifest.hazards:
        with suppress(Exception):
            known_hazards(recording)
    return _known(recording, of_training(recording))


def for_report(recording: RecordingData, sections: pa.Table) -> dict[str, pa.Table]:
    """Return the marked tables of a report; those of other settings only if affordable.

    Args:
        recording: The recording.
        sections: The sections of the report.
    """
    conclusions(recording)
    conclusion_table(recording, "iterations")
    for device in recording.devices:
        with suppress(RecordingError, DeviceError):
            affordable_what_if(recording, device)
    conclusion_table(recording, "host_work")
    drawn = {name: conclusion_table(recording, name) for name in ("shown", "other_memory")}
    return _known(recording, drawn | of_training(recording) | {"sections": sections})


def for_views(recording: RecordingData) -> dict[str, pa.Table]:
    """Return what a view of a finished recording draws beside its rows and derived tables."""
    return {"host_work": host_work_rows(recording)} | of_training(recording)


def of_training(recording: RecordingData) -> dict[str, pa.Table]:
    """Return what is drawn of a training program; nothing of other programs."""
    found: dict[str, pa.Table] = {}
    # Whatever unusual rows make of it, a recording must be saved and its end be shown.
    with suppress(Exception):
        if is_training(recording):
            found["phases"] = phase_rows(recording)
            if recording.tables["memory_events"].num_rows <= MOST_CATEGORIZED:
                found["categories"] = category_rows(recording)
    return found


def _known(recording: RecordingData, drawn: Tables) -> dict[str, pa.Table]:
    """Return the marked tables that are known, and those that a page draws."""
    stored = stored_conclusions(recording)
    found: dict[str, pa.Table] = {}
    if conclusions.is_known(recording) or "conclusions" in stored:
        found["conclusions"] = table_of(conclusions(recording))
    if host_work_rows.is_known(recording):
        found["host_work"] = host_work_rows(recording)
    by_device = {
        "what_if": _what_if_by_device(recording),
        "iterations": _iterations_by_device(recording),
    }
    found |= {name: _joined(name, tables) for name, tables in by_device.items() if tables}
    if known_hazards.is_known(recording) or "hazards" in stored:
        hazards = known_hazards(recording)
        if not isinstance(hazards, str):
            found["hazards"] = hazards
    return marked(found | dict(drawn), recording)


def _joined(name: str, by_device: Mapping[int, pa.Table]) -> pa.Table:
    schema = schemas()[name]
    parts = [schema.empty_table()]
    for device, rows in sorted(by_device.items()):
        devices = pa.array([device] * rows.num_rows, pa.int16())
        parts.append(rows.add_column(0, schema.field("device"), devices))
    return pa.concat_tables(parts)


def _by_device(table: pa.Table) -> dict[int, pa.Table]:
    devices = plain(table["device"])
    rows = table.drop_columns(["device"])
    return {device: rows.filter(devices == device) for device in set(devices.tolist())}
