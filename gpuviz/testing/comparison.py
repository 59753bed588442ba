"""Comparison of a test with its last successful run."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gpuviz.quantities import format_bytes, format_count, parse_bytes

# A field of ``--gpuviz-compare-fail``, and the property of a test that it compares.
FIELDS = {
    "peak": "gpu_peak_bytes",
    "reserved": "gpu_peak_reserved_bytes",
    "allocs": "gpu_allocations",
    "syncs": "gpu_synchronizations",
}
_NAMES = {
    "gpu_peak_bytes": "peak of allocated GPU memory",
    "gpu_peak_reserved_bytes": "peak of reserved GPU memory",
    "gpu_allocations": "number of allocations",
    "gpu_synchronizations": "number of synchronizations",
}
_PERCENT = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*%", re.ASCII)


@dataclass(frozen=True, slots=True)
class AllowedIncrease:
    """How much a property of a test may grow: by a share of the last run, or by a number."""

    name: str
    share: float | None
    number: int

    def judge(self, value: int, previous: int) -> str:
        """Return a sentence if the property grew too much, else an empty text."""
        allowed = self.number if self.share is None else previous * self.share
        if value - previous <= allowed:
            return ""
        shown = _shown(self.name)
        increase = value - previous
        percent = f", {100 * increase / previous:.1f} %" if previous else ""
        limit = f"{100 * self.share:g} %" if self.share is not None else shown(self.number)
        return (
            f"The {_NAMES[self.name]} grew from {shown(previous)} to {shown(value)} since the last "
            f"successful run: {shown(increase)} more{percent}; allowed: {limit}."
        )


def parse_comparisons(text: str) -> tuple[AllowedIncrease, ...]:
    """Return the rules of ``--gpuviz-compare-fail``, such as ``peak:5%,allocs:10``.

    Raises:
        ValueError: The text is not a list of ``FIELD:PERCENT%`` and ``FIELD:NUMBER``.
    """
    return tuple(_parse(part.strip()) for part in text.split(",") if part.strip())


def _parse(text: str) -> AllowedIncrease:
    field, colon, limit = text.partition(":")
    if not colon or field not in FIELDS:
        raise ValueError(
            f"{text!r} is not FIELD:PERCENT% or FIELD:NUMBER with one of the fields "
            f"{', '.join(FIELDS)}, as in peak:5% or allocs:10"
        )
    name = FIELDS[field]
    if percent := _PERCENT.fullmatch(limit.strip()):
        return AllowedIncrease(name, float(percent[1]) / 100, 0)
    number = parse_bytes(limit) if name.endswith("_bytes") or limit.strip().isdecimal() else None
    if number is None:
        kind = "a size, as in 10MiB," if name.endswith("_bytes") else "a number"
        raise ValueError(f"{text!r}: {limit!r} is neither {kind} nor a percentage, as in 5%")
    return AllowedIncrease(name, None, number)


def grown(
    rules: Iterable[AllowedIncrease], values: Mapping[str, int], previous: Mapping[str, int]
) -> list[str]:
    """Return a sentence for each property that grew by more than its rule allows."""
    judged = (
        rule.judge(values[rule.name], previous[rule.name])
        for rule in rules
        if rule.name in values and rule.name in previous
    )
    return [sentence for sentence in judged if sentence]


def _shown(name: str) -> Callable[[int], str]:
    return format_bytes if name.endswith("_bytes") else format_count
