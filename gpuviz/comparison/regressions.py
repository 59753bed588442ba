"""What costs more than in the recording before, and because of what: rule R39."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.advice.finding import Certainty, Line, named
from gpuviz.comparison.calls import increases
from gpuviz.comparison.limits import amount
from gpuviz.quantities import format_counted, format_duration, format_share

if TYPE_CHECKING:
    from gpuviz.comparison.diff import Differences

_MOST_CAUSES = 3
# Of the kernels' time before. Smaller changes come from clocks and neighbours.
_LEAST_CHANGE = 0.05


@dataclass(frozen=True, slots=True)
class Regression:
    """A quantity that is larger than in the recording before, and because of what.

    Attributes:
        rule: ``R39``; see docs/findings.md.
        quantity: ``peak``, ``kernel_time``, ``copy_time``, ``memset_time`` or ``wait_time``, as in
            `Diff.quantities`.
        device: Ordinal; None for all devices together.
        change: The increase, in bytes or ns.
        title: The increase and its largest cause, in one line.
        reason: The figures that gpuviz followed.
        certainty: ``certain`` if it follows from the two recordings; ``likely`` if it rests on
            times that may differ for other reasons, or if `Diff.notes` limits the comparison.
        causes: The lines that hold more, or the kernels (``site`` is the kernel's name) that take
            more time, largest first, at most three.
    """

    rule: str
    quantity: str
    device: int | None
    change: int
    title: str
    reason: str
    certainty: Certainty
    causes: tuple[Line, ...]


def regressions(found: "Differences") -> Iterator[Regression]:
    """Yield what costs more than before: peaks by device, then kernels, then other calls."""
    rows = found.quantities.to_pylist()
    peaks = [row for row in rows if row["name"] == "peak"]
    for row in peaks:
        if row["change"] > 0:
            yield _peak(found, row, several=len(peaks) > 1)
    if not all(each.tables["activities"].num_rows for each in (found.before, found.after)):
        return  # what is not recorded cannot be compared
    time = next(row for row in rows if row["name"] == "kernel_time")
    changes = found.kernels.to_pylist()
    more = sum(row["change_ns"] for row in changes)
    if more > 0 and more >= _LEAST_CHANGE * time["before"]:
        yield _kernel_time(found, time["before"], more, changes)
    for each in increases(found.before, found.after):
        # Numbers of calls are certain; times may differ for other reasons.
        is_sure = each.quantity != "copy_time" and not found.notes
        certainty: Certainty = "certain" if is_sure else "likely"
        yield Regression(
            "R39",
            each.quantity,
            None,
            each.change,
            each.title,
            each.reason,
            certainty,
            each.causes,
        )


def _peak(found: "Differences", row: dict[str, Any], *, several: bool) -> Regression:
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
    return Regression(
        "R39",
        "peak",
        row["device"],
        row["change"],
        f"The peak{of} is {amount(row['change'], 'B')} higher than before: "
        f"{first} holds {amount(grown[0]['change'], 'B')} more.",
        f"At the peak, {format_counted(len(grown), 'line')} {held} {amount(more, 'B')} more than "
        f"before{offset}. The peak was {amount(row['before'], 'B')} and is "
        f"{amount(row['after'], 'B')}.",
        "likely" if found.notes else "certain",
        causes,
    )


def _kernel_time(
    found: "Differences", before: int, more: int, changes: list[dict[str, Any]]
) -> Regression:
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
    return Regression(
        "R39",
        "kernel_time",
        None,
        more,
        f"Kernels take {format_duration(more)} more than before: "
        f"`{first['name']}` takes {causes[0].amount}.",
        f"The kernels that changed take {format_duration(more)} more"
        f"{of_before}. `{first['name']}` {_times(first)}.",
        "certain" if only_new and not found.notes else "likely",
        causes,
    )


def _times(row: dict[str, Any]) -> str:
    """Return how long the launches of a kernel took on both sides."""
    sides = []
    for side in ("before", "after"):
        launches = format_counted(row[f"{side}_count"], "launch", "launches")
        if row[f"{side}_count"]:
            sides.append(f"{format_duration(row[f'{side}_ns'])} in {launches}")
    return f"took {sides[0]}, and takes {sides[1]}" if len(sides) > 1 else f"takes {sides[0]}"
