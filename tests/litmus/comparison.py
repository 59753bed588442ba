"""Compares a report with a verdict."""

from collections import defaultdict
from collections.abc import Iterable

from tests.litmus.program import Hazard

_Key = tuple[str, str, str, str, str]


def differences(
    found: Iterable[Hazard], expected: Iterable[Hazard], also: Iterable[Hazard]
) -> list[str]:
    """Return what is missing in a report, and what must not be in it."""
    wanted, allowed = _bytes(expected), _bytes([*expected, *also])
    reported = _bytes(found)
    lines = []
    for key, spans in wanted.items():
        missing = subtract(spans, reported.get(key, ()))
        if missing:
            lines.append(f"missing: {_hazard(key, missing)}")
    for key, spans in reported.items():
        wrong = subtract(spans, allowed.get(key, ()))
        if wrong:
            lines.append(f"wrong: {_hazard(key, wrong)}")
    return lines


def subtract(
    spans: Iterable[tuple[int, int]], removed: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return what remains of ranges of bytes without others."""
    rest = list(spans)
    for first, last in removed:
        parts = ((start, min(stop, first)) for start, stop in rest)
        behind = ((max(start, last), stop) for start, stop in rest)
        rest = [span for span in (*parts, *behind) if span[0] < span[1]]
    return rest


def _bytes(hazards: Iterable[Hazard]) -> dict[_Key, list[tuple[int, int]]]:
    spans: dict[_Key, list[tuple[int, int]]] = defaultdict(list)
    for hazard in hazards:
        spans[hazard.key].extend(hazard.bytes)
    return spans


def _hazard(key: _Key, spans: Iterable[tuple[int, int]]) -> Hazard:
    kind, first, second, block, tier = key
    return Hazard(kind, first, second, block, tier, tuple(sorted(set(spans))))
