"""Sections of a page as the table from which a browser draws them."""

from collections.abc import Iterable, Iterator
from math import nan
from typing import Any

import pyarrow as pa

from gpuviz.data.conclusions import schemas
from gpuviz.data.escaping import as_unicode
from gpuviz.present.section import Cell, Part, Row, Section

# What belongs to the whole recording.
ANY_DEVICE = -1
_NOWHERE = (-1, -1)


def section_table(by_device: Iterable[tuple[int, Iterable[Section]]]) -> pa.Table:
    """Return the sections about each device, in their order, as the table ``sections``."""
    rows = [
        {"device": device, "section": section.name, "title": section.tab} | line
        for device, sections in by_device
        for section in sections
        for part in section.parts
        for line in _lines(part)
    ]
    return pa.Table.from_pylist(rows, schemas()["sections"])


def _lines(part: Part) -> Iterator[dict[str, Any]]:
    """Yield the headings of a table, or where a list is; then each row, and what is below it."""
    if part.kind == "table":
        headings = [as_unicode(each) for each in part.headings]
        yield _line("table", ()) | {"label": as_unicode(part.label), "texts": headings}
    elif not part.rows:
        yield _line(part.kind, ())
    for row in part.rows:
        yield _line("row" if part.kind == "table" else part.kind, row.cells, row)
        if row.more:
            yield _line("more", row.more)


def _line(kind: str, cells: tuple[Cell, ...], row: Row | None = None) -> dict[str, Any]:
    begin, end = (row and row.window) or _NOWHERE
    bar = row and row.bar
    return {
        "kind": kind,
        "label": "",
        "texts": [as_unicode(cell.text) for cell in cells],
        "values": [nan if cell.value is None else float(cell.value) for cell in cells],
        "codes": [as_unicode(cell.code) for cell in cells],
        "places": [as_unicode(cell.place) for cell in cells],
        "hovers": [as_unicode(cell.hover) for cell in cells],
        "begin": begin,
        "end": end,
        "tab": row.tab if row else "",
        "bar_before": bar.before if bar else 0.0,
        "bar_added": bar.added if bar else 0.0,
        "responsible": bar.responsible if bar else "",
    }
