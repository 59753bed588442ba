"""What costs more than in the recording before, and because of what: rule R39."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding, named
from gpuviz.comparison.calls import LEAST_SHARE, increases, more_than_before
from gpuviz.comparison.limits import amount
from gpuviz.quantities import format_counted, format_duration, format_share

if TYPE_CHECKING:
    from gpuviz.comparison.diff import Differences

_MOST_CAUSES = 3
# Of the kernels' time before. Smaller changes come from clocks and neighbours.
_LEAST_CHANGE = 0.05


def regressions(found: "Differences") -> Iterator[Finding]:
    """Yield what costs more than before: peaks by device, then kernels, then other calls."""
    rows = found.quantities.to_pylist()
    peaks = [row for row in rows if row["name"] == "peak"]
    for row in peaks:
        if row["change"] > LEAST_SHARE * row["before"]:
            yield _peak(found, row, several=len(peaks) > 1)
    if not all(each.tables["activities"].num_rows for each in (found.before, found.after)):
        return  # what is not recorded cannot be compared
    time = next(row for row in rows if row["name"] == "kernel_time")
    changes = found.kernels.to_pylist()
    more = sum(row["change_ns"] for row in changes)
    if more > 0 and more >= _LEAST_CHANGE * time["before"]:
        yield _kernel_time(found, time["before"], more, changes)
    for each in increases(found.before, found.after):
        yield replace(each, certainty="likely") if found.notes else each


def _peak(found: "Differences", row: dict[str, Any], *, several: bool) -> Finding:
    lines = [each for each in found.waterfall.to_pylist() if each["device"] == row["device"]]
    grown = [each for each in lines if each["change"] > 0]
    less = -sum(each["change"] for each in lines if each["change"] < 0)
    more = sum(each["change"] for each in grown)
    causes = tuple(
        Line(each["site"], each["source"], f"{amount(each['change'], 'B')} more ({each['status']})")
        for each in grown[:_MOST_CAUSES]
    )
    of = f" of device {row['device']}" if several else ""
    first = named(causes[0].site, causes[0].source)
    held = "holds" if len(grown) == 1 else "hold"
    offset = f", and others {amount(less, 'B')} less" if less else ""
    return Finding(
        rule="R39",
        title=f"The peak{of} is {amount(row['change'], 'B')} higher than before: "
        f"{first} holds {amount(grown[0]['change'], 'B')} more.",
        reason=f"At the peak, {format_counted(len(grown), 'line')} {held} {amount(more, 'B')} more "
        f"than before{offset}. The peak was {amount(row['before'], 'B')} and is "
        f"{amount(row['after'], 'B')}.",
        change="",
        certainty="likely" if found.notes else "certain",
        device=row["device"],
        saved_bytes=row["change"],
        further_bytes=row["change"],
        lines=causes,
        kind="regression",
    )


def _kernel_time(
    found: "Differences", before: int, more: int, changes: list[dict[str, Any]]
) -> Finding:
    grown = sorted(
        (row for row in changes if row["change_ns"] > 0), key=lambda row: -row["change_ns"]
    )
    causes = tuple(
        Line(row["name"], "", f"{format_duration(row['change_ns'])} more ({row['status']})")
        for row in grown[:_MOST_CAUSES]
    )
    of_before = ""
    if before:
        of_before = f", {format_share(more / before)} of the {format_duration(before)} before"
    first = grown[0]
    # Kernels that were there before may also take longer because of the clocks of each run.
    only_new = all(row["status"] in {"new", "gone"} for row in changes)
    return more_than_before(
        f"Kernels take {format_duration(more)} more than before: "
        f"`{first['name']}` takes {causes[0].amount}.",
        f"The kernels that changed take {format_duration(more)} more"
        f"{of_before}. `{first['name']}` {_times(first)}.",
        causes,
        "certain" if only_new and not found.notes else "likely",
        more,
    )


def _times(row: dict[str, Any]) -> str:
    """Return how long the launches of a kernel took on both sides."""
    sides = []
    for side in ("before", "after"):
        launches = format_counted(row[f"{side}_count"], "launch", "launches")
        if row[f"{side}_count"]:
            sides.append(f"{format_duration(row[f'{side}_ns'])} in {launches}")
    return f"took {sides[0]}, and takes {sides[1]}" if len(sides) > 1 else f"takes {sides[0]}"
