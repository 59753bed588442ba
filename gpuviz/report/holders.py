"""Table of the lines that hold memory at the end of a recording."""

from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.quantities import format_bytes, format_count, format_counted, format_share
from gpuviz.report.markup import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuviz.recording import Recording

MOST_LINES = 50
_MOST_STACKS = 3
_HEADINGS = ("Line", "Held", "Share", "Blocks", "Largest block")


def holders_table(
    recording: "Recording", device: int, names: "Mapping[int, tuple[str, ...]]"
) -> str:
    """Return the lines that hold memory, largest first, as HTML; texts are escaped.

    Args:
        recording: The recording; its end is shown.
        device: Ordinal.
        names: Names of the program's arrays, by the stack that allocated them.
    """
    lines = _lines(recording, device)
    if not lines:
        return "<p>No recorded allocation held memory.</p>"
    held = sum(_held(stacks) for stacks in lines)
    head = "".join(f'<th scope="col">{name}</th>' for name in _HEADINGS)
    rows = "\n".join(_row(recording, stacks, held, names) for stacks in lines[:MOST_LINES])
    rest = lines[MOST_LINES:]
    more = (
        f"<p>And {format_counted(len(rest), 'more line')} with "
        f"{format_bytes(sum(_held(stacks) for stacks in rest))} in total.</p>"
        if rest
        else ""
    )
    return f"{table('Lines that held memory', head, rows)}\n{more}"


def frames_list(recording: "Recording", stack: int) -> str:
    """Return a call stack as a list, innermost call first."""
    frames = recording.call_stacks.frames(stack)
    if not frames:
        return "<p>No call stack was captured.</p>"
    items = "".join(f"<li>{_code(frame.source)}{_site(frame.site)}</li>" for frame in frames)
    return f'<ol class="gpuviz-stack">{items}</ol>'


def _lines(recording: "Recording", device: int) -> list[list[dict[str, Any]]]:
    """Return the rows of `Recording.sites` that hold memory, by line, most bytes first."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in recording.sites(at="end", device=device).to_pylist():
        if row["live_bytes"]:
            lines.setdefault(row["site"], []).append(row)
    return sorted(lines.values(), key=_held, reverse=True)


def _held(stacks: list[dict[str, Any]]) -> int:
    return sum(row["live_bytes"] for row in stacks)


def _row(
    recording: "Recording",
    stacks: list[dict[str, Any]],
    all_bytes: int,
    names: "Mapping[int, tuple[str, ...]]",
) -> str:
    first, held = stacks[0], _held(stacks)
    listed = "".join(
        f'<p class="gpuviz-stack__title">{format_bytes(row["live_bytes"])} by</p>'
        f"{frames_list(recording, row['stack'])}"
        for row in stacks[:_MOST_STACKS]
    )
    hidden = len(stacks) - _MOST_STACKS
    more = f"<p>And {format_counted(hidden, 'more call stack')}.</p>" if hidden > 0 else ""
    source = _code(first["source"] or "(source text unknown)")
    count = sum(row["live_count"] for row in stacks)
    cells = (
        (format_bytes(held), f"{format_count(held)} B"),
        (format_share(held / all_bytes), ""),
        (format_count(count), ""),
        (format_bytes(max(row["largest"] for row in stacks)), ""),
    )
    return (
        f"<tr><td><details><summary>{source}{_site(first['site'])}{_called(stacks, names)}"
        f"</summary>{listed}{more}"
        "</details></td>"
        + "".join(f'<td title="{title}">{text}</td>' for text, title in cells)
        + "</tr>"
    )


def _called(stacks: list[dict[str, Any]], names: "Mapping[int, tuple[str, ...]]") -> str:
    found = [name for row in stacks for name in names.get(row["stack"], ())]
    return _site(f"held by {', '.join(dict.fromkeys(found))}") if found else ""


def _code(source: str) -> str:
    text = source.strip()
    return f'<code class="gpuviz-code">{escape(text)}</code>' if text else ""


def _site(site: str) -> str:
    return f'<div class="gpuviz-table__call-site">{escape(site)}</div>'
