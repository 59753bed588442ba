"""Growing memory as conclusions."""

from typing import Any

import pyarrow as pa

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding, Findings, named
from gpuviz.quantities import format_bytes, format_count, format_counted

NOTHING_GROWS = "No line's live memory grows with iterations or with runs of a cell."
_UNITS = {"iteration": "iteration", "cell": "run of its cell"}
_USES = {
    "unused": "nothing used these arrays again",
    "partly": "{unused} of it was not used again",
    "used": "these arrays are used again",
    "unknown": "whether these arrays are used again is unknown",
}


def growth_of(leaks: pa.Table) -> Findings:
    """Return what `gpuviz.Recording.leaks` returned as conclusions, in its order."""
    return Findings(map(_growth, leaks.to_pylist()))


def _growth(row: dict[str, Any]) -> Finding:
    place, size = named(row["site"], row["source"].strip()), format_bytes(row["live_bytes"])
    arrays = format_counted(row["live_count"], "array")
    use = _USES[row["use"]].format(unused=format_bytes(row["unused_bytes"] or 0))
    if row["by"] == "recording":
        grows = f"{place} keeps {size}."
        held = f"{arrays}, each kept with a probability of {100 * row['score']:.0f} %; {use}."
    else:
        unit = _UNITS[row["by"]]
        low, high = (format_bytes(row[name]) for name in ("growth_low_bytes", "growth_high_bytes"))
        between = "" if low == high else f" ({low} to {high})"
        pace = f"{format_bytes(row['growth_bytes'])}{between}"
        grows = f"{place} keeps {pace} more with each {unit}."
        plural = unit.replace("run", "runs", 1) if row["by"] == "cell" else f"{unit}s"
        held = f"{size} in {arrays} after {format_count(row['periods'])} {plural}; {use}."
    if row["kept_by"]:
        held += f" Kept alive by {row['kept_by']}."
    return Finding(
        kind="growth",
        rule="",
        title=grows,
        reason=held,
        change="",
        certainty=row["certainty"],
        device=row["device"],
        lines=(Line(row["site"], row["source"], size, row["stack"]),),
    )
