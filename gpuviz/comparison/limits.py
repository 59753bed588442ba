"""Limits of how much a program may get worse, such as ``peak:5%,time:10ms``."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuviz.comparison.totals import QUANTITIES
from gpuviz.errors import GpuvizError
from gpuviz.quantities import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from gpuviz.comparison.diff import Differences

_VALUE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-zµ]*|%)")
_UNITS = {
    "B": {"": 1, "b": 1}
    | {
        f"{prefix}{suffix}": step**power
        for power, prefix in enumerate("kmgt", 1)
        for suffix, step in (("b", 1000), ("ib", 1024))
    },
    "ns": {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9},
    "": {"": 1},
}
_EXAMPLES = {"B": "peak:5% or peak:64MiB", "ns": "time:10% or time:20ms", "": "kernels:5%"}


@dataclass(frozen=True, slots=True)
class Limit:
    """How much larger a quantity may be after than before.

    Attributes:
        name: One of `gpuviz.comparison.totals.QUANTITIES`.
        text: The limit as it was given.
        most: The largest increase, in bytes, ns or a count; None if it is a share.
        share: The largest increase as a share of the value before; None if it is an amount.
    """

    name: str
    text: str
    most: int | None = None
    share: float | None = None

    def allows(self, before: int, after: int) -> bool:
        """Return whether the increase is within the limit."""
        allowed = self.most if self.share is None else self.share * before
        assert allowed is not None  # noqa: S101
        return after - before <= allowed


def parse_limits(text: str) -> list[Limit]:
    """Return the limits in a text such as ``peak:5%,time:10ms``.

    Raises:
        GpuvizError: The text is not a list of limits; the error names the part.
    """
    return [_limit(part.strip()) for part in text.split(",")]


def _limit(text: str) -> Limit:
    name, _, value = (part.strip() for part in text.partition(":"))
    if name not in QUANTITIES:
        known = ", ".join(QUANTITIES)
        raise GpuvizError(f"{text!r} is not a limit such as peak:5%: the names are {known}.")
    unit = QUANTITIES[name][0]
    match = _VALUE.fullmatch(value)
    if match and match[2] == "%":
        return Limit(name, text, share=float(match[1]) / 100)
    scale = _UNITS[unit].get(match[2].lower()) if match else None
    if match is None or scale is None:
        raise GpuvizError(f"{text!r} is not a limit of {name}, as in {_EXAMPLES[unit]}.")
    return Limit(name, text, most=round(float(match[1]) * scale))


def exceeded(found: "Differences", limits: list[Limit]) -> list[str]:
    """Return a sentence for each limit that is exceeded.

    Raises:
        GpuvizError: A limit cannot be judged.
    """
    sentences = []
    rows = found.quantities.to_pylist()
    for limit in limits:
        judged = [row for row in rows if row["name"] == limit.name]
        if not judged:
            raise GpuvizError(f"{limit.text} cannot be judged: no device is in both recordings.")
        for row in judged:
            if not limit.allows(row["before"], row["after"]):
                before, after = (amount(row[side], row["unit"]) for side in ("before", "after"))
                name = QUANTITIES[limit.name][1]
                sentences.append(f"{name}: {before} to {after} exceeds {limit.text}.")
    return sentences


def amount(value: int, unit: str) -> str:
    """Return a value with its unit as text."""
    return {"B": format_bytes, "ns": format_duration, "": format_count}[unit](value)
