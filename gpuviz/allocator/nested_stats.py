"""Statistics as nested dictionaries."""

from typing import Any


def nested_stats(stats: dict[str, int]) -> dict[str, Any]:
    """Return statistics with a dictionary for each part of a key: ``["segment"]["all"]...``."""
    nested: dict[str, Any] = {}
    for key, value in stats.items():
        inner, (*parts, last) = nested, key.split(".")
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return nested
