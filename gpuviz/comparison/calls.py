"""Copies, memsets and waits of the host that cost more than before, by line: part of R39."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import ALL_DEVICES, Certainty, Finding, named
from gpuviz.analysis.copies import copies
from gpuviz.analysis.launches import CallSites, calls_of, durations, stacks_of
from gpuviz.analysis.synchronizations import synchronizations
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_counted, format_duration

_KINDS = DICTIONARIES["activities", "kind"]
_SYNCHRONIZATIONS = ("event_synchronize", "stream_synchronize", "context_synchronize")
# Of the copies' time before. Smaller changes come from the clocks of each run.
_LEAST_CHANGE = 0.05
_MOST_CAUSES = 3
# Of the peak, and of the time of the recording before: less is not worth a sentence.
LEAST_SHARE = 0.001


def more_than_before(
    title: str, reason: str, lines: tuple[Line, ...], certainty: Certainty, change_ns: int
) -> Finding:
    """Return that something takes longer than before."""
    return Finding(
        rule="R39",
        title=title,
        reason=reason,
        change="",
        certainty=certainty,
        device=ALL_DEVICES,
        saved_ns=max(change_ns, 0),
        further_ns=max(change_ns, 0),
        lines=lines,
        kind="regression",
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """What a line does in one way: with which memory, or by which call."""

    site: str
    source: str
    how: str
    kind: str
    count: int
    bytes: int
    time_ns: int

    @property
    def place(self) -> tuple[str, str]:
        """What identifies the line, also after edits above it."""
        return (self.source or self.site, self.kind)


def increases(before: RecordingData, after: RecordingData) -> Iterator[Finding]:
    """Yield what takes longer: copies, then more memsets, then more synchronizations."""
    yield from _of_copies(_copies(before), _copies(after))
    least_ns = max(int(LEAST_SHARE * before.covered_ns), 1)
    yield from _of_memsets(_memsets(before), _memsets(after), least_ns)
    yield from _of_waits(_waits(before), _waits(after), least_ns)


def _of_copies(before: list[_Row], after: list[_Row]) -> Iterator[Finding]:
    was, now = (sum(row.time_ns for row in rows) for rows in (before, after))
    if now - was <= _LEAST_CHANGE * was:
        return
    total = f"Copies take {format_duration(now - was)} more than before"
    pageable = _no_longer_pinned(before, after)
    if pageable:
        first, _ = pageable[0]
        old = [row for row in before if row.kind == first.kind and row.how == "pinned"]
        yield more_than_before(
            f"{total}: {named(first.site, first.source)} copies pageable memory, which was pinned.",
            f"{format_counted(first.count, 'copy', 'copies')} of {format_bytes(first.bytes)} "
            f"{_speed([first])}; before, those of pinned memory {_speed(old)}.",
            tuple(_line(row, row.time_ns) for row, _ in pageable[:_MOST_CAUSES]),
            "likely",
            now - was,
        )
        return
    grown = _grown(before, after, lambda row: row.time_ns)
    if not grown:
        return
    first, more = grown[0]
    yield more_than_before(
        f"{total}: {named(first.site, first.source)} takes {format_duration(more)} more.",
        f"Copies took {format_duration(was)} and take {format_duration(now)}; this line makes "
        f"{format_counted(first.count, 'copy', 'copies')} of {format_bytes(first.bytes)} in total.",
        tuple(_line(row, each) for row, each in grown[:_MOST_CAUSES]),
        "likely",
        now - was,
    )


def _no_longer_pinned(before: list[_Row], after: list[_Row]) -> list[tuple[_Row, int]]:
    """Return the lines with more pageable copies where fewer bytes are pinned, and by how much."""

    def of(rows: list[_Row], how: str) -> list[_Row]:
        return [row for row in rows if row.how == how]

    def sizes(rows: list[_Row]) -> Counter[str]:
        sums = Counter[str]()
        for row in rows:
            sums[row.kind] += row.bytes
        return sums

    lost = sizes(of(before, "pinned")) - sizes(of(after, "pinned"))
    grown = _grown(of(before, "pageable"), of(after, "pageable"), lambda row: row.time_ns)
    return [(row, more) for row, more in grown if lost[row.kind]]


def _of_memsets(before: list[_Row], after: list[_Row], least_ns: int) -> Iterator[Finding]:
    grown = _grown(before, after, lambda row: row.count)
    more, change = _totals(before, after)
    if more <= 0 or change < least_ns or not grown:
        return
    first, count = grown[0]
    yield more_than_before(
        f"{format_counted(more, 'memset')} more than before: {named(first.site, first.source)} "
        f"makes {count:,}.",
        f"Memsets take {format_duration(change)} more than before; those of this line set "
        f"{format_bytes(first.bytes)}.",
        tuple(_line(row, row.time_ns) for row, _ in grown[:_MOST_CAUSES]),
        "certain",
        change,
    )


def _of_waits(before: list[_Row], after: list[_Row], least_ns: int) -> Iterator[Finding]:
    grown = _grown(before, after, lambda row: row.count)
    more, change = _totals(before, after)
    if more <= 0 or change < least_ns or not grown:
        return
    first, count = grown[0]
    calls = f"calls `{first.how}`" if first.how else "synchronizes"
    yield more_than_before(
        f"{format_counted(more, 'synchronization')} more than before: "
        f"{named(first.site, first.source)} {calls} {format_counted(count, 'time', 'times')} more.",
        f"The host waits {format_duration(first.time_ns)} in the synchronizations of this line, "
        f"and {format_duration(change)} more than before in all of them.",
        tuple(_line(row, row.time_ns) for row, _ in grown[:_MOST_CAUSES]),
        "certain",
        change,
    )


def _totals(before: list[_Row], after: list[_Row]) -> tuple[int, int]:
    """Return by how much the number and the time of some rows are larger."""
    signed = [(1, row) for row in after] + [(-1, row) for row in before]
    return sum(sign * row.count for sign, row in signed), sum(
        sign * row.time_ns for sign, row in signed
    )


def _per_place(rows: list[_Row], value: Callable[[_Row], int]) -> Counter[tuple[str, str]]:
    sums = Counter[tuple[str, str]]()
    for row in rows:
        sums[row.place] += value(row)
    return sums


def _grown(
    before: list[_Row], after: list[_Row], value: Callable[[_Row], int]
) -> list[tuple[_Row, int]]:
    """Return the lines with more than before, and by how much, largest first."""
    was, now = _per_place(before, value), _per_place(after, value)
    of_place = {row.place: row for row in after}
    more = [(of_place[place], now[place] - was[place]) for place in of_place]
    return sorted((each for each in more if each[1] > 0), key=lambda each: -each[1])


def _speed(rows: list[_Row]) -> str:
    time_ns, size = sum(row.time_ns for row in rows), sum(row.bytes for row in rows)
    return f"reach {size / max(time_ns, 1):.1f} GB/s"


def _line(row: _Row, time_ns: int) -> Line:
    return Line(row.site, row.source, f"{format_duration(time_ns)} in {row.count:,}")


def _copies(recording: RecordingData) -> list[_Row]:
    return [
        _Row(
            row["site"],
            row["source"],
            row["host_memory"],
            row["copy_kind"],
            row["count"],
            row["bytes"],
            row["total_ns"],
        )
        for row in copies(recording, "line").to_pylist()
    ]


def _waits(recording: RecordingData) -> list[_Row]:
    """Return the synchronizations of each line, and the copies that wait longer than they copy.

    Of several calls of a line, such as a copy and the synchronization after it, the longest counts.
    """
    found: dict[tuple[str, str], _Row] = {}
    for row in synchronizations(recording, "line").to_pylist():
        is_copy = row["kind"] not in _SYNCHRONIZATIONS
        if is_copy and (row["waiting_ns"] or 0) <= (row["transfer_ns"] or 0):
            continue
        time_ns = row["waiting_ns"] if is_copy else row["total_ns"]
        made = _Row(row["site"], row["source"], row["name"], "", row["count"], 0, time_ns)
        place = row["site"], row["source"]
        known = found.setdefault(place, made)
        if known is not made:
            longer = max(known, made, key=lambda each: each.time_ns)
            found[place] = replace(longer, time_ns=known.time_ns + made.time_ns)
    return list(found.values())


def _memsets(recording: RecordingData) -> list[_Row]:
    activities = recording.tables["activities"]
    is_memset = codes(activities["kind"], _KINDS) == _KINDS.index("memset")
    rows = activities.take(np.flatnonzero(is_memset))
    calls = calls_of(recording.tables, plain(rows["correlation"]))
    sites = CallSites(recording, stacks_of(recording.tables, calls))
    sizes, lengths = plain(rows["bytes"]), durations(rows, recording.bounds)
    found: dict[int, dict[str, Any]] = {}
    for row, number in enumerate(sites.numbers("line").tolist()):
        site, source = recording.call_stacks.call_site(int(sites.stacks[row]))
        sums = found.setdefault(
            number, {"site": site, "source": source, "count": 0, "bytes": 0, "time_ns": 0}
        )
        sums["count"] += 1
        sums["bytes"] += int(sizes[row])
        sums["time_ns"] += int(lengths[row])
    return [_Row(how="", kind="", **sums) for sums in found.values()]
