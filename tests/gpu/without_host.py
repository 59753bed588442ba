"""Recordings that name neither their host nor its folders."""

import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpuviz.recording import Recording

_CHECKOUT = Path(__file__).parents[2]
# What is behind them tells code of libraries from that of the program.
_LIBRARIES = r"/.*(?=/(?:site-packages/|dist-packages/|lib/python))"
FOLDERS = re.compile(
    rf"^(?:{_LIBRARIES}|(?:{re.escape(str(_CHECKOUT))}|{tempfile.gettempdir()}/[^/]*)/)"
)
# What processes of one host have in common.
_HOST = {"host": "", "host_hash": "", "boot_id": "host", "program": ()}


def without_host(recording: Recording) -> Recording:
    """Return a recording that names neither its host nor folders."""
    tables = dict(recording.tables)
    for name, column in (("strings", "text"), ("frames", "filename")):
        texts = [FOLDERS.sub("", text) for text in tables[name][column].to_pylist()]
        tables[name] = _with_column(tables[name], column, texts)
    processes = tables["processes"]
    for column, values in (
        ("host", [""] * processes.num_rows),
        ("program", [""] * processes.num_rows),
        ("manifest", [_without_host(text) for text in processes["manifest"].to_pylist()]),
    ):
        tables["processes"] = _with_column(tables["processes"], column, values)
    manifest = replace(recording.manifest, **_HOST)
    return replace(recording, manifest=manifest, tables=tables)


def _with_column(table: pa.Table, column: str, values: list[Any]) -> pa.Table:
    place = table.schema.get_field_index(column)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(values, field.type))


def _without_host(manifest: str) -> str:
    return json.dumps({**json.loads(manifest), **_HOST})
