"""Findings of a report, with the numbers behind them."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.out_of_memory.request import RequestDetails
from gpuviz.quantities import format_bytes, format_counted, format_duration, format_share
from gpuviz.report.markup import code_and_site, items
from gpuviz.report.summary import has_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.recording.recording import Recording
    from gpuviz.report.summary import DeviceSummary

_MUCH_UNUSED = 0.25
_MOST_LINES = 3
_AROUND = 0.02
_PAGEABLE = "pageable_memcpy"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the program and its share of a finding."""

    source: str
    site: str
    amount: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about a recording.

    Attributes:
        title: The finding with its number, in one sentence.
        detail: Explanation.
        is_alarm: Whether the program failed, or nearly did.
        lines: The lines of the program behind it, largest share first.
        window: The window in ns that shows it; None if there is no particular time.
    """

    title: str
    detail: str
    is_alarm: bool = False
    lines: tuple[Line, ...] = ()
    window: tuple[int, int] | None = None


def findings(recording: "Recording", summary: "DeviceSummary") -> list[Finding]:
    """Return the findings on a device, failures first."""
    return [
        *_out_of_memory(recording, summary),
        *_retries(summary.retries),
        *_unused(recording, summary),
        *_still_allocated(recording, summary),
        *_blocking(recording),
    ]


def findings_list(recording: "Recording", summary: "DeviceSummary") -> str:
    """Return the findings on a device as HTML; every text from the recording is escaped."""
    found = findings(recording, summary)
    if not found:
        nothing = escape(nothing_found(recording, summary))
        return f'<p class="gpuviz-findings__none">{nothing}</p>'
    return items(map(_item, found), "gpuviz-findings")


def nothing_found(recording: "Recording", summary: "DeviceSummary") -> str:
    """Return what was looked for without a finding, and what is unknown, in sentences."""
    knows_segments = summary.reserved_peak > 0 or not summary.allocated_peak
    known = [
        "no allocation failed" + (" or was retried" if knows_segments else ""),
        *(["little memory was free in segments at the peak"] if knows_segments else ()),
        "nothing was still allocated at the end",
        *(["no call blocked the host"] if has_calls(recording) else ()),
    ]
    missing = [
        *(() if knows_segments else ["segments of memory"]),
        *(() if has_calls(recording) else ["CUDA calls"]),
    ]
    text = f"No findings: {', '.join(known[:-1])}, and {known[-1]}."
    return f"{text} Not recorded: {' and '.join(missing)}." if missing else text


def _item(finding: Finding) -> str:
    kind = "alarm" if finding.is_alarm else "note"
    shown = ""
    if finding.window is not None:
        start, end = finding.window
        shown = (
            f' <button type="button" class="gpuviz-button" data-show="{start}-{end}" hidden>'
            "Show in the timeline</button>"
        )
    lines = items(
        (
            f"{code_and_site(line.source, line.site)} "
            f'<span class="gpuviz-finding__amount">{escape(line.amount)}</span>'
            for line in finding.lines
        ),
        "gpuviz-finding__lines",
    )
    return (
        f'<div class="gpuviz-finding gpuviz-finding--{kind}"><strong>{escape(finding.title)}'
        f"</strong> {escape(finding.detail)}{shown}{lines}</div>"
    )


def _out_of_memory(recording: "Recording", summary: "DeviceSummary") -> "Iterator[Finding]":
    import pyarrow.compute as pc

    if not summary.out_of_memory:
        return
    events = recording.table("memory_events")
    failed = events.filter(
        pc.and_(
            pc.equal(events["action"].cast("string"), "oom"),
            pc.equal(events["device"], summary.device),
        ),
    )
    first = failed.slice(0, 1).to_pylist()[0]
    free = RequestDetails(recording, first).device_free
    yield Finding(
        f"{format_counted(summary.out_of_memory, 'allocation')} failed: out of memory.",
        f"The first requested {format_bytes(first['size'])} at {format_duration(first['time'])}"
        f"{'' if free is None else f', when {format_bytes(free)} of the device were free'}.",
        is_alarm=True,
        lines=_lines_of_stacks(recording, failed["stack"].to_pylist()),
        window=_around(recording, first["time"]),
    )


def _retries(retries: int) -> "Iterator[Finding]":
    if retries:
        yield Finding(
            f"{format_counted(retries, 'allocation')} succeeded only after cached segments were "
            "released.",
            "Releasing segments waits for the device, and they are requested again later.",
            is_alarm=True,
        )


def _unused(recording: "Recording", summary: "DeviceSummary") -> "Iterator[Finding]":
    unused = summary.free_at_peak / max(summary.reserved_at_peak, 1)
    if unused > _MUCH_UNUSED:
        yield Finding(
            f"{format_share(unused)} of the reserved memory was free at the peak.",
            f"{format_bytes(summary.free_at_peak)} of {format_bytes(summary.reserved_at_peak)}; "
            f"the largest free block had {format_bytes(summary.largest_free_at_peak)}, and "
            f"{format_share(summary.fragmentation_at_peak)} of the free bytes were elsewhere.",
            window=_around(recording, summary.allocated_peak_ns),
        )


def _still_allocated(recording: "Recording", summary: "DeviceSummary") -> "Iterator[Finding]":
    if not summary.allocations_end:
        return
    rows = recording.sites("line", at="end", device=summary.device).slice(0, _MOST_LINES)
    yield Finding(
        f"{format_counted(summary.allocations_end, 'block')} "
        f"({format_bytes(summary.allocated_end)}) "
        f"{'was' if summary.allocations_end == 1 else 'were'} still allocated at the end.",
        "",
        lines=tuple(
            Line(
                row["source"],
                row["site"],
                f"{format_bytes(row['live_bytes'])} in "
                f"{format_counted(row['live_count'], 'block')}",
            )
            for row in rows.to_pylist()
            if row["live_count"]
        ),
    )


def _blocking(recording: "Recording") -> list[Finding]:
    """Return the findings on blocking calls that took time, longest total time first.

    Copies of pageable memory that only waited for earlier work count as synchronizing calls.
    """
    rows: list[dict[str, Any]] = recording.synchronizations("line").to_pylist()
    pageable = [row for row in rows if row["kind"] == _PAGEABLE and row["transfer_ns"]]
    calls = [row for row in rows if row["kind"] != _PAGEABLE or not row["transfer_ns"]]
    found = [
        (_sum(calls, "total_ns"), _synchronizing(calls, recording.time_range)),
        (_sum(pageable, "transfer_ns"), _copies_of_pageable_memory(pageable)),
    ]
    found.sort(key=lambda each: -each[0])
    return [finding for total_ns, finding in found if total_ns]


def _synchronizing(rows: list[dict[str, Any]], time_range: tuple[int, int]) -> Finding:
    total = _sum(rows, "total_ns")
    duration_ns = time_range[1] - time_range[0]
    return Finding(
        f"Synchronizing calls blocked the host {_times(rows)}, for {format_duration(total)} in "
        "total.",
        f"{format_share(total / max(duration_ns, 1))} of the recording's duration, summed over "
        "threads.",
        lines=_lines(rows, "total_ns"),
    )


def _copies_of_pageable_memory(rows: list[dict[str, Any]]) -> Finding:
    """Return the finding on pageable copies: only transfer time, not waits for earlier work."""
    copies = format_counted(
        sum(row["count"] for row in rows), "asynchronous copy", "asynchronous copies"
    )
    transfer = format_duration(_sum(rows, "transfer_ns"))
    rows = sorted(rows, key=lambda row: -row["transfer_ns"])
    return Finding(
        f"{copies} of pageable memory blocked the host for {transfer}.",
        "Copies from and to pinned memory return immediately.",
        lines=_lines(rows, "transfer_ns"),
    )


def _sum(rows: list[dict[str, Any]], column: str) -> int:
    return sum(row[column] for row in rows)


def _lines(rows: list[dict[str, Any]], column: str) -> tuple[Line, ...]:
    return tuple(
        Line(
            row["source"],
            row["site"],
            f"{row['name'] or row['kind']}, {_times([row])}, {format_duration(row[column])}",
        )
        for row in rows[:_MOST_LINES]
    )


def _lines_of_stacks(recording: "Recording", stacks: list[int]) -> tuple[Line, ...]:
    counts: dict[tuple[str, str], int] = {}
    for stack in stacks:
        site, source = recording.call_stacks.call_site(stack)
        counts[source, site] = counts.get((source, site), 0) + 1
    largest = sorted(counts.items(), key=lambda item: -item[1])[:_MOST_LINES]
    return tuple(Line(*key, format_counted(count, "time")) for key, count in largest)


def _around(recording: "Recording", time_ns: int) -> tuple[int, int]:
    start, end = recording.time_range
    half = max(int((end - start) * _AROUND), 1000)
    return max(time_ns - half, start), time_ns + half


def _times(rows: list[dict[str, Any]]) -> str:
    return format_counted(sum(row["count"] for row in rows), "time")
