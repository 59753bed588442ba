"""The conclusions that the file of a recording contains, as far as they fit the recording."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpuviz._core import HazardKind, HazardTier
from gpuviz.analysis.derived_tables import derived
from gpuviz.data.columns import plain
from gpuviz.data.conclusions import (
    CERTAINTIES,
    HAZARD_MODES,
    HAZARD_OPERATIONS,
    NULLABLE,
    OF_ITERATIONS,
    SIDES,
    is_of,
    origin_of,
    schemas,
)
from gpuviz.data.once import Once

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

# Far more than any recording leads to.
_MOST_BYTES = 16 << 20
_RULE = re.compile(r"R\d{2}")


@Once
def stored_conclusions(recording: "RecordingData") -> "dict[str, pa.Table]":
    """Return those tables of the recording's file that were computed from this recording.

    Tables that have changed since, that have invalid columns or values, or that refer to rows, call
    stacks or devices that do not exist are left out.
    """
    conclusions = {name: table for name, table in recording.stored.items() if name in schemas()}
    if not conclusions:
        return {}
    origin = origin_of(recording)
    return {
        name: table.replace_schema_metadata(None)
        for name, table in conclusions.items()
        if _conforms(name, table, recording) and is_of(table, origin)
    }


def _conforms(name: str, table: "pa.Table", recording: "RecordingData") -> bool:
    schema = schemas()[name]
    if not table.schema.equals(schema, check_metadata=False) or table.nbytes > _MOST_BYTES:
        return False
    required = (field.name for field in schema if (name, field.name) not in NULLABLE)
    if any(_has_nulls(table[column].combine_chunks()) for column in required):
        return False
    if not set(table["device"].to_pylist()).issubset(recording.devices):
        return False
    if name == "iterations":
        return _are_iterations(table)
    if name == "hazards":
        return _are_hazards(table, recording)
    return name != "findings" or _are_findings(table, recording)


def _has_nulls(array: "pa.Array") -> bool:
    if array.null_count:
        return True
    if pa.types.is_dictionary(array.type):
        return bool(array.dictionary.null_count)
    if pa.types.is_list(array.type):
        return _has_nulls(array.flatten())
    return pa.types.is_struct(array.type) and any(map(_has_nulls, array.flatten()))


def _are_findings(table: "pa.Table", recording: "RecordingData") -> bool:
    """Return whether every value of ``findings`` is possible in a recording."""
    stacks = {0, *recording.tables["stacks"]["id"].to_pylist()}
    return all(
        _RULE.fullmatch(row["rule"])
        and row["certainty"] in CERTAINTIES
        and all(value >= 0 for value in row.values() if isinstance(value, int))
        and all(line["stack"] in stacks for line in row["lines"])
        and len(row["evidence"]) <= 1
        and all(_is_evidence(each, recording) for each in row["evidence"])
        for row in table.to_pylist()
    )


def _are_hazards(table: "pa.Table", recording: "RecordingData") -> bool:
    """Return whether every value of ``hazards`` is possible in a recording."""
    stacks = {0, *recording.tables["stacks"]["id"].to_pylist()}
    kinds, tiers = {each.name for each in HazardKind}, {each.name for each in HazardTier}
    events = recording.tables["memory_events"].num_rows
    activities = recording.tables["activities"].num_rows
    graph_calls = recording.tables["graph_calls"].num_rows
    return all(
        row["kind"] in kinds
        and row["tier"] in tiers
        and 0 <= row["block"] < events
        and all(-1 <= row[name] < events for name in ("other_block", "free"))
        and row["bytes"] >= 0
        and row["count"] > 0
        and row["showed"] in (0, 1)
        and all(
            row[f"{side}_operation"] in HAZARD_OPERATIONS
            and row[f"{side}_mode"] in HAZARD_MODES
            and row[f"{side}_stack"] in stacks
            and -1 <= row[f"{side}_activity"] < activities
            and -1 <= row[f"{side}_event"] < events
            and -1 <= row[f"{side}_graph_call"] < graph_calls
            and (row[f"{side}_operation"] != "node" or row[f"{side}_graph_call"] >= 0)
            for side in SIDES
        )
        for row in table.to_pylist()
    )


def _are_iterations(table: "pa.Table") -> bool:
    """Return whether the values of ``iterations`` are possible: of each device, in order."""
    number, device, start, end, duration, *others = (
        plain(table[name]) for name in ("number", "device", *OF_ITERATIONS)
    )
    is_next = device[1:] == device[:-1]
    return bool(
        (number[1:] == number[:-1] + 1)[is_next].all()
        and (start[1:] >= end[:-1])[is_next].all()
        and (duration == end - start).all()
        and all((values >= 0).all() for values in (start, duration, *others))
    )


def _is_evidence(evidence: "dict[str, Any]", recording: "RecordingData") -> bool:
    name, rows = evidence["table"], evidence["rows"]
    if name not in recording.tables and name not in derived(recording):
        return False
    table = recording.tables[name] if name in recording.tables else derived(recording)[name]
    ascending = all(before < after for before, after in pairwise(rows))
    there = not rows or (rows[0] >= 0 and rows[-1] < table.num_rows)
    return ascending and there and evidence["begin"] <= evidence["end"]
