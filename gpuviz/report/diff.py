"""The HTML page of the differences of two recordings."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuviz.comparison.anchors import anchors
from gpuviz.comparison.limits import amount
from gpuviz.comparison.text import NO_DIFFERENCE, quantity_name, relative, signed
from gpuviz.formats.output_path import check_free
from gpuviz.formats.whole_file import write_whole
from gpuviz.present.markup import (
    BAR_HEADING,
    Cell,
    bar,
    code_and_site,
    html,
    items,
    joined,
    page,
    part,
    table,
    with_code,
)
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration
from gpuviz.recording import Recording
from gpuviz.report.facts import name
from gpuviz.report.page import linked_page, policy, static

if TYPE_CHECKING:
    from gpuviz.advice.finding import Finding
    from gpuviz.comparison.diff import Differences

_MOST_ROWS = 200
# Of each of the two recordings: the page has 20 MB at most.
_MOST_FRAME_BYTES = 9_500_000
_ALIGNED = {
    "ranges": "aligned by ranges of the same name",
    "cells": "aligned by the order of the notebook's cells",
    "iterations": "aligned by the numbers of iterations",
    "beginning": "aligned by their beginnings: they have no ranges, cells or iterations in common",
}
_HEADLINE = ("peak", "reserved", "time", "kernel_time")
_SHORT = {
    "peak": "peak",
    "reserved": "reserved",
    "time": "length",
    "kernel_time": "kernels on the GPU",
}

Row = dict[str, Any]


def write_diff(
    found: "Differences", path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write the page of a comparison, completely or not at all; return its path.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The page cannot be written.
    """
    path = Path(path)
    check_free(path, overwrite=overwrite)
    text = build_page(found).encode()

    def copy(file: BinaryIO) -> None:
        file.write(text)

    return write_whole(path, copy, overwrite=overwrite)


def build_page(found: "Differences") -> str:
    """Return the page's text."""
    style, script = static("report.css"), static("diff.js")
    text, _ = page(
        "diff.html",
        # Frames have the policy of the page around them besides their own.
        policy=policy(style, script, static("report.js")),
        title=_title(found),
        style=style,
        headline=headline(found),
        body=diff_body(found),
        timelines=_timelines(found),
        script=script,
    )
    return text


def _timelines(found: "Differences") -> str:
    """Return both recordings as reports that show the same part of the program."""
    aligned = anchors(found.before, found.after)
    frames = [
        (side, name(recording), linked_page(recording, _MOST_FRAME_BYTES))
        for side, recording in _recordings(found)
    ]
    return part("timelines", _ALIGNED[aligned.by], aligned.times, frames)


def _recordings(found: "Differences") -> "tuple[tuple[str, Recording], ...]":
    return ("Before", Recording.of(found.before)), ("After", Recording.of(found.after))


def diff_html(found: "Differences") -> str:
    """Return the differences as HTML for a notebook."""
    return html("<div><b>{}</b></div>\n{}", headline(found), diff_body(found))


def headline(found: "Differences") -> str:
    """Return what changed most, in one line: ``Peak 1.00 GiB to 2.00 GiB (+100 %)``."""
    rows = [row for row in found.totals.to_pylist() if row["name"] in _HEADLINE]
    several = len({row["device"] for row in rows} - {None}) > 1
    parts = [_change(_short(row, several=several), row) for row in rows]
    text = " · ".join(parts)
    return text[:1].upper() + text[1:] or NO_DIFFERENCE


def diff_body(found: "Differences") -> str:
    """Return the notes and tables of a comparison as HTML."""
    notes = items(found.notes, "gpuviz-notes")
    parts = [html('<div class="gpuviz-warning" role="note">{}</div>', notes) if notes else ""]
    parts.append(_findings(found))
    parts += [_waterfall(found, device) for device in _devices(found)]
    parts += [
        _section(heading, columns, rows.to_pylist())
        for heading, columns, rows in (
            ("Totals", _TOTALS, found.totals),
            ("Kernels", _KERNELS, found.kernels),
            ("Modules", _MODULES, found.modules),
            ("Copies", _COPIES, found.copies),
            ("Host waits", _WAITS, found.waits),
            ("Idle time of the GPU by cause", _IDLE, found.idle),
            ("Settings and versions", _SETTINGS, found.settings),
        )
    ]
    return joined(filter(None, parts), "\n")


def _title(found: "Differences") -> str:
    names = dict.fromkeys(name(each) for _, each in _recordings(found))
    return f"What changed in {' and '.join(names)}" if len(names) == 1 else " and ".join(names)


def _short(row: Row, *, several: bool) -> str:
    of = f" of device {row['device']}" if several and row["device"] is not None else ""
    return f"{_SHORT[row['name']]}{of}"


def _change(of: str, row: Row) -> str:
    before, after = (amount(row[side], row["unit"]) for side in ("before", "after"))
    share = relative(row["before"], row["change"])
    return f"{of} {before} to {after}" + (f" ({share})" if share else "")


def _devices(found: "Differences") -> list[int]:
    return sorted(set(found.waterfall["device"].to_pylist()))


def _findings(found: "Differences") -> str:
    """Return what costs more than before, each with its largest causes."""
    shown = items(map(_finding, found.findings), "gpuviz-differences")
    return html("<h3>Costs more than before</h3>\n{}", shown) if shown else ""


def _finding(each: "Finding") -> str:
    causes = items(
        (html("{}: {}", line.amount, code_and_site(line.source, line.site)) for line in each.lines),
        "gpuviz-differences__causes",
    )
    return html(
        "<b>{}</b> <small>{} · {}</small><br>{}{}",
        with_code(each.title),
        each.certainty,
        each.rule,
        with_code(each.reason),
        causes,
    )


def _waterfall(found: "Differences", device: int) -> str:
    """Return the steps from one peak to the other as a table, a bar for each line."""
    peaks = [
        row
        for row in found.quantities.to_pylist()
        if row["name"] == "peak" and row["device"] == device
    ]
    before, after = peaks[0]["before"], peaks[0]["after"]
    rows = [row for row in found.waterfall.to_pylist() if row["device"] == device]
    shown, rest = rows[:_MOST_ROWS], rows[_MOST_ROWS:]
    levels = [before]
    for row in rows:
        levels.append(levels[-1] + row["change"])
    largest = max(*levels, after, 1)
    body = [_step(html("<b>Peak before</b>"), "", "", before, bar(before, 0, largest, "program"))]
    for row, level in zip(shown, levels, strict=False):
        grown = row["change"] > 0
        drawn = bar(
            min(level, level + row["change"]),
            abs(row["change"]),
            largest,
            "allocator" if grown else "program",
        )
        cells = _where(row), row["status"], signed(row["change"], "B"), level + row["change"]
        body.append(_step(*cells, drawn))
    if rest:
        change = sum(row["change"] for row in rest)
        label = format_counted(len(rest), "more line")
        body.append(_step(label, "", signed(change, "B"), after, ""))
    body.append(_step(html("<b>Peak after</b>"), "", "", after, bar(after, 0, largest, "program")))
    of = f" of device {device}" if len(_devices(found)) > 1 else ""
    names = ("Line", "Status", "Change", "Bytes", BAR_HEADING)
    heading = f"Peak of memory{of}, from before to after"
    return html("<h3>{}</h3>\n{}", heading, table(heading, names, body))


def _step(label: str, status: str, change: str, size: int, drawn: str) -> "tuple[str | Cell, ...]":
    return label, status, change, Cell(format_bytes(size), f"{format_count(size)} B"), drawn


def _where(row: Row) -> str:
    text = code_and_site(row["source"] or row["before_source"], row["site"] or row["before_site"])
    if row["status"] != "edited":
        return text
    return html("{}<br>was {}", text, code_and_site(row["before_source"], row["before_site"]))


def _section(heading: str, columns: "_Columns", rows: list[Row]) -> str:
    if not rows:
        return ""
    cells = ([cell(row) for cell in columns.values()] for row in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    rest = html("<p>{}</p>", format_counted(more, "more row")) if more > 0 else ""
    return html("<h3>{}</h3>\n{}{}", heading, table(heading, list(columns), cells), rest)


_Columns = dict[str, Callable[[Row], str]]


def _texts(columns: Iterable[str]) -> _Columns:
    return {each.replace("_", " ").capitalize(): _text(each) for each in columns}


def _text(column: str) -> Callable[[Row], str]:
    return lambda row: row[column] or ""


def _both(column: str, show: Callable[[int], str]) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        before, after = row[f"before_{column}"], row[f"after_{column}"]
        texts = ["none" if each is None else show(each) for each in (before, after)]
        return " → ".join(texts) if texts[0] != texts[1] else texts[0]

    return cell


def _interval(row: Row) -> str:
    sides = []
    for side in ("before", "after"):
        low, high = row[f"{side}_low_ns"], row[f"{side}_high_ns"]
        known = low is not None and high is not None
        sides.append(f"{format_duration(low)} to {format_duration(high)}" if known else "unknown")
    return " → ".join(sides)


def _sides(unit: Callable[[Row], str]) -> _Columns:
    return {
        "Before": lambda row: amount(row["before"], unit(row)),
        "After": lambda row: amount(row["after"], unit(row)),
        "Change": lambda row: signed(row["change"], unit(row)),
        "Share": lambda row: relative(row["before"], row["change"]),
    }


_TOTALS: _Columns = {
    "Quantity": lambda row: quantity_name(row, several=row["device"] not in {None, 0}),
    **_sides(lambda row: row["unit"]),
}
_KERNELS: _Columns = _texts(("name", "status")) | {
    "Launches": _both("count", format_count),
    "Total": _both("ns", format_duration),
    "Median": _both("median_ns", format_duration),
    "99 % interval of the median": _interval,
}
_MODULES: _Columns = {
    "Module": lambda row: row["module"] or "none, or unknown",
    "At the peak": _both("peak_bytes", format_bytes),
    "Activations": _both("activation_bytes", format_bytes),
    "Forward": _both("forward_ns", format_duration),
    "Backward": _both("backward_ns", format_duration),
    "Launches": _both("launches", format_count),
}
_COPIES: _Columns = _texts(("copy_kind", "host_memory")) | {
    "Copies": _both("count", format_count),
    "Bytes": _both("bytes", format_bytes),
    "Total": _both("total_ns", format_duration),
}
_WAITS: _Columns = _texts(("kind", "name")) | {
    "Waits": _both("count", format_count),
    "Total": _both("total_ns", format_duration),
}
_IDLE: _Columns = _texts(("cause",)) | _sides(lambda _: "ns")
_SETTINGS: _Columns = _texts(("name", "before", "after"))
