"""Torch snapshots as plain values, for comparisons with recordings independent of the reader."""

import json
import lzma
import pickle
from pathlib import Path
from typing import Any

from gpuviz import _core
from gpuviz.exports import torch_export
from gpuviz.formats import torch_snapshot
from gpuviz.recording import Recording

DATA = Path(__file__).parent / "data"
GOLDENS = Path(__file__).parents[2] / "conformance" / "data"
SNAPSHOTS = sorted(path.stem for path in DATA.glob("*.pickle"))
FIRST_US = 1_700_000_000_000_000
MIB = 1 << 20


def snapshot_bytes(name: str) -> bytes:
    return (DATA / f"{name}.pickle").read_bytes()


def snapshot(name: str) -> dict[str, Any]:
    """Return a real snapshot, read by Python's own unpickler."""
    values: dict[str, Any] = pickle.loads(snapshot_bytes(name))  # noqa: S301 - our own file
    return values


def read(values: Any, folder: Path, protocol: int = 4) -> Recording:
    """Return the recording of a snapshot given as values."""
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(values, protocol))
    return Recording.of(torch_snapshot.read(path))


def written(recording: Recording, folder: Path) -> dict[str, Any]:
    """Write a recording as a snapshot, and read it by Python's own unpickler."""
    path = torch_export.write(recording, folder / "written.pickle", overwrite=True)
    values: dict[str, Any] = pickle.loads(path.read_bytes())  # noqa: S301 - just written
    return values


def golden_snapshot(name: str, first: int = 0) -> tuple[dict[str, Any], dict[str, int]]:
    """Return a real allocator's events from event ``first`` on, and its final statistics."""
    golden = json.loads(lzma.decompress((GOLDENS / f"{name}.json.xz").read_bytes()))
    handles = golden.get("stream_handles") or [4096 * index for index in range(64)]
    trace = []
    for row, entry in enumerate(golden["trace"]):
        event = entry | {"stream": handles[entry["stream"]], "time_us": FIRST_US + 3 * row}
        trace.append(event | {"frames": []})
    _add_pools(trace, golden["ops"])
    segments = [
        segment
        | {"device": 0, "frames": [], "stream": handles[segment["stream"]]}
        | {"blocks": [block | {"frames": []} for block in segment["blocks"]]}
        for segment in golden["segments"]
    ]
    parsed = _core.AllocatorSettings.parse(golden["conf"])
    settings = {
        "PYTORCH_CUDA_ALLOC_CONF": golden["conf"],
        "max_split_size": parsed.max_split_size,
        "roundup_power2_divisions": dict(parsed.roundup_power2_divisions),
    }
    statistics = [operation[1] for operation in golden["ops"] if operation[0] == "stats"]
    values = {
        "segments": segments,
        "device_traces": [trace[first:]],
        "allocator_settings": settings,
    }
    return values, statistics[-1]


def _add_pools(trace: list[dict[str, Any]], operations: list[list[Any]]) -> None:
    """Set ``pool_id`` of every event, which the goldens lack, by the pools that were active."""
    active: list[int] = []
    requests = []
    for kind, *arguments in operations:
        if kind == "begin_pool":
            active.append(arguments[0] + 1)
        elif kind == "end_pool":
            active.pop()
        elif kind == "malloc" and arguments[1] > 0:
            requests.append(active[-1] if active else 0)
    homes: dict[int, int] = {}
    ends = iter(requests)
    waiting = []
    for event in trace:
        if event["action"] in {"segment_alloc", "segment_map"}:
            waiting.append(event)
        elif event["action"] in {"alloc", "oom"}:
            pool = next(ends)
            for each in (*waiting, event):
                each["pool_id"] = (0, pool)
                homes[each.get("addr", 0)] = pool
            waiting = []
        else:
            known = event["addr"]
            if known not in homes:  # part of what was mapped
                known = max(each for each in homes if each <= known)
            event["pool_id"] = (0, homes[known])


def memory(segments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return segments without arbitrary values, such as requested sizes of free blocks."""
    return [
        {key: segment[key] for key in ("device", "address", "total_size", "stream", "segment_type")}
        | {key: segment[key] for key in ("allocated_size", "active_size", "is_expandable")}
        | {"blocks": [_block(block) for block in segment["blocks"]]}
        for segment in sorted(segments, key=lambda each: (each["device"], each["address"]))
    ]


def _block(block: dict[str, Any]) -> dict[str, Any]:
    kept = {key: block[key] for key in ("address", "size", "state")}
    if block["state"] == "inactive":
        return kept
    return kept | {"requested_size": block["requested_size"], "frames": sites(block)}


def sites(entry: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Return the frames of an event, a segment or a block."""
    return [
        # torch stores an unknown line as -1, in an unsigned number of 64 bits.
        (each["name"], each["filename"], 0 if each["line"] == 2**64 - 1 else each["line"])
        for each in entry.get("frames", [])
    ]


def accounting(values: dict[str, Any]) -> list[int]:
    """Return each segment's size minus that of its blocks, which must be 0, as torch checks."""
    return [
        segment["total_size"] - sum(block["size"] for block in segment["blocks"])
        for segment in values["segments"]
    ]


def events(recording: Recording) -> list[dict[str, Any]]:
    """Return the events of a recording by device, with handles, stacks and ranges resolved."""
    streams = recording.table("streams").to_pylist()
    handles = {row["id"]: row["handle"] for row in streams}
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    ranges = {row["id"]: texts[row["name"]] for row in recording.table("ranges").to_pylist()}
    table = recording.table("memory_events").slice(recording.manifest.initial_events)
    kept = ("action", "address", "size", "requested_size", "device", "pool")
    rows = [
        {key: row[key] for key in kept}
        | {
            "stream": handles.get(row["stream"], 0),
            "time_us": (row["time"] + recording.manifest.start_unix_ns) // 1000,
            "frames": sites({"frames": recording.call_stacks.torch_frames(row["stack"])}),
            "range": ranges.get(row["range"], ""),
        }
        for row in table.to_pylist()
    ]
    return sorted(rows, key=lambda row: row["device"])
