"""Replay of an acceptance file's operations on gpuviz's allocator."""

from dataclasses import dataclass
from typing import Any

from gpuviz import _core
from gpuviz.data.tables import ACTIONS
from tests.conformance.golden import Golden

SEGMENT_ACTIONS = {"segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The four results that are compared, in the format of the acceptance files."""

    mallocs: list[int | None]
    stats: list[dict[str, int]]
    trace: list[dict[str, Any]]
    segments: list[dict[str, Any]]


def replay(golden: Golden) -> Outcome:
    """Return the outcome of the allocator on the file's device."""
    device = golden.device()
    allocator = _core.CachingAllocator(device, _core.AllocatorSettings.parse(golden.conf))
    if golden.fraction is not None:
        allocator.set_memory_fraction(golden.fraction)
    for handle, number in zip(golden.stream_handles, golden.stream_ids, strict=False):
        allocator.identify_stream(handle, number)
    log = _core.EventLog()
    allocator.attach(log)
    result = _core.Replayer(golden.program(), device, allocator).run()
    trace = _trace(log.events(), golden.stream_handles)
    return Outcome(
        mallocs=_mallocs(golden, result["addresses"].tolist()),
        stats=result["statistics"],
        trace=trace,
        segments=_segments(allocator.memory_snapshot(), golden.stream_handles),
    )


def _mallocs(golden: Golden, addresses: list[int]) -> list[int | None]:
    """Return the addresses; null for out of memory, and as recorded for requests of 0 bytes."""
    sizes = [op[2] for op in golden.ops if op[0] == "malloc"]
    return [
        None if address == 0 and size > 0 else address
        for address, size in zip(addresses, sizes, strict=True)
    ]


def _trace(events: dict[str, Any], handles: tuple[int, ...]) -> list[dict[str, Any]]:
    columns = {name: column.tolist() for name, column in events.items()}
    entries = []
    for row, code in enumerate(columns["action"]):
        action = ACTIONS[code]
        if action in {"record_stream", "snapshot", "empty_cache"}:
            continue
        size = columns["size" if action in SEGMENT_ACTIONS else "requested_size"][row]
        entry = {"action": action, "size": size, "stream": handles.index(columns["stream"][row])}
        if action != "oom":
            entry["addr"] = columns["address"][row]
        entries.append(entry)
    return entries


def _segments(
    snapshot: list[dict[str, Any]],
    handles: tuple[int, ...],
) -> list[dict[str, Any]]:
    segments = []
    for segment in snapshot:
        plain = {key: value for key, value in segment.items() if key != "stack"}
        plain["stream"] = handles.index(segment["stream"])
        plain["segment_pool_id"] = list(segment["segment_pool_id"])
        plain["blocks"] = [
            {key: value for key, value in block.items() if key != "stack"}
            for block in segment["blocks"]
        ]
        segments.append(plain)
    return segments
