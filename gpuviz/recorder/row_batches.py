"""Rows of a session as Arrow record batches."""

import os
import threading
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpuviz.analysis.pools import JAX_OWNER, RMM_OWNER, TORCH_OWNER
from gpuviz.data.arrays import numbers, texts
from gpuviz.data.escaping import as_unicode
from gpuviz.data.implied_columns import host_memories
from gpuviz.data.tables import DICTIONARIES, schemas
from gpuviz.recorder.source import Source


def batch(table: str, chunk: dict[str, Any]) -> pa.RecordBatch:
    """Return the columns of a native chunk as a batch of ``table``, without copying."""
    if table == "activities":
        names = ("copy_kind", "source", "destination")
        chunk = chunk | {"host_memory": host_memories(*(chunk[name] for name in names))}
    columns = [
        numbers(chunk[name], kind)
        if words is None
        else pa.DictionaryArray.from_arrays(numbers(chunk[name], kind), words, safe=False)
        for name, kind, words in _columns(table)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schemas()[table])


@cache
def _columns(table: str) -> tuple[tuple[str, pa.DataType, pa.Array | None], ...]:
    """Return the names of a table's columns, and of coded ones the words."""
    return tuple(
        (field.name, pa.int8(), texts(DICTIONARIES[table, field.name]))
        if (table, field.name) in DICTIONARIES
        else (field.name, field.type, None)
        for field in schemas()[table]
    )


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


def rows_of_pools(ids: list[int], source: Source) -> list[dict[str, Any]]:
    """Return a row of ``pools`` for each id that a source or another library has used."""
    own = [pool for pool in ids if pool // 2 < JAX_OWNER]
    of_jax = [pool for pool in ids if pool // 2 == JAX_OWNER]
    of_rmm = [pool for pool in ids if pool // 2 == RMM_OWNER]
    of_torch = [pool for pool in ids if pool // 2 >= TORCH_OWNER]
    return [
        *pool_rows(own, source.framework, source.memory),
        *pool_rows(of_jax, "jax", "device"),
        *pool_rows(of_rmm, "rmm"),
        *pool_rows(of_torch, "torch", "device"),
    ]


def thread_rows(ids: list[int]) -> list[dict[str, Any]]:
    """Return a row of ``threads`` for each id; threads that have ended are unnamed."""
    names = {
        thread.native_id: as_unicode(thread.name)
        for thread in threading.enumerate()
        if not isinstance(thread, threading._DummyThread)  # noqa: SLF001 - a library made it
    }
    return [{"id": thread, "name": names.get(thread) or _name_of_system(thread)} for thread in ids]


def _name_of_system(thread: int) -> str:
    """Return the name that a library gave its own thread, as PyTorch's ``pt_autograd_0``.

    Empty if it gave none: the thread then has the name of its process.
    """
    try:
        name, others = (
            Path(f"/proc/self/task/{each}/comm").read_bytes() for each in (thread, os.getpid())
        )
    except OSError:
        return ""
    return "" if name == others else as_unicode(os.fsdecode(name.rstrip(b"\n")))
