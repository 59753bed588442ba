"""The collectives of all ranks: who came last, and how long the others waited."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.collectives import UNKNOWN, late_ranks
from gpuviz.present.section import (
    Cell,
    Part,
    Section,
    hint,
    of_bytes,
    of_count,
    of_share,
    of_time,
    table,
    text,
)
from gpuviz.quantities import (
    format_count,
    format_counted,
    format_duration,
    format_names,
    format_share,
)

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_MOST_ROWS = 200
# Missing ranks of a collective.
_MOST_NAMED = 8
_HEAD = ("Collective", "Bytes", "Start", "Last rank", "Later than the others", "Waited")
_HEAD_OF_RANKS = ("Rank", "Times last", "Later than the others", "The others waited")
_HEAD_OF_BUCKETS = ("Rank", "Bucket", "Bytes", "Times", "Total", "Hidden", "Not hidden", "Line")
_HINT = (
    "A collective runs once its last rank has begun. Waited is how long the kernels of the other "
    "ranks had run by then, all together."
)


def collectives_section(recording: "Recording") -> Section | None:
    """Return the section about collectives; None if ranks of several are not recorded."""
    rows = recording.collectives().to_pylist()
    if not any(len(row["recorded"]) > 1 for row in rows):
        return None
    longest = sorted(rows, key=lambda row: (-row["waited_ns"], -row["late_ns"], row["time"]))
    parts = (
        hint(f"{_HINT} {_unmatched(rows)}".rstrip()),
        *_hidden(recording),
        table("Ranks that came last", _HEAD_OF_RANKS, _ranks(rows)),
        table("Collectives", _HEAD, map(_row, longest[:_MOST_ROWS])),
    )
    return Section("collectives", "Collectives", parts, len(rows))


def _hidden(recording: "Recording") -> list[Part]:
    """Return how much of the collectives other work hides: a sentence and a table of buckets."""
    buckets = recording.hidden_collectives().to_pylist()
    if not buckets:
        return []
    ranks: dict[str, list[int]] = {}
    for row in buckets:
        sums = ranks.setdefault(row["process"] or f"rank {row['rank']}", [0, 0])
        sums[0] += row["hidden_ns"]
        sums[1] += row["total_ns"]
    parts = [
        f"{name} {format_share(hidden / max(total, 1))} of {format_duration(total)} hidden"
        for name, (hidden, total) in ranks.items()
    ]
    sentence = f"Beside other kernels and copies: {format_names(parts)}."
    rows = map(_bucket, buckets[:_MOST_ROWS])
    return [text(sentence), table("Buckets", _HEAD_OF_BUCKETS, rows)]


def _bucket(row: dict[str, Any]) -> tuple[Cell, ...]:
    return (
        Cell(row["process"] or f"rank {row['rank']}"),
        Cell(f"{row['function']} {format_count(row['bucket'])}"),
        of_bytes(row["bytes"]),
        of_count(row["count"]),
        of_time(row["total_ns"]),
        of_share(row["hidden_ns"] / max(row["total_ns"], 1)),
        of_time(row["total_ns"] - row["hidden_ns"]),
        Cell(place=row["site"]),
    )


def _unmatched(rows: Sequence[dict[str, Any]]) -> str:
    """Return a sentence about collectives without a known last rank; empty if there are none."""
    incomplete = sum(bool(row["missing"]) for row in rows)
    within = sum(row["last_rank"] == UNKNOWN and not row["missing"] for row in rows)
    parts = []
    if incomplete:
        parts.append(f"ranks of {format_counted(incomplete, 'collective')} were not recorded")
    if within:
        parts.append(f"the last rank of {format_counted(within, 'collective')} is not certain")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _ranks(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[Cell, ...]]:
    for each in late_ranks(rows):
        waited = of_time(each.waited_ns or None)
        yield Cell(each.name), of_count(each.count), of_time(each.late_ns), waited


def _row(row: dict[str, Any]) -> tuple[Cell, ...]:
    return (
        Cell(row["function"]),
        of_bytes(row["bytes"]),
        of_time(row["time"]),
        Cell(_last_of(row)),
        of_time(_known(row["late_ns"])),
        of_time(_known(row["waited_ns"])),
    )


def _known(duration_ns: int) -> int | None:
    return None if duration_ns == UNKNOWN else duration_ns


def _missing(row: dict[str, Any]) -> str:
    """Return which ranks of a collective were not recorded; of many, how many."""
    count = format_counted(row["missing"], "rank")
    if row["missing"] > _MOST_NAMED:
        return count
    missing = (rank for rank in range(row["ranks"]) if rank not in row["recorded"])
    return f"{count.partition(' ')[2]} {format_names(list(map(str, islice(missing, _MOST_NAMED))))}"


def _last_of(row: dict[str, Any]) -> str:
    """Return who came last in a collective, or why that is unknown."""
    if row["missing"]:
        return f"unknown: {_missing(row)} not recorded"
    if row["last_rank"] != UNKNOWN:
        return row["last_process"] or f"rank {row['last_rank']}"
    if row["error_ns"] == UNKNOWN:
        return "unknown: the clocks of the hosts are not aligned"
    if row["error_ns"]:
        return f"within the error of {format_duration(row['error_ns'])}"
    return "not certain"
