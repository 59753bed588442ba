"""Table of the lines that hold memory at the end of a recording."""

from typing import TYPE_CHECKING, Any

from gpuviz.present.markup import Cell, html, joined, table
from gpuviz.quantities import format_bytes, format_count, format_counted, format_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuviz.recording import Recording

MOST_LINES = 50
_MOST_STACKS = 3
_HEADINGS = ("Line", "Held", "Share", "Blocks", "Largest block")


def holders_table(
    recording: "Recording", device: int, names: "Mapping[int, tuple[str, ...]]"
) -> str:
    """Return the lines that hold memory, largest first, as HTML.

    Args:
        recording: The recording; its end is shown.
        device: Ordinal.
        names: Names of the program's arrays, by the stack that allocated them.
    """
    lines = _lines(recording, device)
    if not lines:
        return html("<p>No recorded allocation held memory.</p>")
    held = sum(_held(stacks) for stacks in lines)
    rows = (_row(recording, stacks, held, names) for stacks in lines[:MOST_LINES])
    shown = table("Lines that held memory", _HEADINGS, rows)
    rest = lines[MOST_LINES:]
    if not rest:
        return shown
    total = format_bytes(sum(map(_held, rest)))
    more = format_counted(len(rest), "more line")
    return shown + html("<p>And {} with {} in total.</p>", more, total)


def frames_list(recording: "Recording", stack: int) -> str:
    """Return a call stack as a list, innermost call first."""
    frames = recording.call_stacks.frames(stack)
    if not frames:
        return html("<p>No call stack was captured.</p>")
    listed = joined(
        html("<li>{}{}</li>", _code(frame.source), _site(frame.site)) for frame in frames
    )
    return html('<ol class="gpuviz-stack">{}</ol>', listed)


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
) -> "tuple[str | Cell, ...]":
    first, held = stacks[0], _held(stacks)
    listed = joined(
        html('<p class="gpuviz-stack__title">{} by</p>', format_bytes(row["live_bytes"]))
        + frames_list(recording, row["stack"])
        for row in stacks[:_MOST_STACKS]
    )
    hidden = len(stacks) - _MOST_STACKS
    if hidden > 0:
        listed += html("<p>And {}.</p>", format_counted(hidden, "more call stack"))
    line = html(
        "<details><summary>{}{}{}</summary>{}</details>",
        _code(first["source"] or "(source text unknown)"),
        _site(first["site"]),
        _called(stacks, names),
        listed,
    )
    return (
        line,
        Cell(format_bytes(held), f"{format_count(held)} B"),
        format_share(held / all_bytes),
        format_count(sum(row["live_count"] for row in stacks)),
        format_bytes(max(row["largest"] for row in stacks)),
    )


def _called(stacks: list[dict[str, Any]], names: "Mapping[int, tuple[str, ...]]") -> str:
    found = [name for row in stacks for name in names.get(row["stack"], ())]
    return _site(f"held by {', '.join(dict.fromkeys(found))}") if found else ""


def _code(source: str) -> str:
    text = source.strip()
    return html('<code class="gpuviz-code">{}</code>', text) if text else ""


def _site(site: str) -> str:
    return html('<div class="gpuviz-table__call-site">{}</div>', site)
