"""Conversion of moments given by users to times."""

import operator
from typing import Any

_FIRST, _LAST = -(2**63), 2**63 - 1


def as_ns(time: Any, name: str, expected: str = "a time in ns, a whole number") -> int:
    """Return a time in ns; what lies outside the times that a recording can have, as its bound.

    Args:
        time: An integer, NumPy's too.
        name: What the caller calls it.
        expected: What the caller takes.

    Raises:
        ValueError: It is something else.
    """
    try:
        number = operator.index(time)
    except TypeError:
        number = None
    if number is None or isinstance(time, bool):
        raise ValueError(f"{name} must be {expected}, got {time!r}")
    return min(max(number, _FIRST), _LAST)
