"""The conclusions of a recording, its hazards, other settings and iterations, stored with it.

`gpuviz.conclusions.store` computes them from the tables of `gpuviz.data.tables` and
`gpuviz.data.derived`. They take longer than those and are small, so that files and reports
contain them where they are known.
"""

import zlib
from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa

from gpuviz.data import tables
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DERIVED_VERSION
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import Tables

# Version of the schemas, of the rules and of the replay; tables of another version are recomputed.
CONCLUSIONS_VERSION = 47

# Tables that earlier versions stored; what they had is concluded again.
RETIRED = frozenset({"findings"})

# An access of the host before the call of its stack; ``host_access`` is one in that line.
HOST_BEFORE_CALL = "host_access_before_call"

# The operations of a hazard, in the order in which they were issued.
SIDES = ("first", "second")

_MARK = b"gpuviz_concluded_from"
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
    "forward_ns",
    "backward_ns",
    "optimizer_ns",
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
    "costs",
)


@cache
def schemas() -> dict[str, pa.Schema]:
    """Return the Arrow schema of every table of conclusions, by name.

    - ``conclusions``: what gpuviz says about the recording, a row each, in the order in which it is
      shown; see `gpuviz.advice.finding.Finding`. ``evidence`` has at most one element; its
      ``rows`` are row numbers of ``table``, and ``begin`` and ``end`` are the window that shows
      them, in ns since the recording's start.
    - ``what_if``: for each device, in the order of their ordinals, the rows that
      `gpuviz.Recording.what_if` returns without arguments.
    - ``iterations``: for each device, in this order, the rows that `gpuviz.Recording.iterations`
      returns.
    - ``shown``: the lists of a page about each device, in their order, as text: findings, and
      hazards one by one. ``rows`` are names of rows of the table ``tab`` of the page. ``begin`` and
      ``end`` are the window that shows it, ``first_activity`` and ``second_activity`` the rows of
      ``activities`` that an arrow joins; -1 if there is none. ``evidence`` are rows of the table
      ``evidence_of`` that show it: of ``memory_events`` counted among those of the device, and for
      ``idle_gaps`` the rows of the ``activities`` that ended them.
    - ``sections``: the sections of a report about each device, in their order, as text; `device` is
      -1 for what is about the recording. Each row is a line of a section, such as a paragraph, the
      ``texts`` of a table's headings, or a row of it; see `gpuviz.present.section`. Without the
      table, as in what is no report, a page has no such sections.
    - ``other_memory``: samples of the bytes of each device outside the recorded allocators, at most
      a thousand.
    - ``host_work``: what the host did while each device was idle because of it, in order of time,
      as far as it is known; of very many pieces the longest. ``activity`` is the row of the
      activity that ended the idle time, ``text`` names the work, and ``stack`` is one of its call
      stacks, 0 if unknown.
    - ``categories``: what blocks hold of which that is known: the ``event`` that allocated a block,
      counted among the ``memory_events`` of its ``device``, and the ``category``; see
      `gpuviz.analysis.categories.block_categories`. Without the table, or if it is empty, they are
      unknown.
    - ``phases``: the forward and backward passes and the steps of optimizers of training programs,
      from the begin of their first CUDA call or allocation to the end of the last, in the columns
      of ``ranges``; ``kind`` is ``forward``, ``backward`` or ``optimizer``, and ``thread`` the one
      that trains, also of a backward pass, for which it waits. A pass is in two rows if the thread
      does something else in between, and in none if threads train beside each other or if calls
      were not recorded. Without the table they are unknown.
    - ``hazards``: one row for each hazard that `gpuviz.Recording.hazards` returns, in that order;
      see `gpuviz.hazards.hazard.Hazard`. ``block``, ``other_block``, ``free``, ``first_event`` and
      ``second_event`` are row numbers of ``memory_events``, or of ``host_memory_events`` if
      ``memory`` is ``pinned`` and not ``device``, ``first_activity`` and
      ``second_activity`` of ``activities``, ``first_graph_call`` and ``second_graph_call`` of
      ``graph_calls``, -1 if there is none. ``free`` freed the block of the first operation. Without
      the table, the hazards are unknown.
    """
    text, whole = pa.utf8(), pa.int64()
    line = {"site": text, "source": text, "amount": text, "stack": pa.uint32()}
    evidence = {"table": text, "rows": pa.list_(pa.int32()), "begin": whole, "end": whole}
    return {
        "conclusions": pa.schema(
            {
                "kind": pa.dictionary(pa.int8(), text),
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
                "working_ns": whole,
                "peak_bytes": whole,
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
        "shown": pa.schema(
            {
                "device": pa.int16(),
                "list": text,
                "number": pa.int32(),
                **dict.fromkeys(("is_alarm", "is_first", "is_folded"), pa.uint8()),
                **dict.fromkeys(("title", "saving", "tab"), text),
                **dict.fromkeys(
                    ("sentences", "sources", "sites", "short_sites", "amounts", "rows"),
                    pa.list_(text),
                ),
                **dict.fromkeys(("begin", "end", "first_activity", "second_activity"), whole),
                "evidence_of": text,
                "evidence": pa.list_(pa.int32()),
            }
        ),
        "sections": pa.schema(
            {
                "device": pa.int16(),
                **dict.fromkeys(("section", "title", "kind", "label"), text),
                "texts": pa.list_(text),
                "values": pa.list_(pa.float64()),
                **dict.fromkeys(("codes", "places", "hovers"), pa.list_(text)),
                **dict.fromkeys(("begin", "end"), whole),
                "tab": text,
                **dict.fromkeys(("bar_before", "bar_added"), pa.float64()),
                "responsible": text,
            }
        ),
        "phases": tables.schemas()["ranges"],
        "categories": pa.schema({"device": pa.int16(), "event": pa.int32(), "category": text}),
        "other_memory": pa.schema(
            {"device": pa.int16(), **dict.fromkeys(("time", "libraries", "rest"), whole)}
        ),
        "host_work": pa.schema(
            {
                "device": pa.int16(),
                **dict.fromkeys(("time", "end"), whole),
                "activity": pa.int32(),
                "text": text,
                "stack": pa.uint32(),
            }
        ),
        "hazards": pa.schema(
            {
                "kind": text,
                "tier": text,
                "device": pa.int16(),
                "memory": text,
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


def marked(conclusions: Tables, recording: RecordingData) -> dict[str, pa.Table]:
    """Return tables in the form stored in files: with a mark of what they were computed from."""
    if not conclusions:
        return {}
    origin = _origin(recording)
    return {
        name: table.replace_schema_metadata({_MARK: origin + _checksum(table)})
        for name, table in conclusions.items()
    }


@Once
def stored_conclusions(recording: RecordingData) -> dict[str, pa.Table]:
    """Return those tables of the recording's file that this version computed from the recording.

    Their values are not checked: a file has them only if this user's gpuviz wrote them.
    """
    found = {name: recording.stored.get(name) for name in schemas()}
    stored = {name: table for name, table in found.items() if table is not None}
    if not stored:
        return {}
    origin = _origin(recording)
    return {
        name: table.replace_schema_metadata(None)
        for name, table in stored.items()
        if table.schema.equals(schemas()[name], check_metadata=False)
        and (table.schema.metadata or {}).get(_MARK) == origin + _checksum(table)
    }


def _checksum(table: pa.Table) -> bytes:
    return b"%x" % zlib.crc32(repr(table.to_pylist()).encode())


def _origin(recording: RecordingData) -> bytes:
    """Return the versions and a checksum of the recording's tables and of facts about it."""
    manifest = recording.manifest
    checksum = zlib.crc32(repr([getattr(manifest, name) for name in _FACTS]).encode())
    for name in tables.schemas():
        checksum = zlib.crc32(repr([*_sums(name, recording.tables[name])]).encode(), checksum)
    return f"{CONCLUSIONS_VERSION}-{DERIVED_VERSION}-{checksum:x}-".encode()


def _sums(name: str, table: pa.Table) -> Iterator[int]:
    """Yield the row count of a table, the sum of each column of numbers, and the length of texts.

    Columns of repeated texts and of lists are not included.
    """
    yield table.num_rows
    for field in tables.schemas()[name]:
        column = table[field.name]
        if (name, field.name) in tables.DICTIONARIES:
            words = tables.DICTIONARIES[name, field.name]
            yield int(codes(column, words).sum(dtype=np.int64))
        elif pa.types.is_integer(field.type):
            yield int(plain(column).sum(dtype=np.int64)) % 2**64
        elif pa.types.is_string(field.type):
            yield sum(_text_bytes(chunk) for chunk in column.chunks)


def _text_bytes(texts: pa.StringArray) -> int:
    """Return the bytes of all texts together, none of which is null, in UTF-8."""
    if not len(texts):
        return 0
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    return int(offsets[texts.offset + len(texts)] - offsets[texts.offset])
