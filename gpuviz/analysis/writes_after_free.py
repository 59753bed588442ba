"""Writes to freed memory, found by ``poison=True``."""

from typing import TYPE_CHECKING

import pyarrow as pa

from gpuviz._core import stream_name
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

_LINES = ("allocated", "freed", "reused")


def writes_after_free(recording: "RecordingData") -> pa.Table:
    """Return the freed blocks whose contents had changed when their memory was used again.

    Columns: ``device``, ``address``, ``bytes`` and ``stream`` of the block, ``offset`` of the first
    changed byte that was found, and the lines ``allocated_at``, ``freed_at`` and ``reused_at``. A
    large block is compared at 512 places only.
    """
    site = recording.call_stacks.call_site
    found = [
        {
            "device": int(device),
            "address": row["address"],
            "bytes": row["size"],
            "stream": stream_name(row["stream"]),
            "offset": row["offset"],
            **{f"{line}_at": site(row[line])[0] for line in _LINES},
        }
        for device, rows in recording.manifest.writes_after_free.items()
        for row in rows
    ]
    numbers = {"device": pa.int16(), "address": pa.uint64(), "bytes": pa.uint64()}
    lines = dict.fromkeys([f"{line}_at" for line in _LINES], pa.utf8())
    schema = pa.schema({**numbers, "stream": pa.utf8(), "offset": pa.uint64(), **lines})
    return pa.Table.from_pylist(found, schema)


def writes_after_free_text(recording: "RecordingData") -> str:
    """Return the same in sentences; empty if there are none."""
    rows = writes_after_free(recording).to_pylist()
    if not rows:
        return ""
    blocks = format_counted(len(rows), "freed block was", "freed blocks were")
    lines = [
        f"  {format_bytes(row['bytes'])} at {row['address']:#x} on the {row['stream']}, changed at "
        f"byte {row['offset']}: allocated at {row['allocated_at']}, freed at {row['freed_at']}, "
        f"used again at {row['reused_at']}"
        for row in rows
    ]
    return "\n".join([f"{blocks} written to before their memory was used again:", *lines])
