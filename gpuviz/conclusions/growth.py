"""Growing memory as sentences."""

from typing import Any

from gpuviz.quantities import format_bytes, format_count, format_counted

NOTHING_GROWS = "No line's live memory grows with iterations or with runs of a cell."
_UNITS = {"iteration": "iteration", "cell": "run of its cell"}
_USES = {
    "unused": "nothing used these arrays again",
    "partly": "{unused} of it was not used again",
    "used": "these arrays are used again",
    "unknown": "whether these arrays are used again is unknown",
}


def pace(row: dict[str, Any]) -> str:
    """Return by how much the memory of a row grows each time; empty if that is unknown."""
    return "" if row["growth_bytes"] is None else f"+{format_bytes(row['growth_bytes'])}"


def held(row: dict[str, Any]) -> str:
    """Return a sentence on what the line of a row keeps."""
    size = format_bytes(row["live_bytes"])
    arrays = format_counted(row["live_count"], "array")
    unused = format_bytes(row["unused_bytes"] or 0)
    use = _USES[row["use"]].format(unused=unused)
    if row["by"] == "recording":
        score = f"{100 * row['score']:.0f} %"
        return f"{size} in {arrays}, kept with a probability of {score} each; {use}."
    unit = _UNITS[row["by"]]
    low, high = (format_bytes(row[name]) for name in ("growth_low_bytes", "growth_high_bytes"))
    between = "" if low == high else f" ({low} to {high})"
    periods = format_count(row["periods"])
    plural = unit.replace("run", "runs", 1) if row["by"] == "cell" else f"{unit}s"
    return f"with each {unit}{between}: {size} in {arrays} after {periods} {plural}; {use}."
