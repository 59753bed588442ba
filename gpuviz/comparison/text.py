"""The differences of two recordings as text."""

from collections.abc import Iterator
from typing import Any

from gpuviz.advice.finding import named
from gpuviz.comparison.diff import Differences
from gpuviz.comparison.limits import amount
from gpuviz.comparison.totals import QUANTITIES
from gpuviz.quantities import format_count, format_duration, format_share

_MOST_ROWS = 10
_LEAST_SHARE = 0.001
_LEAST_FACTOR = 10
NO_DIFFERENCE = "No difference."


def diff_text(found: Differences) -> str:
    """Return the differences as lines of text, the first rows of each table."""
    parts = [*found.notes, *_sections(found)]
    return "\n".join(parts) if not found.is_empty else "\n".join([*found.notes, NO_DIFFERENCE])


def signed(change: int, unit: str) -> str:
    """Return a change with its sign and unit."""
    return f"{'+' if change > 0 else ''}{amount(change, unit)}"


def relative(before: int, change: int) -> str:
    """Return a change as a share of the value before, with its sign; empty if that is 0.

    From ten times the value on, it is the factor between them.
    """
    if not before:
        return ""
    factor = (before + change) / before
    if factor >= _LEAST_FACTOR:
        return f"{factor:,.0f} times"
    share = abs(change) / before
    if 0 < share < _LEAST_SHARE:
        return f"under {format_share(_LEAST_SHARE)}"
    sign = "+" if change > 0 else "-" if change < 0 else ""
    return f"{sign}{format_share(share)}"


def quantity_name(row: dict[str, Any], *, several: bool) -> str:
    """Return the name of a row of `Diff.quantities`, with the device if there are several."""
    of = f" of device {row['device']}" if several and row["device"] is not None else ""
    return f"{QUANTITIES[row['name']][1]}{of}"


def _sections(found: Differences) -> Iterator[str]:
    sections = {
        "Costs more than before": [
            f"{each.title} ({each.certainty}) {each.reason}" for each in found.findings
        ],
        "Totals": [_total(row) for row in found.totals.to_pylist()],
        "Peak of memory, by line": [_line(row) for row in found.waterfall.to_pylist()],
        "Kernels": [_kernel(row) for row in found.kernels.to_pylist()],
        "Modules": [_module(row) for row in found.modules.to_pylist()],
        "Settings and versions": [
            f"{row['name']}: {row['before'] or 'unknown'} to {row['after'] or 'unknown'}"
            for row in found.settings.to_pylist()
        ],
    }
    for heading, lines in sections.items():
        if lines:
            yield f"\n{heading}"
            shown = lines if heading == "Totals" else lines[:_MOST_ROWS]
            yield from shown
            if len(lines) > len(shown):
                yield f"... and {format_count(len(lines) - len(shown))} more"


def _total(row: dict[str, Any]) -> str:
    name = quantity_name(row, several=row["device"] not in {None, 0})
    before, after = (amount(row[side], row["unit"]) for side in ("before", "after"))
    share = relative(row["before"], row["change"])
    return f"{name:<30} {before:>12} {after:>12} {share:>8}".rstrip()


def _line(row: dict[str, Any]) -> str:
    source = row["source"] or row["before_source"]
    site = row["site"] or row["before_site"]
    was = f" (was {named('', row['before_source'])})" if row["status"] == "edited" else ""
    change = signed(row["change"], "B")
    return f"{change:>12}  {row['status']:<7} {site}  {source}{was}".rstrip()


def _module(row: dict[str, Any]) -> str:
    change = signed(row["after_peak_bytes"] - row["before_peak_bytes"], "B")
    launches = " to ".join(format_count(row[f"{side}_launches"]) for side in ("before", "after"))
    return f"{change:>12}  {row['module'] or 'no module'}, {launches} launches"


def _kernel(row: dict[str, Any]) -> str:
    medians = [row[f"{side}_median_ns"] for side in ("before", "after")]
    times = " to ".join("-" if each is None else format_duration(each) for each in medians)
    counts = " to ".join(format_count(row[f"{side}_count"]) for side in ("before", "after"))
    return f"{row['status']:<24} {row['name']}: {counts} launches, median {times}"
