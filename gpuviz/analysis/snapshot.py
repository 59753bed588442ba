"""Memory snapshot at a moment, in torch's shape."""

from typing import TYPE_CHECKING, Any

from gpuviz.analysis.state import state_at
from gpuviz.data.recording_data import Moment, RecordingData

if TYPE_CHECKING:
    from gpuviz._core import MemoryState

_STATES = ("inactive", "active_allocated", "active_pending_free")


def snapshot(
    recording: RecordingData,
    at: Moment = None,
    device: int | None = None,
) -> list[dict[str, Any]]:
    """Return the segments at a moment, by device and address, each with its blocks.

    Keys are those of ``torch.cuda.memory_snapshot()``; ``stream`` is the raw handle. A block
    outside every known segment, as with allocators that do not expose their segments, gets its own
    segment with ``segment_type`` ``unknown``.

    Raises:
        ValueError: The recording has no such device.
    """
    if device is not None:
        recording.device_or_first(device)
    segments = _Segments(recording, state_at(recording, at, device)).with_blocks()
    return [each for each in segments if device is None or each["device"] == device]


class _Segments:
    def __init__(self, recording: RecordingData, state: "MemoryState") -> None:
        self._stacks = recording.call_stacks
        streams = recording.tables["streams"].to_pydict()
        self._handles = dict(zip(streams["id"], streams["handle"], strict=True))
        pools = recording.tables["pools"].to_pylist()
        self._pools = {pool["id"]: (pool["owner"], pool["segment_type"]) for pool in pools}
        self._segment_rows = _rows(state.segments())
        self._block_rows = _rows(state.blocks())

    def with_blocks(self) -> list[dict[str, Any]]:
        segments = [self._segment(row) for row in self._segment_rows]
        for row in self._block_rows:
            if row["segment"] >= 0:
                self._add_block(segments[row["segment"]], row)
            else:
                alone = self._segment(row | {"is_expandable": 0, "stack": 0})
                alone["segment_type"] = "unknown"
                self._add_block(alone, row)
                segments.append(alone)
        return sorted(segments, key=lambda segment: (segment["device"], segment["address"]))

    def _segment(self, row: dict[str, Any]) -> dict[str, Any]:
        default = (row["pool"] // 2, ("small", "large")[row["pool"] % 2])
        owner, segment_type = self._pools.get(row["pool"], default)
        return {
            "device": row["device"],
            "address": row["address"],
            "total_size": row["size"],
            "allocated_size": 0,
            "active_size": 0,
            "requested_size": 0,
            "stream": self._handles.get(row["stream"], 0),
            "segment_type": segment_type,
            "segment_pool_id": (0, owner),
            "is_expandable": bool(row["is_expandable"]),
            "frames": self._stacks.torch_frames(row["stack"]),
            "blocks": [],
        }

    def _add_block(self, segment: dict[str, Any], row: dict[str, Any]) -> None:
        state = _STATES[row["state"]]
        if state == "active_allocated":
            segment["allocated_size"] += row["size"]
        if state != "inactive":
            segment["active_size"] += row["size"]
            segment["requested_size"] += row["requested_size"]
        segment["blocks"].append(
            {
                "address": row["address"],
                "size": row["size"],
                "requested_size": row["requested_size"],
                "state": state,
                "frames": self._stacks.torch_frames(row["stack"]),
            },
        )


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    values = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
