"""Conversion of moments given by users to times."""

import operator
from typing import Any

_FIRST, _LAST = -(2**63), 2**63 - 1


def as_ns(time: Any, name: str, expected: str = "a time in ns, a whole number") -> int:
    """Return a time in ns, clipped to the range of times in a recording.

    Args:
        time: An integer, possibly of NumPy.
        name: The argument's name, for the error.
        expected: The expected values, for the error.

    Raises:
        ValueError: ``time`` is not an integer.
    """
    try:
        number = operator.index(time)
    except TypeError:
        number = None
    if number is None or isinstance(time, bool):
        raise ValueError(f"{name} must be {expected}, got {time!r}")
    return min(max(number, _FIRST), _LAST)
