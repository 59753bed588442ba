"""What a report says about a device: failures, findings and other facts."""

import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.dominant import dominant
from gpuviz.advice.finding import Line
from gpuviz.advice.finding_text import NOTHING_FOUND, saving
from gpuviz.advice.scale import LEAST_BYTES
from gpuviz.advice.text import MOST_SHOWN, short_saving
from gpuviz.data.columns import plain, rows_at
from gpuviz.data.strings import texts
from gpuviz.out_of_memory.request import RequestDetails
from gpuviz.quantities import format_bytes, format_counted, format_duration, format_share
from gpuviz.report.markup import code_and_site, items, with_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpuviz.advice.finding import Evidence, Finding
    from gpuviz.recording import Recording
    from gpuviz.report.summary import DeviceSummary

_MUCH_UNUSED = 0.25
# The rule whose findings are about wrong results.
_HAZARD = "R40"
_MOST_LINES = 3
_MOST_VISIBLE = MOST_SHOWN
_AROUND = 0.02


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the report says about a device.

    Attributes:
        title: What it is, with its number, in one sentence.
        detail: Sentences that explain it, in lines.
        is_alarm: Whether the program failed or nearly did, or its results may be wrong.
        lines: The lines of the program behind it, largest share first.
        window: The window in ns that shows it; None if there is no particular time.
        kernels: The names of the kernels that show it; empty if it is not about kernels alone.
        saving: What a change saves, in a word or two; empty if unknown.
        rule: The rule that it follows from; empty if it is a fact.
        unordered: The rows of ``activities`` that an arrow of the timeline joins; None if none.
    """

    title: str
    detail: str
    is_alarm: bool = False
    lines: tuple[Line, ...] = ()
    window: tuple[int, int] | None = None
    kernels: tuple[str, ...] = ()
    saving: str = ""
    rule: str = ""
    unordered: tuple[int, int] | None = None


def notices(
    recording: "Recording", summary: "DeviceSummary", found: "Sequence[Finding]"
) -> list[Notice]:
    """Return what the report says about a device: what is wrong, then findings, then other facts.

    Args:
        recording: The recording.
        summary: The device's numbers.
        found: The recording's findings, most saving first.
    """
    of_findings = [_of_finding(recording, each) for each in found if each.device == summary.device]
    return [
        *(each for each in of_findings if each.is_alarm),
        *_out_of_memory(recording, summary),
        *_retries(summary.retries),
        *(each for each in of_findings if not each.is_alarm),
        *_dominant(recording, summary.device),
        *_unused(recording, summary),
        *_still_allocated(recording, summary),
    ]


def notices_list(shown: list[Notice], unknown: "Iterable[str]") -> str:
    """Return notices as HTML; every text from the recording is escaped.

    Args:
        shown: The notices; the first few are visible at once.
        unknown: Sentences on what could not be looked at.
    """
    listed = [_item(number, notice) for number, notice in enumerate(shown, 1)]
    first, rest = listed[:_MOST_VISIBLE], listed[_MOST_VISIBLE:]
    parts = [items(first, "gpuviz-findings")]
    if not shown:
        parts.append(_paragraph(NOTHING_FOUND))
    if rest:
        summary = format_counted(len(rest), "more finding")
        more = items(rest, "gpuviz-findings")
        parts.append(f"<details><summary>{escape(summary)}</summary>{more}</details>")
    return "".join([*parts, *map(_paragraph, unknown)])


def show_button(notice: Notice, number: int) -> str:
    """Return a button that leads to a notice's time, and to its rows in the table that has them.

    That of a notice with an arrow leads to the notice itself, by its number in the list.

    Empty if there is no particular time. The button is hidden until it works.
    """
    if notice.window is None:
        return ""
    start, end = notice.window
    tab = "kernels" if notice.kernels else "lines"
    rows = notice.kernels or tuple(dict.fromkeys(line.site for line in notice.lines))
    leads = f' data-tab="{tab}" data-rows="{escape(json.dumps(rows))}"' if rows else ""
    if notice.unordered is not None:
        leads = f' data-tab="hazards" data-number="{number}"'
    return (
        f'<button type="button" class="gpuviz-link" data-show="{start}-{end}"{leads} hidden>'
        "show</button>"
    )


def _paragraph(text: str) -> str:
    return f'<p class="gpuviz-findings__none">{escape(text)}</p>'


def _item(number: int, notice: Notice) -> str:
    kind = "alarm" if notice.is_alarm else "note"
    lines = items(
        (
            f"{code_and_site(line.source, line.site)} "
            f'<span class="gpuviz-finding__amount">{escape(line.amount)}</span>'
            for line in notice.lines
        ),
        "gpuviz-finding__lines",
    )
    arrow = "" if notice.unordered is None else ' data-hazard="{}-{}"'.format(*notice.unordered)
    details = "".join(f"<div>{with_code(line)}</div>" for line in notice.detail.splitlines())
    return (
        f'<div class="gpuviz-finding gpuviz-finding--{kind}" data-item="{number}"{arrow}>'
        f"<strong>{with_code(notice.title)}</strong> {show_button(notice, number)}{details}{lines}"
        "</div>"
    )


def _dominant(recording: "Recording", device: int) -> "Iterator[Notice]":
    """Yield the lines with most GPU time and most memory, which are no faults."""
    for fact in dominant(recording):
        if fact.device == device:
            yield Notice(fact.text, "", lines=(fact.line,))


def _of_finding(recording: "Recording", finding: "Finding") -> Notice:
    saved = saving(finding)
    sentences = [f"Saves {saved}." if saved else "", finding.reason, finding.change]
    window = None if finding.evidence is None else finding.evidence.window
    return Notice(
        finding.title,
        "\n".join(filter(None, sentences)),
        is_alarm=finding.rule == _HAZARD,
        lines=finding.lines,
        window=window,
        kernels=_kernels(recording, finding.evidence),
        saving=short_saving(finding),
        rule=finding.rule,
    )


def _kernels(recording: "Recording", evidence: "Evidence | None") -> tuple[str, ...]:
    """Return the names of the kernels that are all of the evidence; empty if it is otherwise."""
    if evidence is None or evidence.table != "activities":
        return ()
    rows = rows_at(recording.tables["activities"], np.array(evidence.rows, np.int64))
    if set(rows["kind"].to_pylist()) != {"kernel"}:
        return ()
    return tuple(dict.fromkeys(texts(recording.tables, plain(rows["name"]))))


def _out_of_memory(recording: "Recording", summary: "DeviceSummary") -> "Iterator[Notice]":
    if not summary.out_of_memory:
        return
    import pyarrow.compute as pc

    events = recording.table("memory_events")
    failed = events.filter(
        pc.and_(
            pc.equal(events["action"].cast("string"), "oom"),
            pc.equal(events["device"], summary.device),
        ),
    )
    first = failed.slice(0, 1).to_pylist()[0]
    free = RequestDetails(recording, first).device_free
    yield Notice(
        f"{format_counted(summary.out_of_memory, 'allocation')} failed: out of memory.",
        f"The first requested {format_bytes(first['size'])} at {format_duration(first['time'])}"
        f"{'' if free is None else f', when {format_bytes(free)} of the device were free'}.",
        is_alarm=True,
        lines=_lines_of_stacks(recording, failed["stack"].to_pylist()),
        window=around(recording, first["time"]),
    )


def _retries(retries: int) -> "Iterator[Notice]":
    if retries:
        yield Notice(
            f"{format_counted(retries, 'allocation')} succeeded only after cached segments were "
            "released.",
            "Releasing segments waits for the device, and they are requested again later.",
            is_alarm=True,
        )


def _unused(recording: "Recording", summary: "DeviceSummary") -> "Iterator[Notice]":
    unused = summary.free_at_peak / max(summary.reserved_at_peak, 1)
    if unused > _MUCH_UNUSED and summary.free_at_peak >= LEAST_BYTES:
        yield Notice(
            f"{format_share(unused)} of the reserved memory was free at the peak.",
            f"{format_bytes(summary.free_at_peak)} of {format_bytes(summary.reserved_at_peak)}; "
            f"the largest free block had {format_bytes(summary.largest_free_at_peak)}, and "
            f"{format_share(summary.fragmentation_at_peak)} of the free bytes were elsewhere.",
            window=around(recording, summary.allocated_peak_ns),
        )


def _still_allocated(recording: "Recording", summary: "DeviceSummary") -> "Iterator[Notice]":
    if not summary.allocations_end:
        return
    rows = recording.sites("line", at="end", device=summary.device).slice(0, _MOST_LINES)
    yield Notice(
        f"{format_counted(summary.allocations_end, 'block')} "
        f"({format_bytes(summary.allocated_end)}) "
        f"{'was' if summary.allocations_end == 1 else 'were'} still allocated at the end.",
        "",
        lines=tuple(
            Line(
                row["site"],
                row["source"],
                f"{format_bytes(row['live_bytes'])} in "
                f"{format_counted(row['live_count'], 'block')}",
            )
            for row in rows.to_pylist()
            if row["live_count"]
        ),
    )


def _lines_of_stacks(recording: "Recording", stacks: list[int]) -> tuple[Line, ...]:
    counts: dict[tuple[str, str], int] = {}
    for stack in stacks:
        site, source = recording.call_stacks.call_site(stack)
        counts[source, site] = counts.get((source, site), 0) + 1
    largest = sorted(counts.items(), key=lambda item: -item[1])[:_MOST_LINES]
    return tuple(
        Line(site, source, format_counted(count, "time")) for (source, site), count in largest
    )


def around(recording: "Recording", time_ns: int) -> tuple[int, int]:
    """Return the window that shows a moment."""
    start, end = recording.time_range
    half = max(int((end - start) * _AROUND), 1000)
    return max(time_ns - half, start), time_ns + half
