"""The HTML page of two recordings: both in one workbench, and what differs."""

import base64
import os
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from gpuviz.advice.finding import Finding
from gpuviz.comparison.alignment import CodeLine
from gpuviz.comparison.anchors import anchors
from gpuviz.comparison.diff import Differences
from gpuviz.comparison.limits import amount
from gpuviz.comparison.text import NO_DIFFERENCE, quantity_name, relative, signed
from gpuviz.data.recording_data import RecordingData
from gpuviz.formats.output_path import check_free, check_report_name
from gpuviz.formats.whole_file import write_whole
from gpuviz.present.markup import html, page, parts_html, section_html, trusted
from gpuviz.present.section import (
    Bar,
    Cell,
    Part,
    Section,
    heading,
    items,
    of_bytes,
    of_line,
    table,
    text,
)
from gpuviz.present.section import Row as Line
from gpuviz.present.section_table import ANY_DEVICE, section_table
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration
from gpuviz.recording import Recording
from gpuviz.report.facts import name
from gpuviz.report.page import Archive, policy, static
from gpuviz.report.reduction import Shown, reduce

_MOST_ROWS = 200
# Of each of the two recordings: the page has 20 MB at most.
_MOST_BYTES = 9_500_000
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
    found: Differences, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write the page of a comparison, completely or not at all; return its path.

    Raises:
        RecordingError: ``path`` has the suffix of a recording.
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The page cannot be written.
    """
    path = Path(path)
    check_report_name(path)
    check_free(path, overwrite=overwrite)
    text = build_page(found).encode()

    def copy(file: BinaryIO) -> None:
        file.write(text)

    return write_whole(path, copy, overwrite=overwrite)


def build_page(found: Differences) -> str:
    """Return the page's text."""
    style, script = static("report.css"), static("compared.js")
    aligned = anchors(found.before, found.after)
    kernels = found.kernels.select(["name", "status"]).to_pylist()
    (before, left_before), (after, left_after) = map(_embedded, (found.before, found.after))
    left_out = [f"Before: {each}" for each in left_before]
    left_out += [f"After: {each}" for each in left_after]
    changes = Section("changes", "Changes", tuple(_parts(found)))
    written, _ = page(
        "diff.html",
        policy=policy(style, script),
        title=_title(found),
        style=style,
        overview=" · ".join([headline(found), _ALIGNED[aligned.by]]),
        notes=[*found.notes, *left_out],
        devices=found.devices,
        changes=section_html(changes, ANY_DEVICE),
        sections=_base64(section_table([(ANY_DEVICE, [changes])])),
        corresponding={
            "anchors": aligned.times,
            "lines": [(_place(pair.before), _place(pair.after)) for pair in found.lines],
            "kernels": {row["name"]: row["status"] for row in kernels},
        },
        before=before,
        after=after,
        script=script,
    )
    return written


def _place(line: CodeLine | None) -> tuple[str, str, int] | None:
    return None if line is None else (line.function, line.filename, line.line)


def _embedded(recording: RecordingData) -> tuple[str, list[str]]:
    """Return as much of a recording as fits into the page, as base64, and what was left out."""
    with closing(reduce(Shown(Recording.of(recording)), Archive, _MOST_BYTES)) as archive:
        text = trusted(b"".join(archive.pieces()).decode())
        known = recording.manifest.notes
        return text, [each for each in archive.shown.recording.manifest.notes if each not in known]


def _base64(table: pa.Table) -> str:
    """Return a table as an Arrow stream in base64."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return base64.b64encode(stream.getvalue()).decode()


def diff_html(found: Differences) -> str:
    """Return the differences as HTML for a notebook."""
    parts = [items(map(Cell, found.notes))] if found.notes else []
    shown = parts_html([*parts, *_parts(found)], "h3")
    return html("<div><b>{}</b></div>\n{}", headline(found), shown)


def headline(found: Differences) -> str:
    """Return what changed most, in one line: ``Peak 1.00 GiB to 2.00 GiB (+100 %)``."""
    rows = [row for row in found.totals.to_pylist() if row["name"] in _HEADLINE]
    several = len({row["device"] for row in rows} - {None}) > 1
    parts = [_change(_short(row, several=several), row) for row in rows]
    text = " · ".join(parts)
    return text[:1].upper() + text[1:] or NO_DIFFERENCE


def _parts(found: Differences) -> list[Part]:
    """Return the findings and tables of a comparison."""
    parts = _findings(found)
    for device in _devices(found):
        parts += _waterfall(found, device)
    for title, columns, rows in (
        ("Totals", _TOTALS, found.totals),
        ("Kernels", _KERNELS, found.kernels),
        ("Modules", _MODULES, found.modules),
        ("Copies", _COPIES, found.copies),
        ("Host waits", _WAITS, found.waits),
        ("Idle time of the GPU by cause", _IDLE, found.idle),
        ("Settings and versions", _SETTINGS, found.settings),
    ):
        parts += _section(title, columns, rows.to_pylist())
    return parts


def _title(found: Differences) -> str:
    recordings = (Recording.of(each) for each in (found.before, found.after))
    names = dict.fromkeys(map(name, recordings))
    return f"What changed in {' and '.join(names)}" if len(names) == 1 else " and ".join(names)


def _short(row: Row, *, several: bool) -> str:
    of = f" of device {row['device']}" if several and row["device"] is not None else ""
    return f"{_SHORT[row['name']]}{of}"


def _change(of: str, row: Row) -> str:
    before, after = (amount(row[side], row["unit"]) for side in ("before", "after"))
    share = relative(row["before"], row["change"])
    return f"{of} {before} to {after}" + (f" ({share})" if share else "")


def _devices(found: Differences) -> list[int]:
    return sorted(set(found.waterfall["device"].to_pylist()))


def _findings(found: Differences) -> list[Part]:
    """Return what costs more than before, each with its largest causes."""
    if not found.findings:
        return []
    return [heading("Costs more than before"), items(map(_finding, found.findings))]


def _finding(each: Finding) -> Line:
    causes = (
        Cell(f"{line.amount}:", code=line.source.strip(), place=line.site) for line in each.lines
    )
    title = Cell(each.title, place=f"{each.certainty} \N{MIDDLE DOT} {each.rule}")
    return Line((title,), more=(Cell(each.reason), *causes))


def _waterfall(found: Differences, device: int) -> list[Part]:
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
    body = [_peak("Peak before", before, largest)]
    for row, level in zip(shown, levels, strict=False):
        change = row["change"]
        start = min(level, level + change)
        responsible = "allocator" if change > 0 else "program"
        line, was = _where(row)
        cells = line, Cell(row["status"]), Cell(signed(change, "B")), of_bytes(level + change)
        bar = Bar(start / largest, abs(change) / largest, responsible)
        body.append(Line(cells, bar=bar, more=was))
    if rest:
        change = sum(row["change"] for row in rest)
        label = format_counted(len(rest), "more line")
        body.append(Line((Cell(label), Cell(), Cell(signed(change, "B")), of_bytes(after))))
    body.append(_peak("Peak after", after, largest))
    of = f" of device {device}" if len(_devices(found)) > 1 else ""
    title = f"Peak of memory{of}, from before to after"
    return [heading(title), table(title, ("Line", "Status", "Change", "Bytes"), body)]


def _peak(label: str, size: int, largest: int) -> Line:
    bar = Bar(size / largest, 0, "program")
    return Line((Cell(label), Cell(), Cell(), of_bytes(size)), bar=bar)


def _where(row: Row) -> tuple[Cell, tuple[Cell, ...]]:
    """Return a line, and what it was before if it was edited."""
    line = of_line(row["source"] or row["before_source"], row["site"] or row["before_site"])
    if row["status"] != "edited":
        return line, ()
    was = Cell("was", code=row["before_source"].strip(), place=row["before_site"])
    return line, (was,)


def _section(title: str, columns: "_Columns", rows: list[Row]) -> list[Part]:
    if not rows:
        return []
    cells = ([cell(row) for cell in columns.values()] for row in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    rest = [text(format_counted(more, "more row"))] if more > 0 else []
    return [heading(title), table(title, list(columns), cells), *rest]


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
        "Relative change": lambda row: relative(row["before"], row["change"]),
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
