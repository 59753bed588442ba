"""Comparison of an outcome with an acceptance file."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tests.conformance.golden import Golden
from tests.conformance.replay import Outcome

# In files of this name, these depend on heap addresses inside the recorded process.
LOOSE_NAME = "everything"
LOOSE_STATS = ("inactive_split.", "inactive_split_bytes.")
LOOSE_FIELDS = (".peak", ".allocated", ".freed")

# Not part of the comparison; see the README beside the files.
IGNORED_ENTRY_KEYS = {"device_free", "compile_context", "user_metadata"}


@dataclass(frozen=True, slots=True)
class Count:
    """The number of equal values among those compared."""

    what: str
    equal: int
    total: int
    first_difference: str | None

    def __str__(self) -> str:
        return f"{self.what} {self.equal}/{self.total}"


def compare(golden: Golden, outcome: Outcome) -> list[Count]:
    """Return the counts of mallocs, stats, trace entries and segments, in this order."""
    mallocs = [op for op in golden.ops if op[0] == "malloc"]
    loose = golden.name.startswith(LOOSE_NAME)
    stats = [op[1] for op in golden.ops if op[0] == "stats"]
    return [
        _count("mallocs", [op[4] for op in mallocs], outcome.mallocs),
        _count(
            "stats",
            [_strict_stats(entry, loose) for entry in stats],
            [_strict_stats(entry, loose) for entry in outcome.stats],
        ),
        _count("trace", _canonical_trace(golden.trace), _canonical_trace(outcome.trace)),
        _count("segments", golden.segments, outcome.segments),
    ]


def _strict_stats(stats: dict[str, int], loose: bool) -> dict[str, int]:
    def is_loose(key: str) -> bool:
        return key.startswith(LOOSE_STATS) and key.endswith(LOOSE_FIELDS)

    return {key: value for key, value in stats.items() if not (loose and is_loose(key))}


def _canonical_trace(trace: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trace with every run of free_completed entries sorted by address."""
    entries = [{k: v for k, v in entry.items() if k not in IGNORED_ENTRY_KEYS} for entry in trace]
    start = 0
    while start < len(entries):
        end = start
        while end < len(entries) and entries[end]["action"] == "free_completed":
            end += 1
        entries[start:end] = sorted(entries[start:end], key=lambda entry: entry["addr"])
        start = end + 1
    return entries


def _count(what: str, expected: list[Any], found: list[Any]) -> Count:
    total = max(len(expected), len(found))
    equal = 0
    first = None
    for row, (want, have) in enumerate(zip_longest(expected, found)):
        if row < len(expected) and row < len(found) and want == have:
            equal += 1
        elif first is None:
            first = f"{what}[{row}]: {_difference(want, have)}"
    return Count(what, equal, total, first)


def _difference(want: Any, have: Any) -> str:
    """Return the differing parts of two values."""
    if isinstance(want, dict) and isinstance(have, dict):
        keys = sorted({*want, *have}, key=str)
        parts = [
            f"{key}: {_difference(want.get(key), have.get(key))}"
            for key in keys
            if want.get(key) != have.get(key)
        ]
        return ", ".join(parts)
    if isinstance(want, list) and isinstance(have, list):
        return next(_list_differences(want, have), "equal")
    return f"expected {want!r}, found {have!r}"


def _list_differences(want: list[Any], have: list[Any]) -> Iterator[str]:
    for row, (left, right) in enumerate(zip_longest(want, have)):
        if left != right:
            yield f"[{row}] {_difference(left, right)}"
