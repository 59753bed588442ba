"""The manifest of a recording read from a torch memory snapshot."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.data.manifest import TORCH_ALLOCATOR, Manifest, by_device
from gpuviz.data.tables import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz._core import TorchSnapshot
    from gpuviz.formats.torch_tables import SnapshotTables

EXTRA = "torch_snapshot"
# Fields of a recording's manifest that are stored in gpuviz's own key of a snapshot.
KEPT = (
    "gpuviz_version",
    "python",
    "platform",
    "cupy",
    "driver",
    "runtime",
    "allocator",
    "allocator_name",
    "label",
)


def manifest_of(
    snapshot: "TorchSnapshot",
    tables: "SnapshotTables",
    history: dict[str, Any],
    settings: dict[str, Any],
    recorder: dict[str, Any],
) -> Manifest:
    """Return the manifest, with notes on what is unknown."""
    times = tables.times
    kept = {name: recorder[name] for name in KEPT if isinstance(recorder.get(name), str)}
    program = recorder.get("program")
    if isinstance(program, list) and all(isinstance(each, str) for each in program):
        kept["program"] = tuple(program)
    configuration = settings.get("PYTORCH_CUDA_ALLOC_CONF")
    owners = zip(history["owners"].tolist(), snapshot.pools, strict=True)
    stale = snapshot.stale_requests
    names = ("device", "address", "size", "requested_size")
    fields: dict[str, Any] = {
        "created": _iso(times.start_unix_ns),
        "start_unix_ns": times.start_unix_ns,
        "duration_ns": times.end,
        "allocator": "observe",
        "allocator_name": TORCH_ALLOCATOR,
        "settings": configuration if isinstance(configuration, str) else "",
        "simulated": recorder.get("simulated") is True,
        "initial_events": tables.before,
        "notes": tuple(_notes(snapshot, tables, history)),
        "extra": {
            EXTRA: {
                "allocator_settings": settings,
                "pools": {str(owner): list(pool) for owner, pool in owners if owner},
                "stale_requests": np.column_stack([stale[each] for each in names]).tolist(),
            },
        },
    }
    fields["memory_stats"] = _memory_stats(tables, settings, recorder.get("memory_stats"))
    return Manifest(**(fields | kept))


def _memory_stats(
    tables: "SnapshotTables", settings: dict[str, Any], recorded: Any
) -> dict[int, dict[str, int]]:
    """Return the statistics of the recorder, else those that the settings contain."""
    if isinstance(recorded, dict) and recorded:
        try:
            return by_device(recorded)
        except ValueError:
            return {}
    limit = settings.get("max_split_size")
    if type(limit) is not int or limit < 0:
        return {}
    return {device: {"max_split_size": limit} for device in tables.devices}


def _existed(actions: "NDArray[Any]") -> str:
    """Return the numbers of segments and blocks that existed before the trace, as text."""
    blocks = int((actions == ACTIONS.index("alloc")).sum())
    pending = int((actions == ACTIONS.index("free_requested")).sum())
    return f"segments: {len(actions) - blocks - pending}, blocks: {blocks}"


def _iso(unix_ns: int) -> str:
    if not unix_ns:
        return ""
    return datetime.fromtimestamp(unix_ns // 1_000_000_000, UTC).isoformat()


def _notes(
    snapshot: "TorchSnapshot", tables: "SnapshotTables", history: dict[str, Any]
) -> "Iterator[str]":
    if not tables.count:
        yield "The torch snapshot has no trace, only the state of memory when it was taken."
    elif tables.before:
        yield (
            "The torch snapshot's trace begins in the middle: what existed before "
            f"({_existed(history['before']['action'])}) was inferred from later events; "
            "its times and call stacks are unknown."
        )
    if tables.times.are_missing:
        yield "The torch snapshot has no times: its events are shown 1 µs apart, in their order."
    if tables.times.moved:
        yield f"{tables.times.moved} events were earlier than their predecessors and were moved."
    if history["contradictions"]:
        yield (
            f"{history['contradictions']} events of the torch snapshot contradict others: its "
            "trace is probably incomplete."
        )
    if tables.after:
        yield (
            "The torch snapshot's trace does not match its segments: "
            f"{tables.after} events were added at its end to match them."
        )
    for what, count in snapshot.left_out:
        yield f"{count} {what} in the torch snapshot are left out."
