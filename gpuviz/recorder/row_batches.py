"""Rows of a session as Arrow record batches."""

import threading
from functools import cache
from typing import Any

import pyarrow as pa

from gpuviz.data.arrays import numbers, texts
from gpuviz.data.escaping import as_unicode
from gpuviz.data.implied_columns import host_memories
from gpuviz.data.tables import DICTIONARIES, schemas


def batch(table: str, chunk: "dict[str, Any]") -> "pa.RecordBatch":
    """Return the columns of a native chunk as a batch of ``table``, without copying."""
    schema = schemas()[table]
    if table == "activities":
        names = ("copy_kind", "source", "destination")
        chunk = chunk | {"host_memory": host_memories(*(chunk[name] for name in names))}
    columns = [
        pa.DictionaryArray.from_arrays(
            numbers(chunk[field.name], pa.int8()),
            _words(table, field.name),
            safe=False,
        )
        if (table, field.name) in DICTIONARIES
        else numbers(chunk[field.name], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@cache
def _words(table: str, column: str) -> "pa.Array":
    return texts(DICTIONARIES[table, column])


def pool_rows(ids: list[int], framework: str = "", memory: str = "") -> list[dict[str, Any]]:
    """Return a row of ``pools`` for each id; see `gpuviz.data.tables`."""
    return [
        {
            "id": pool,
            "owner": pool // 2,
            "segment_type": "large" if pool % 2 else "small",
            "framework": framework,
            "memory": memory,
        }
        for pool in ids
    ]


def thread_rows(ids: list[int]) -> list[dict[str, Any]]:
    """Return a row of ``threads`` for each id; threads that have ended are unnamed."""
    names = {thread.native_id: as_unicode(thread.name) for thread in threading.enumerate()}
    return [{"id": thread, "name": names.get(thread, "")} for thread in ids]
