"""Programs and the native code's results for them, with which TypeScript is compared.

``python -m tests.unit.recording.native_cases`` writes the file that `node --test` reads.
"""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from gpuviz.analysis.initial_state import ALLOCATED, PENDING_FREE
from gpuviz.analysis.state import state_at
from gpuviz.data.manifest import Manifest
from gpuviz.recording import Recording
from tests.unit.recording.from_activities import rows_of
from tests.unit.recording.from_events import rows_table

FILE = Path(__file__).parents[3] / "extension" / "testing" / "native_cases.json"
SEEDS = range(5)
EVENTS = 90
SLOTS = 6
SLOT_BYTES = 1000
ACTIVITIES = 24
WINDOWS = 4

_LEVELS = ("reserved", "active", "allocated", "requested")
_PARTS = ("reserved", "requested", "rounding", "pending_free", "inactive_split", "cached_whole")
_SHARES = ("free", "largest_free", "external", "internal", "utilization")
_BUSY = ("busy_ns", "kernel_ns", "copy_ns", "kernel_copy_ns", "device_copy_ns")
_COPIES = ("host_to_device", "device_to_host", "device_to_device", "peer_to_peer")


def native_cases() -> list[dict[str, Any]]:
    """Return programs, each with levels, blocks, fragmentation and busy times at some times."""
    return [_case(Random(seed)) for seed in SEEDS]


def _case(random: Random) -> dict[str, Any]:
    events, initial = _events(random)
    activities = [_activity(random) for _ in range(ACTIVITIES)]
    tables = {
        "memory_events": rows_table(events),
        "activities": rows_of("activities", activities),
    }
    recording = Recording(tables, Manifest(initial_events=initial))
    rows = sorted(random.sample(range(initial, len(events)), 12))
    bounds = [sorted((random.randrange(400), random.randrange(1, 400))) for _ in range(WINDOWS)]
    return {
        "initial_events": initial,
        "memory_events": _columns(events),
        "activities": _columns(activities),
        "moments": [_moment(recording, row, events[row]["time"]) for row in rows],
        "windows": [_window(recording, *each) for each in bounds if each[0] < each[1]],
    }


def _events(random: Random) -> tuple[list[dict[str, Any]], int]:
    """Return allocations and frees, some of them pending, in segments that are added and freed."""
    events: list[dict[str, Any]] = []
    segments: set[int] = set()
    slots: dict[int, dict[str, Any]] = {}
    initial = 0
    while len(events) < EVENTS:
        segment = 100_000 * random.randrange(1, 5)
        address = segment + SLOT_BYTES * random.randrange(SLOTS)
        here = {"stream": segment // 200_000 + 1, "pool": segment // 300_000}
        block = slots.get(address)
        if segment not in segments:
            segments.add(segment)
            step = {"action": "segment_alloc", "address": segment, "size": SLOTS * SLOT_BYTES}
        elif block is None and random.random() < 0.15 and not _in_use(slots, segment):
            segments.remove(segment)
            step = {"action": "segment_free", "address": segment, "size": SLOTS * SLOT_BYTES}
        elif block is None:
            requested = random.randrange(1, SLOT_BYTES + 1)
            step = {"action": "alloc", "address": address, "size": SLOT_BYTES}
            step |= {"requested_size": requested}
            slots[address] = step
        elif initial == 0 and random.random() < 0.3:
            # The events so far are initial events.
            initial = len(events)
            continue
        elif initial == 0:
            continue
        else:
            is_pending = block.get("pending", False)
            action = "free_completed" if is_pending else "free_requested"
            step = {"action": action, "address": address, "size": SLOT_BYTES}
            step |= {"requested_size": block["requested_size"]}
            if is_pending:
                del slots[address]
            else:
                slots[address] = block | {"pending": True}
        time = 0 if initial == 0 else 10 * (len(events) + 1)
        events.append({"time": time, **step, **here})
    return events, initial


def _in_use(slots: dict[int, Any], segment: int) -> bool:
    return any(segment <= address < segment + SLOTS * SLOT_BYTES for address in slots)


def _activity(random: Random) -> dict[str, Any]:
    begin = random.randrange(360)
    kind = random.choice(("kernel", "kernel", "memcpy", "memcpy", "memset", "range"))
    return {
        "time": begin,
        "end": begin + random.randrange(40),
        "kind": kind,
        "copy_kind": random.choice(_COPIES) if kind == "memcpy" else "",
        "stream": random.randrange(1, 4),
    }


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, 0) for row in rows] for name in names}


def _moment(recording: Recording, row: int, time: int) -> dict[str, Any]:
    table = recording.memory_levels
    last = int(np.flatnonzero(table["time"].to_numpy() <= time)[-1])
    found = recording.fragmentation(time)
    blocks = state_at(recording, time).blocks()
    columns = (blocks[name].tolist() for name in ("address", "size", "state"))
    return {
        "row": row,
        "levels": {name: table[name][last].as_py() for name in _LEVELS},
        "fragmentation": {name: getattr(found, name) for name in (*_PARTS, *_SHARES)},
        "blocks": sorted(
            [address, size, state == PENDING_FREE]
            for address, size, state in zip(*columns, strict=True)
            if state in (ALLOCATED, PENDING_FREE)
        ),
    }


def _window(recording: Recording, start: int, end: int) -> dict[str, Any]:
    (lane,) = recording.overlap(0, start, end).devices
    return {"from": start, "to": end} | {name: getattr(lane, name) for name in _BUSY}


def as_text() -> str:
    """Return the file's contents."""
    return json.dumps(native_cases(), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    FILE.write_text(as_text(), encoding="utf-8")
