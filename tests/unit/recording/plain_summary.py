"""Groups of rows and their aggregates in plain Python."""

from collections import Counter
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from gpuviz.recording import Recording

NO_STACK = "(no call stack)"

Row = dict[str, Any]


def activity_rows(recording: Recording, kind: str) -> list[Row]:
    """Return the activities of a kind, joined with their calls and lines.

    ``source`` is that of the line; the source memory of a copy is ``memory_from``.
    """
    calls = recording.table("api_calls").to_pylist()
    found = []
    for row in recording.table("activities").to_pylist():
        known = (each for each in calls if each["correlation"] == row["correlation"] != 0)
        if row["kind"] == kind:
            more = {
                "memory_from": row["source"],
                "text": text_of(recording, row["name"]),
                "length": max(0, row["end"] - row["time"]),
            }
            found.append(row | more | call_place(recording, next(known, None)))
    return found


def call_place(recording: Recording, call: Row | None) -> Row:
    stack = call["stack"] if call else 0
    frame = recording.call_stacks.user_frame(stack)
    return {
        "call": call,
        "call_name": text_of(recording, call["name"]) if call else "",
        "stack": stack,
        "site": frame.site if frame else NO_STACK,
        "source": frame.source if frame else "",
    }


def text_of(recording: Recording, number: int) -> str:
    strings = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    return strings.get(number, "")


def groups(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def floor_median(values: Iterable[int]) -> int | None:
    values = list(values)
    return int(median(values) // 1) if values else None


def typical(rows: list[Row], key: Callable[[Row], Any]) -> Row:
    """Return the first row of the most frequent combination; ties are resolved by order."""
    most, _ = Counter(map(key, rows)).most_common(1)[0]
    return next(row for row in rows if key(row) == most)
