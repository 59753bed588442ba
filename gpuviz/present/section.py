"""Sections of a page as values, which a template renders as HTML and a browser draws.

`gpuviz.present.section_table` has them as an Arrow table, `gpuviz.present.markup.section_html` as
HTML. A text in them is literal, but what is between backquotes is code.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpuviz.conclusions.headline_number import Number
from gpuviz.conclusions.item import Item
from gpuviz.data.call_stacks import short_site
from gpuviz.quantities import format_bytes, format_count, format_duration, format_share

Kind = Literal[
    "device",
    "figures",
    "first",
    "text",
    "hint",
    "heading",
    "table",
    "facts",
    "numbers",
    "findings",
    "hazards",
    "items",
]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table, or a sentence.

    Attributes:
        text: Its text.
        value: The number in it, by which a table is sorted; None if it has none.
        code: A line of the program, after the text.
        place: Where that is, or another remark.
        hover: Shown while the pointer is over it.
    """

    text: str = ""
    value: float | None = None
    code: str = ""
    place: str = ""
    hover: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar at the end of a row: a pale part and a coloured one, as shares of the longest.

    Attributes:
        before: The pale part.
        added: The coloured part.
        responsible: Who is responsible for it, which decides the colour.
    """

    before: float
    added: float
    responsible: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, or a sentence.

    Attributes:
        cells: Its cells.
        window: The time that it leads to, in ns; None if none.
        tab: The section that it leads to.
        bar: Drawn after them.
        more: Lines below the first cell; those of a table are folded.
    """

    cells: tuple[Cell, ...]
    window: tuple[int, int] | None = None
    tab: str = ""
    bar: Bar | None = None
    more: tuple[Cell, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A paragraph, a table or a list.

    Attributes:
        kind: What it is.
        rows: Its rows; a paragraph has one with one cell.
        label: What a table is about.
        headings: Of the columns of a table.
        items: Of a list of conclusions.
    """

    kind: Kind
    rows: tuple[Row, ...] = ()
    label: str = ""
    headings: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page, which is a tab of a workbench.

    Attributes:
        name: Its name in links; empty for what is above the charts.
        title: Its title.
        parts: Its contents, in order.
        count: Shown beside the title in a tab; omitted if 0.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    count: int = 0

    @property
    def tab(self) -> str:
        """The title of its tab."""
        return f"{self.title} {format_count(self.count)}" if self.count else self.title


def text(sentence: str, window: tuple[int, int] | None = None) -> Part:
    """Return a paragraph, which leads to a time if there is one."""
    return Part("text", (Row((Cell(sentence),), window),))


def hint(sentence: str) -> Part:
    """Return a paragraph that explains what is shown; it is not printed."""
    return Part("hint", (Row((Cell(sentence),)),))


def heading(title: str, kind: Literal["heading", "device"] = "heading") -> Part:
    """Return a heading within a section, or that of all about a device."""
    return Part(kind, (Row((Cell(title),)),))


def table(label: str, headings: Iterable[str], rows: Iterable[Row | Iterable[str | Cell]]) -> Part:
    """Return a table of rows, or of their cells."""
    body = tuple(map(_row, rows))
    bars = ["Bar"] if any(row.bar is not None for row in body) else []
    return Part("table", body, label, (*headings, *bars))


def facts(found: Mapping[str, str | Cell]) -> Part:
    """Return facts by name, without those that are empty."""
    return Part("facts", tuple(_row((name, fact)) for name, fact in found.items() if fact))


def numbers(found: Iterable[Number], kind: Literal["numbers", "figures"] = "numbers") -> Part:
    """Return numbers with their names and details; figures lead to what they are about."""
    return Part(kind, tuple(map(_number, found)))


def items(lines: Iterable[Cell | Row]) -> Part:
    """Return a list of lines, each with what is below it."""
    return Part("items", tuple(each if isinstance(each, Row) else Row((each,)) for each in lines))


def _row(row: Row | Iterable[str | Cell]) -> Row:
    if isinstance(row, Row):
        return row
    return Row(tuple(Cell(each) if isinstance(each, str) else each for each in row))


def _number(number: Number) -> Row:
    cells = (Cell(number.name, hover=number.definition), Cell(number.value), Cell(number.detail))
    return Row(cells, number.window, number.tab)


def of_bytes(size: int | None) -> Cell:
    """Return a cell with bytes, which shows them exactly to the pointer."""
    return _of(size, format_bytes, "" if size is None else f"{format_count(size)} B")


def of_time(duration_ns: int | None) -> Cell:
    """Return a cell with a duration."""
    return _of(duration_ns, format_duration)


def of_count(count: int | None) -> Cell:
    """Return a cell with a count."""
    return _of(count, format_count)


def of_share(share: float | None) -> Cell:
    """Return a cell with a share."""
    return _of(share, format_share)


def _of(value: float | None, form: Callable[[Any], str], hover: str = "") -> Cell:
    return Cell() if value is None else Cell(form(value), value, hover=hover)


def of_line(source: str, site: str) -> Cell:
    """Return a cell with a line of the program, if known, and its call site."""
    return Cell(code=source.strip(), place=short_site(site), hover=site)
