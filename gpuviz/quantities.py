"""Text form of sizes, times and counts, as in extension/src/base/format.ts, and its reading."""

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

_BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_BINARY_STEP = 1024
# From this value on, three digits round to 1.00 of the next unit.
_LAST_BINARY = 1023.5
_LAST_DECIMAL = 0.9995
_SECOND_NS = 1_000_000_000
_MINUTE_NS = 60 * _SECOND_NS
_PLACES = (Decimal(1), Decimal("0.1"), Decimal("0.01"))
_BYTES_OF_UNIT = {"b": 1} | {
    f"{prefix}{suffix}": step**power
    for power, prefix in enumerate("kmgt", 1)
    for suffix, step in (("b", 1000), ("ib", 1024))
}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-zµ]*)", re.ASCII)
_TIME_UNITS = (("s", _SECOND_NS), ("ms", 1_000_000), ("µs", 1_000))


def format_bytes(size: int) -> str:
    """Return a size in IEC units: ``1.50 MiB``, ``512 B``."""
    value = float(abs(size))
    unit = 0
    while value >= _LAST_BINARY and unit < len(_BINARY_UNITS) - 1:
        value /= _BINARY_STEP
        unit += 1
    digits = f"{value:.0f}" if unit == 0 else _three_digits(value)
    return f"{'-' if size < 0 else ''}{digits} {_BINARY_UNITS[unit]}"


def format_duration(ns: int) -> str:
    """Return a duration in a suitable unit: ``12.3 µs``, ``1.50 s``, ``2 min 05 s``."""
    sign, size = ("-" if ns < 0 else ""), abs(ns)
    if size >= _MINUTE_NS:
        minutes, seconds = divmod((size + _SECOND_NS // 2) // _SECOND_NS, 60)
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{sign}{hours} h {minutes:02d} min {seconds:02d} s"
        return f"{sign}{minutes} min {seconds:02d} s"
    for name, unit_ns in _TIME_UNITS:
        if size >= _LAST_DECIMAL * unit_ns:
            return f"{sign}{_three_digits(size / unit_ns)} {name}"
    return f"{sign}{size} ns"


def format_count(count: int) -> str:
    """Return a count with separators: ``52,864``."""
    return f"{count:,}"


def format_counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count and its noun: ``1 block``, ``52,864 blocks``; the default plural adds an s."""
    return f"{format_count(count)} {noun if count == 1 else plural or f'{noun}s'}"


def format_names(names: Sequence[str], most: int = 8) -> str:
    """Return names in a sentence, such as ``a, b and c``; of very many, ``a, b and 12 others``."""
    shown = list(names[:most])
    if len(names) > most:
        shown = [*shown[:-1], f"{format_count(len(names) - most + 1)} others"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def format_share(share: float) -> str:
    """Return a share of 1 as a percentage: ``12 %``, ``0.4 %``."""
    percent = 100 * share
    return f"{_fixed(percent, 0 if percent >= 10 or percent == 0 else 1)} %"  # noqa: PLR2004


def parse_bytes(text: str) -> int | None:
    """Return a size such as ``1.5 GiB`` in bytes, or None; without a unit it is in bytes."""
    return parse_quantity(text, _BYTES_OF_UNIT, "b")


def parse_quantity(text: str, units: Mapping[str, int], default: str) -> int | None:
    """Return a number with one of the units, in lower case, or None if the text is none."""
    match = _QUANTITY.fullmatch(text.strip())
    unit = None if match is None else units.get(match[2].lower() or default)
    return None if match is None or unit is None else round(float(match[1]) * unit)


def _three_digits(value: float) -> str:
    return _fixed(value, 2 if value < 9.995 else 1 if value < 99.95 else 0)  # noqa: PLR2004


def _fixed(value: float, digits: int) -> str:
    """Return a number with ``digits`` decimals, halves rounded up as in JavaScript."""
    return str(Decimal(value).quantize(_PLACES[digits], ROUND_HALF_UP))
