"""The conclusions of a recording, read from its file or computed on first use."""

from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpuviz._core import DeviceError
from gpuviz.advice.finding import Evidence, Finding, Line
from gpuviz.advice.findings import findings
from gpuviz.analysis.iterations import iterations
from gpuviz.analysis.processes import part_of_device
from gpuviz.analysis.what_if import what_if
from gpuviz.conclusions.ranking import ranked
from gpuviz.data.columns import plain
from gpuviz.data.conclusions import marked, schemas, stored_conclusions
from gpuviz.data.once import Once
from gpuviz.hazards.known import known_hazards

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuviz.data.recording_data import RecordingData

# Rows of memory events and activities whose conclusions take about a tenth of a second.
_MOST_CHEAP_ROWS = 10_000
# Memory events; replays of more would take a noticeable part of writing a report.
_MOST_REPLAYED = 200_000
# What a damaged recording leads to may be larger.
_MOST = 2**63 - 1


@Once
def conclusions(recording: "RecordingData") -> "tuple[Finding, ...]":
    """Return what gpuviz says about a recording, in the order in which every medium shows it."""
    stored = stored_conclusions(recording).get("conclusions")
    if stored is not None:
        return tuple(map(_finding, stored.to_pylist()))
    return ranked(recording, findings(recording))


def known_findings(recording: "RecordingData") -> "tuple[Finding, ...]":
    """Return the findings that are worth showing, most saving first."""
    return tuple(each for each in conclusions(recording) if each.kind in {"hazard", "finding"})


@Once
def _what_if_by_device(recording: "RecordingData") -> "dict[int, pa.Table]":
    stored = stored_conclusions(recording).get("what_if")
    return {} if stored is None else _by_device(stored)


@Once
def _iterations_by_device(recording: "RecordingData") -> "dict[int, pa.Table]":
    stored = stored_conclusions(recording).get("iterations")
    if stored is None:
        return {}
    none = schemas()["iterations"].empty_table().drop_columns(["device"])
    return dict.fromkeys(recording.devices, none) | _by_device(stored)


def known_what_if(recording: "RecordingData", device: int) -> "pa.Table":
    """Return what a device would need under the settings that matter.

    Raises:
        FormatError: The recording lacks the description of a stream.
        ValueError: Two allocators were recorded.
    """
    known = _what_if_by_device(recording)
    if device not in known:
        known[device] = what_if(recording, device=device)
    return known[device]


def affordable_what_if(recording: "RecordingData", device: int) -> "pa.Table | None":
    """Return what a device would need under other settings; None if that would take long.

    Raises:
        ValueError: As `known_what_if`.
    """
    is_long = recording.tables["memory_events"].num_rows > _MOST_REPLAYED
    if is_long:
        return _what_if_by_device(recording).get(device)
    return known_what_if(recording, device)


def known_iterations(recording: "RecordingData", device: int) -> "pa.Table":
    """Return the iterations of the program's main loop, and their costs on a device."""
    known = _iterations_by_device(recording)
    if device not in known:
        known[device] = iterations(part_of_device(recording, device), device)
    return known[device]


def conclusion_table(recording: "RecordingData", name: str) -> "pa.Table":
    """Return a table of `gpuviz.data.conclusions.schemas` by name.

    Raises:
        ValueError: As `known_what_if`.
    """
    if name == "conclusions":
        return _table(conclusions(recording))
    if name == "hazards":
        found = known_hazards(recording)
        return schemas()[name].empty_table() if isinstance(found, str) else found
    of_device = known_iterations if name == "iterations" else known_what_if
    return _joined(name, {each: of_device(recording, each) for each in recording.devices})


def for_file(recording: "RecordingData") -> "dict[str, pa.Table]":
    """Return the marked tables of a file: what is known, or cheap to compute."""
    rows = sum(recording.tables[name].num_rows for name in ("memory_events", "activities"))
    if rows <= _MOST_CHEAP_ROWS:
        # Whatever a rule makes of unusual rows, a recording must be saved.
        with suppress(Exception):
            conclusions(recording)
            conclusion_table(recording, "iterations")
    return for_recorder(recording)


def for_recorder(recording: "RecordingData") -> "dict[str, pa.Table]":
    """Return the marked tables of the file that a recorder writes: what it was asked for."""
    if recording.manifest.hazards:
        with suppress(Exception):
            known_hazards(recording)
    return _known(recording)


def for_report(recording: "RecordingData") -> "dict[str, pa.Table]":
    """Return the marked tables of a report; those of other settings only if affordable."""
    conclusions(recording)
    conclusion_table(recording, "iterations")
    for device in recording.devices:
        with suppress(ValueError, DeviceError):
            affordable_what_if(recording, device)
    return _known(recording)


def _known(recording: "RecordingData") -> "dict[str, pa.Table]":
    stored = stored_conclusions(recording)
    found = {}
    if conclusions.is_known(recording) or "conclusions" in stored:
        found["conclusions"] = _table(conclusions(recording))
    by_device = {
        "what_if": _what_if_by_device(recording),
        "iterations": _iterations_by_device(recording),
    }
    found |= {name: _joined(name, tables) for name, tables in by_device.items() if tables}
    if known_hazards.is_known(recording) or "hazards" in stored:
        hazards = known_hazards(recording)
        if not isinstance(hazards, str):
            found["hazards"] = hazards
    return marked(found, recording)


def _joined(name: str, by_device: "Mapping[int, pa.Table]") -> "pa.Table":
    schema = schemas()[name]
    parts = [schema.empty_table()]
    for device, rows in sorted(by_device.items()):
        devices = pa.array([device] * rows.num_rows, pa.int16())
        parts.append(rows.add_column(0, schema.field("device"), devices))
    return pa.concat_tables(parts)


def _by_device(table: "pa.Table") -> "dict[int, pa.Table]":
    devices = plain(table["device"])
    rows = table.drop_columns(["device"])
    return {device: rows.filter(devices == device) for device in set(devices.tolist())}


def _table(found: "Sequence[Finding]") -> "pa.Table":
    return pa.Table.from_pylist(list(map(_row, found)), schemas()["conclusions"])


def _row(finding: Finding) -> dict[str, Any]:
    row = {name: getattr(finding, name) for name in schemas()["conclusions"].names}
    row |= {name: min(row[name], _MOST) for name in row if isinstance(row[name], int)}
    row["lines"] = list(map(asdict, finding.lines))
    row["evidence"] = [
        {
            "table": each.table,
            "rows": list(each.rows),
            "begin": each.window[0],
            "end": min(each.window[1], _MOST),
        }
        for each in (finding.evidence,)
        if each is not None
    ]
    return row


def _finding(row: dict[str, Any]) -> Finding:
    evidence = [
        Evidence(each["table"], tuple(each["rows"]), (each["begin"], each["end"]))
        for each in row["evidence"]
    ]
    changed = {
        "lines": tuple(Line(**line) for line in row["lines"]),
        "evidence": evidence[0] if evidence else None,
    }
    return Finding(**(row | changed))
