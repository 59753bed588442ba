"""Table of the lines that hold memory at the end of a recording."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpuviz.present.section import Cell, Part, Row, items, of_bytes, of_count, of_share, table, text
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from gpuviz.recording import Recording

MOST_LINES = 50
_MOST_STACKS = 3
_NO_STACK = "No call stack was captured."
_HEADINGS = ("Line", "Held", "Share", "Blocks", "Largest block")


def holders_table(
    recording: "Recording", device: int, names: Mapping[int, tuple[str, ...]]
) -> tuple[Part, ...]:
    """Return the lines that hold memory, largest first.

    Args:
        recording: The recording; its end is shown.
        device: Ordinal.
        names: Names of the program's arrays, by the stack that allocated them.
    """
    lines = _lines(recording, device)
    if not lines:
        return (text("No recorded allocation held memory."),)
    held = sum(_held(stacks) for stacks in lines)
    rows = (_row(recording, stacks, held, names) for stacks in lines[:MOST_LINES])
    shown = table("Lines that held memory", _HEADINGS, rows)
    rest = lines[MOST_LINES:]
    if not rest:
        return (shown,)
    total = format_bytes(sum(map(_held, rest)))
    more = format_counted(len(rest), "more line")
    return shown, text(f"And {more} with {total} in total.")


def frames_list(recording: "Recording", stack: int) -> Part:
    """Return a call stack as a list, innermost call first."""
    frames = _frames(recording, stack)
    return items(frames) if frames else text(_NO_STACK)


def _frames(recording: "Recording", stack: int) -> list[Cell]:
    frames = recording.call_stacks.frames(stack)
    return [Cell(code=frame.source.strip(), place=frame.site) for frame in frames]


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
    names: Mapping[int, tuple[str, ...]],
) -> Row:
    first, held = stacks[0], _held(stacks)
    more = []
    for row in stacks[:_MOST_STACKS]:
        more.append(Cell(f"{format_bytes(row['live_bytes'])} by"))
        more += _frames(recording, row["stack"]) or [Cell(_NO_STACK)]
    hidden = len(stacks) - _MOST_STACKS
    if hidden > 0:
        more.append(Cell(f"And {format_counted(hidden, 'more call stack')}."))
    place = " ".join(filter(None, (first["site"], _called(stacks, names))))
    cells = (
        Cell(code=first["source"].strip() or "(source text unknown)", place=place),
        of_bytes(held),
        of_share(held / all_bytes),
        of_count(sum(row["live_count"] for row in stacks)),
        of_bytes(max(row["largest"] for row in stacks)),
    )
    return Row(cells, more=tuple(more))


def _called(stacks: list[dict[str, Any]], names: Mapping[int, tuple[str, ...]]) -> str:
    found = [name for row in stacks for name in names.get(row["stack"], ())]
    return f"held by {', '.join(dict.fromkeys(found))}" if found else ""
