"""Recordings of programs whose memory is torch's alone, as if its allocator were the only one."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpuviz.analysis.pools import TORCH_OWNER, is_torchs
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import plain
from gpuviz.data.manifest import TORCH_ALLOCATOR, Manifest
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData


@Once
def by_torch_alone(recording: RecordingData) -> RecordingData:
    """Return a recording with torch's allocator instead of one that served nothing.

    A recorder observes torch's own allocator beside another one, which is recorded too: gpuviz's,
    or the one that CuPy had. If all memory is torch's, its pools get the numbers, and the manifest
    the name and settings, that they would have without that one. Rows stay the same.

    The recording itself if another allocator served memory, or if it is a snapshot of torch, whose
    pools have torch's own numbers.
    """
    events = recording.tables["memory_events"]
    pools = plain(events["pool"])
    is_snapshot = "torch_snapshot" in recording.manifest.extra
    if is_snapshot or not len(pools) or not is_torchs(pools).all():
        return recording
    known = recording.tables["pools"].to_pylist()
    rows = [
        row | {"id": row["id"] - 2 * TORCH_OWNER, "owner": row["owner"] - TORCH_OWNER}
        for row in known
        if row["owner"] >= TORCH_OWNER
    ]
    tables = {
        **recording.tables,
        "memory_events": with_columns(events, pool=pools - np.uint32(2 * TORCH_OWNER)),
        "pools": pa.Table.from_pylist(rows, recording.tables["pools"].schema),
    }
    return RecordingData.of_checked(tables, of_torch_alone(recording.manifest))


def of_torch_alone(manifest: Manifest) -> Manifest:
    """Return a manifest with torch's allocator and its settings instead of another allocator's."""
    return replace(
        manifest,
        allocator="observe",
        allocator_name=TORCH_ALLOCATOR,
        settings=manifest.torch_settings,
    )
