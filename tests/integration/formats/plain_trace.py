"""The expected trace of a recording, computed row by row in plain Python."""

from dataclasses import dataclass
from typing import Any

from gpuviz.recording import Recording

HOST_WAITS = ("event_synchronize", "stream_synchronize", "context_synchronize")
LEVELS = ("requested", "allocated", "active", "reserved")


@dataclass(frozen=True, order=True)
class Slice:
    """An event with a duration; ``place`` is a device and a stream, or a thread."""

    category: str
    place: tuple[int, ...]
    time: int
    duration: int
    name: str


def slices(recording: Recording) -> list[Slice]:
    """Return all slices of the trace, sorted by their fields."""
    return sorted(
        [*_activities(recording), *_calls(recording), *_waits(recording), *_ranges(recording)]
    )


def _activities(recording: Recording) -> list[Slice]:
    texts = _texts(recording)
    found = []
    for row in recording.tables["activities"].to_pylist():
        kind = row["kind"]
        name = texts.get(row["name"]) or kind
        if kind == "memcpy":
            name = f"copy {row['copy_kind'].replace('_', ' ')}".strip()
        elif kind == "memset":
            name = "memset"
        found.append(_slice(kind, (row["device"], row["stream"]), row, name))
    return found


def _calls(recording: Recording) -> list[Slice]:
    texts = _texts(recording)
    rows = recording.tables["api_calls"].to_pylist()
    return [_slice("call", (row["thread"],), row, texts.get(row["name"]) or "call") for row in rows]


def _waits(recording: Recording) -> list[Slice]:
    calls = first_calls(recording)
    texts = _texts(recording)
    found = []
    for row in recording.tables["synchronizations"].to_pylist():
        if row["kind"] not in HOST_WAITS:
            continue
        call = calls.get(row["correlation"])
        queried = call is None or texts.get(call["name"], "").endswith("Query")
        if recording.tables["api_calls"].num_rows and queried:
            continue
        thread = call["thread"] if call else 0
        found.append(_slice("synchronization", (thread,), row, row["kind"].replace("_", " ")))
    return found


def _ranges(recording: Recording) -> list[Slice]:
    texts = _texts(recording)
    found = []
    for row in recording.tables["ranges"].to_pylist():
        end = max(recording.duration_ns, row["time"]) if row["end"] == -1 else row["end"]
        name = texts.get(row["name"]) or row["kind"]
        found.append(_slice(row["kind"], (row["thread"],), row | {"end": end}, name))
    return found


def flows(recording: Recording) -> list[tuple[int, int]]:
    """Return the start of the call and of the activity for each launch, in order."""
    calls = first_calls(recording)
    pairs = []
    for row in recording.tables["activities"].to_pylist():
        call = calls.get(row["correlation"])
        if row["kind"] != "range" and call is not None and call["time"] < row["time"]:
            pairs.append((call["time"], row["time"]))
    return sorted(pairs)


def first_calls(recording: Recording) -> dict[int, dict[str, Any]]:
    """Return the first call of each correlation."""
    calls: dict[int, dict[str, Any]] = {}
    for row in recording.tables["api_calls"].to_pylist():
        if row["correlation"]:
            calls.setdefault(row["correlation"], row)
    return calls


def counters(recording: Recording) -> dict[tuple[int, str], list[tuple[int, int]]]:
    """Return times and values of each device's counters, one per change."""
    found: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for row in recording.memory_levels.to_pylist():
        for level in LEVELS:
            _append(found, (row["device"], f"memory {level}"), row["time"], row[level])
    for row in recording.tables["device_memory"].to_pylist():
        _append(found, (row["device"], "memory used on device"), row["time"], row["used"])
    return found


def _append(found: dict[Any, list[tuple[int, int]]], key: Any, time: int, value: int) -> None:
    values = found.setdefault(key, [])
    if not values or values[-1][1] != value:
        values.append((time, value))


def _slice(category: str, place: tuple[int, ...], row: dict[str, Any], name: str) -> Slice:
    return Slice(category, place, row["time"], max(row["end"] - row["time"], 0), name)


def _texts(recording: Recording) -> dict[int, str]:
    return {row["id"]: row["text"] for row in recording.tables["strings"].to_pylist()}
