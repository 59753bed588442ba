"""The report's table of the lines that allocated."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.quantities import format_bytes, format_count

if TYPE_CHECKING:
    from gpuviz.recording import Recording

MOST_SITES = 200
_MOST_STACKS = 4
_HEADINGS = (
    ("Line", "The innermost line outside installed packages"),
    ("At the peak", "Bytes allocated when most bytes were allocated"),
    ("At the end", "Bytes still allocated at the end"),
    ("In all", "Bytes allocated over the recording"),
    ("Allocations", "Allocations over the recording"),
)


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the program and what it allocated, in bytes and counts.

    Attributes:
        site: ``function (file:line)``.
        source: The line's text; empty where unknown.
        stacks: The ids of the call stacks that lead to it and their bytes at the peak, the largest
            first.
    """

    site: str
    source: str
    peak_bytes: int
    peak_count: int
    end_bytes: int
    end_count: int
    total_bytes: int
    total_count: int
    stacks: tuple[tuple[int, int], ...]


def find_sites(recording: "Recording", device: int) -> list[Site]:
    """Return the lines that allocated on a device, most bytes at the peak first."""
    at_end = {row["site"]: row for row in _rows(recording, "line", "end", device)}
    stacks: dict[str, list[tuple[int, int]]] = {}
    for row in _rows(recording, "stack", "peak", device):
        stacks.setdefault(row["site"], []).append((row["stack"], row["live_bytes"]))
    return [
        Site(
            site=row["site"],
            source=row["source"],
            peak_bytes=row["live_bytes"],
            peak_count=row["live_count"],
            end_bytes=at_end.get(row["site"], {}).get("live_bytes", 0),
            end_count=at_end.get(row["site"], {}).get("live_count", 0),
            total_bytes=row["total_bytes"],
            total_count=row["total_count"],
            stacks=tuple(stacks.get(row["site"], [])),
        )
        for row in _rows(recording, "line", "peak", device)
    ]


def _rows(recording: "Recording", by: Any, at: Any, device: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = recording.sites(by, at=at, device=device).to_pylist()
    return rows


def sites_table(recording: "Recording", sites: list[Site]) -> str:
    """Return the table as HTML; every text from the recording is escaped."""
    headings = "".join(
        f'<th scope="col"><button type="button" title="{hint}">{name}</button></th>'
        for name, hint in _HEADINGS
    )
    rows = "\n".join(_row(recording, site) for site in sites[:MOST_SITES])
    rest = sites[MOST_SITES:]
    more = (
        f"<p>{format_count(len(rest))} more lines are not listed; together they held "
        f"{format_bytes(sum(site.peak_bytes for site in rest))} at the peak.</p>"
        if rest
        else ""
    )
    return (
        '<div class="gpuviz-scroll" tabindex="0"><table class="gpuviz-table" data-sortable>\n'
        f"<thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>\n{more}"
    )


def _row(recording: "Recording", site: Site) -> str:
    code = site.source.strip() or "(source text unknown)"
    summary = f"<summary>{_source(code)}{_place(site.site)}</summary>"
    return (
        f'<tr><td data-sort="{escape(site.site)}"><details>{summary}'
        f"{_stacks(recording, site)}</details></td>"
        f"{_bytes_cell(site.peak_bytes, site.peak_count)}"
        f"{_bytes_cell(site.end_bytes, site.end_count)}"
        f"{_bytes_cell(site.total_bytes, None)}"
        f'<td data-sort="{site.total_count}">{format_count(site.total_count)}</td></tr>'
    )


def _bytes_cell(size: int, count: int | None) -> str:
    blocks = "" if count is None else _blocks(count)
    title = f"{format_count(size)} B"
    return f'<td data-sort="{size}" title="{title}">{format_bytes(size)}{blocks}</td>'


def _blocks(count: int) -> str:
    noun = "block" if count == 1 else "blocks"
    return f'<div class="gpuviz-table__small">{format_count(count)} {noun}</div>'


def _stacks(recording: "Recording", site: Site) -> str:
    shown = "".join(
        _stack(recording, stack, f"Call stack {number} of {len(site.stacks)}", size)
        for number, (stack, size) in enumerate(site.stacks[:_MOST_STACKS], 1)
    )
    hidden = len(site.stacks) - _MOST_STACKS
    more = (
        f"<p>{format_count(hidden)} more call stacks lead to this line.</p>" if hidden > 0 else ""
    )
    return shown + more


def _stack(recording: "Recording", stack: int, name: str, size: int) -> str:
    frames = recording.call_stacks.frames(stack)
    if not frames:
        return "<p>No call stack was captured.</p>"
    items = "".join(f"<li>{_source(frame.source)}{_place(frame.site)}</li>" for frame in frames)
    return (
        f'<p class="gpuviz-stack__title">{name}, {format_bytes(size)} at the peak, '
        f'innermost call first</p><ol class="gpuviz-stack">{items}</ol>'
    )


def _source(source: str) -> str:
    text = source.strip()
    return f'<code class="gpuviz-code">{escape(text)}</code>' if text else ""


def _place(site: str) -> str:
    return f'<div class="gpuviz-table__place">{escape(site)}</div>'
