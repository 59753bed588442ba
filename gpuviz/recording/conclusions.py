"""The conclusions of a recording: findings, hazards, other settings, iterations, stored with it.

`gpuviz.advice.conclusions` computes them from the tables of `gpuviz.recording.tables` and
`gpuviz.recording.derived`. They take longer than those and are small, so that files and reports
contain them where they are known.
"""

import re
import zlib
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpuviz.recording import tables
from gpuviz.recording.derived import DERIVED_VERSION
from gpuviz.recording.derived import schemas as derived_schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from gpuviz.recording.recording import Recording

# Version of the schemas, of the rules and of the replay; tables of another version are recomputed.
CONCLUSIONS_VERSION = 4

CERTAINTIES = ("certain", "likely", "possible")
HAZARD_OPERATIONS = ("launch", "copy", "memset", "free", "allocate", "launch_graph", "node")
HAZARD_MODES = ("reads", "writes", "uses", "frees", "reuses")
# The operations of a hazard, in the order in which they were issued.
SIDES = ("first", "second")

_MARK = b"gpuviz_concluded_from"
# Far more than any recording leads to.
_MOST_BYTES = 16 << 20
_RULE = re.compile(r"R\d{2}")
# Columns that nothing is concluded from.
_UNUSED = (("frames", "context"), ("frames", "context_line"))
_NULLABLE = {
    ("what_if", column)
    for column in (
        "peak_reserved",
        "peak_reserved_lower",
        "num_alloc_retries",
        "num_ooms",
        "first_failure",
        "first_failure_ns",
        "segments",
        "fragmentation",
        "driver_calls",
        "driver_ns",
    )
}
_OF_ITERATIONS = (
    "start",
    "end",
    "duration_ns",
    "peak_bytes",
    "busy_ns",
    "wait_ns",
    "kernel_ns",
    "kernel_count",
    "copy_ns",
    "copy_bytes",
)
# Of the manifest: what conclusions depend on.
_FACTS = (
    "start_unix_ns",
    "duration_ns",
    "window_start_ns",
    "window_end_ns",
    "complete",
    "cupy",
    "allocator",
    "allocator_name",
    "settings",
    "dropped",
    "dropped_oldest",
    "dropped_activities",
    "dropped_oldest_activities",
    "initial_events",
)


@cache
def schemas() -> "dict[str, pa.Schema]":
    """Return the Arrow schema of every table of conclusions, by name.

    - ``findings``: one row for each finding that `gpuviz.Recording.findings` returns, in that
      order; see `gpuviz.advice.finding.Finding`. ``evidence`` has at most one element; its
      ``rows`` are row numbers of ``table``, and ``begin`` and ``end`` are the window that shows
      them, in ns since the recording's start.
    - ``what_if``: for each device, in the order of their ordinals, the rows that
      `gpuviz.Recording.what_if` returns without arguments.
    - ``iterations``: for each device, in this order, the rows that `gpuviz.Recording.iterations`
      returns.
    - ``hazards``: one row for each hazard that `gpuviz.Recording.hazards` returns, in that order;
      see `gpuviz.hazards.hazard.Hazard`. ``block``, ``other_block``, ``free``, ``first_event`` and
      ``second_event`` are row numbers of ``memory_events``, ``first_activity`` and
      ``second_activity`` of ``activities``, ``first_graph_call`` and ``second_graph_call`` of
      ``graph_calls``, -1 if there is none. ``free`` freed the block of the first operation. Without
      the table, the hazards are unknown.
    """
    import pyarrow as pa

    text, whole = pa.utf8(), pa.int64()
    line = {"site": text, "source": text, "amount": text, "stack": pa.uint32()}
    evidence = {"table": text, "rows": pa.list_(pa.int32()), "begin": whole, "end": whole}
    return {
        "findings": pa.schema(
            {
                "rule": text,
                "title": text,
                "reason": text,
                "change": text,
                "certainty": pa.dictionary(pa.int8(), text),
                "device": pa.int16(),
                "saved_bytes": whole,
                "saved_reserved_bytes": whole,
                "saved_ns": whole,
                "further_bytes": whole,
                "further_ns": whole,
                "lines": pa.list_(pa.struct(list(line.items()))),
                "evidence": pa.list_(pa.struct(list(evidence.items()))),
            }
        ),
        "what_if": pa.schema(
            {
                "device": pa.int16(),
                "settings": text,
                "peak_allocated": whole,
                "peak_reserved": whole,
                "peak_reserved_lower": whole,
                "num_alloc_retries": whole,
                "num_ooms": whole,
                "first_failure": whole,
                "first_failure_ns": whole,
                "segments": whole,
                "fragmentation": pa.float64(),
                "driver_calls": whole,
                "driver_ns": whole,
            }
        ),
        "iterations": pa.schema(
            {
                "device": pa.int16(),
                "number": pa.int32(),
                "name": text,
                **dict.fromkeys(_OF_ITERATIONS, whole),
            }
        ),
        "hazards": pa.schema(
            {
                "kind": text,
                "tier": text,
                "device": pa.int16(),
                **dict.fromkeys(("block", "other_block", "free", "bytes", "count"), whole),
                "showed": pa.uint8(),
                **{
                    f"{side}_{name}": kind
                    for side in SIDES
                    for name, kind in (
                        ("operation", text),
                        ("mode", text),
                        ("stack", pa.uint32()),
                        ("stream", pa.uint32()),
                        ("activity", whole),
                        ("event", whole),
                        ("graph_call", whole),
                    )
                },
            }
        ),
    }


def marked(conclusions: "Mapping[str, pa.Table]", recording: "Recording") -> "dict[str, pa.Table]":
    """Return tables in the form stored in files: with a mark of what they were computed from."""
    if not conclusions:
        return {}
    origin = _origin(recording)
    return {
        name: table.replace_schema_metadata({_MARK: origin + _checksum(table)})
        for name, table in conclusions.items()
    }


def fitting(conclusions: "Mapping[str, pa.Table]", recording: "Recording") -> "dict[str, pa.Table]":
    """Return those tables of a file that were computed from this recording.

    Tables that have changed since, that have invalid columns or values, or that refer to rows, call
    stacks or devices that do not exist are left out.
    """
    if not conclusions:
        return {}
    origin = _origin(recording)
    return {
        name: table.replace_schema_metadata(None)
        for name, table in conclusions.items()
        if _conforms(name, table, recording)
        and (table.schema.metadata or {}).get(_MARK) == origin + _checksum(table)
    }


def _conforms(name: str, table: "pa.Table", recording: "Recording") -> bool:
    schema = schemas()[name]
    if not table.schema.equals(schema, check_metadata=False) or table.nbytes > _MOST_BYTES:
        return False
    required = (field.name for field in schema if (name, field.name) not in _NULLABLE)
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
    import pyarrow as pa

    if array.null_count:
        return True
    if pa.types.is_dictionary(array.type):
        return bool(array.dictionary.null_count)
    if pa.types.is_list(array.type):
        return _has_nulls(array.flatten())
    return pa.types.is_struct(array.type) and any(map(_has_nulls, array.flatten()))


def _are_findings(table: "pa.Table", recording: "Recording") -> bool:
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


def _are_hazards(table: "pa.Table", recording: "Recording") -> bool:
    """Return whether every value of ``hazards`` is possible in a recording."""
    from gpuviz._core import HazardKind, HazardTier

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
    from gpuviz.analysis.columns import plain

    number, device, start, end, duration, *others = (
        plain(table[name]) for name in ("number", "device", *_OF_ITERATIONS)
    )
    is_next = device[1:] == device[:-1]
    return bool(
        (number[1:] == number[:-1] + 1)[is_next].all()
        and (start[1:] >= end[:-1])[is_next].all()
        and (duration == end - start).all()
        and all((values >= 0).all() for values in (start, duration, *others))
    )


def _is_evidence(evidence: "dict[str, Any]", recording: "Recording") -> bool:
    name, rows = evidence["table"], evidence["rows"]
    if name not in tables.schemas() and name not in derived_schemas():
        return False
    ascending = all(before < after for before, after in pairwise(rows))
    there = not rows or (rows[0] >= 0 and rows[-1] < recording.table(name).num_rows)
    return ascending and there and evidence["begin"] <= evidence["end"]


def _checksum(table: "pa.Table") -> bytes:
    return b"%x" % zlib.crc32(repr(table.to_pylist()).encode())


def _origin(recording: "Recording") -> bytes:
    """Return the versions and a checksum of the recording's tables and of facts about it."""
    manifest = recording.manifest
    checksum = zlib.crc32(repr([getattr(manifest, name) for name in _FACTS]).encode())
    for name in tables.schemas():
        checksum = zlib.crc32(repr([*_sums(name, recording.tables[name])]).encode(), checksum)
    return f"{CONCLUSIONS_VERSION}-{DERIVED_VERSION}-{checksum:x}-".encode()


def _sums(name: str, table: "pa.Table") -> "Iterator[int]":
    """Yield the row count of a table, the sum of each column of numbers, and the length of texts.

    Columns of repeated texts and of lists are not included, and those that nothing is concluded
    from.
    """
    import numpy as np
    import pyarrow as pa

    from gpuviz.analysis.columns import codes, plain

    yield table.num_rows
    for field in tables.schemas()[name]:
        if (name, field.name) in _UNUSED:
            continue
        column = table[field.name]
        if (name, field.name) in tables.DICTIONARIES:
            words = tables.DICTIONARIES[name, field.name]
            yield int(codes(column, words).sum(dtype=np.int64))
        elif pa.types.is_integer(field.type):
            yield int(plain(column).sum(dtype=np.int64)) % 2**64
        elif pa.types.is_string(field.type):
            yield sum(_text_bytes(chunk) for chunk in column.chunks)


def _text_bytes(texts: "pa.StringArray") -> int:
    """Return the bytes of all texts together, none of which is null, in UTF-8."""
    import numpy as np

    if not len(texts):
        return 0
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    return int(offsets[texts.offset + len(texts)] - offsets[texts.offset])
