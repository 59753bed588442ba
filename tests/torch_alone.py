"""Recordings as if torch's own allocator had served the program."""

from dataclasses import replace

import pyarrow as pa

from gpuviz.analysis.pools import TORCH_OWNER
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording


def of_torch(
    recording: Recording, kept: "pa.BooleanArray | None" = None, settings: str = ""
) -> Recording:
    """Return a recording whose memory events, or those that are kept, are torch's.

    Its manifest names the allocator that it had, as where torch's was only observed beside it.
    """
    events = recording.tables["memory_events"]
    events = events if kept is None else events.filter(kept)
    first = 2 * TORCH_OWNER
    rows = [row | {"framework": "torch", "pool": row["pool"] + first} for row in events.to_pylist()]
    pools = [
        row | {"id": row["id"] + first, "owner": row["owner"] + TORCH_OWNER, "framework": "torch"}
        for row in recording.tables["pools"].to_pylist()
    ]
    changed = {"memory_events": rows, "pools": pools}
    tables = {name: pa.Table.from_pylist(each, schemas()[name]) for name, each in changed.items()}
    manifest = replace(recording.manifest, events=len(rows), torch_settings=settings)
    return Recording({**recording.tables, **tables}, manifest)
