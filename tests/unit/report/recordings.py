"""Recordings with known contents, created without a recorder."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gpuviz.data.manifest import Manifest
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording

MIB = 1 << 20
SEGMENT = 0x7F00_0000_0000


@dataclass(slots=True)
class Events:
    """Rows of ``memory_events``, added one by one."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, action: str, address: int, size: int, **columns: int) -> None:
        """Append a row with default values of other columns."""
        defaults = {
            "time": 1000 * len(self.rows),
            "requested_size": 0 if action.startswith("segment") else size,
            "device": 0,
            "stream": 1,
            "pool": 1,
            "stack": 1,
            "thread": 1,
            "range": 0,
            "framework": "",
        }
        row = {"action": action, "address": address, "size": size}
        self.rows.append(defaults | row | columns)


def small_program(device: int = 0, at: int = SEGMENT) -> list[dict[str, Any]]:
    """Return events with an initial block, a pending free, and an out-of-memory failure."""
    events = Events()
    here = {"device": device}
    events.add("segment_alloc", at, 20 * MIB, time=0, stack=0, **here)
    events.add("alloc", at, 2 * MIB, time=0, stack=0, **here)
    events.add("alloc", at + 2 * MIB, 6 * MIB, time=100_000, requested_size=6 * MIB - 100, **here)
    events.add("alloc", at + 8 * MIB, 4 * MIB, time=200_000, stack=2, **here)
    events.add("free_requested", at + 2 * MIB, 6 * MIB, time=300_000, stack=2, **here)
    events.add("oom", 123 * MIB, 99 * MIB, time=400_000, **here)
    events.add("free_completed", at + 2 * MIB, 6 * MIB, time=500_000, stack=2, **here)
    return events.rows


def make_recording(
    rows: list[dict[str, Any]] | None = None,
    *,
    text: str = "train.py",
    initial_events: int = 2,
    devices: int = 1,
    **manifest: Any,
) -> Recording:
    """Return a recording in which every name and path is ``text``."""
    rows = small_program() if rows is None else rows
    tables = {"memory_events": rows, **_dictionaries(text, devices)}
    known = schemas()
    return Recording(
        {name: pa.Table.from_pylist(rows, schema=known[name]) for name, rows in tables.items()},
        Manifest(
            **{
                "created": "2026-11-20T14:03:22+00:00",
                "duration_ns": 600_000,
                "gpuviz_version": "0.1.0",
                "program": (text, "--steps", "5"),
                "settings": "expandable_segments:False",
                "events": len(rows) - initial_events,
                "initial_events": initial_events,
                "own_cost_ns": 41_000,
            }
            | manifest,
        ),
    )


def _dictionaries(text: str, devices: int) -> dict[str, list[dict[str, Any]]]:
    frames = [
        {"id": 1, "name": text, "filename": text, "line": 12, "cell": 0, "source": f"x = {text}"},
        {"id": 2, "name": "main", "filename": "main.py", "line": 34, "cell": 0, "source": "run()"},
    ]
    return {
        "devices": [
            {"id": n, "name": f"GPU of {text}", "total_memory": 80 << 30, "kind": "cuda"}
            for n in range(devices)
        ],
        "streams": [stream_row(1, 0, 0) | {"name": text}],
        "pools": [{"id": 1, "owner": 0, "segment_type": "large"}],
        "stacks": [{"id": 1, "frames": [1, 2]}, {"id": 2, "frames": [2]}],
        "frames": frames,
        "threads": [{"id": 1, "name": text}],
    }
