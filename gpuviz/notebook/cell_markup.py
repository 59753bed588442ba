"""Text and HTML of a cell result, which need neither kernel nor script."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.data.escaping import as_unicode
from gpuviz.notebook.cell_result import CellResult
from gpuviz.notebook.facts import CodeLine, Fact, device_facts, headline, waits_fact
from gpuviz.notebook.picture import picture
from gpuviz.present.markup import Cell, html, inline_table, joined, part

if TYPE_CHECKING:
    from markupsafe import Markup

LARGEST = 100_000
_LONGEST_LINE = 160

# Repeated inline: JupyterLab removes style elements from untrusted notebooks.
_CELL = "text-align:left;vertical-align:top"


def as_text(result: CellResult) -> str:
    """Return the result of a cell as plain text."""
    lines = [f"gpuviz: {headline(result)}"]
    lines += [f"  note: {note}" for note in result.notes]
    for title, facts in _sections(result):
        lines += [f"  {title}"] if title else []
        for fact in facts:
            number = fact.number
            lines.append(f"  {number.name:<16} {number.value:>10}  {number.detail}".rstrip())
            lines += [
                f"      {_line_text(_text(line), line.source, line.site)}" for line in fact.lines
            ]
    return as_unicode("\n".join(lines))


def as_html(result: CellResult, written: Sequence[Path] = ()) -> str:
    """Return the result of a cell as HTML of at most `LARGEST` bytes."""
    start = part(
        "cell_result",
        headline(result),
        map(_cut, result.notes),
        [(title, _table(facts)) for title, facts in _sections(result)],
        map(str, written),
    )
    drawn = picture(result.recording, result.start, result.end)
    end = html("</div>")
    whole = start + drawn + end
    return whole if len(whole.encode()) <= LARGEST else start + end


def _sections(result: CellResult) -> Iterator[tuple[str, list[Fact]]]:
    waits = waits_fact(result.waits)
    last = [*result.asked, *([] if waits is None else [waits])]
    if len(result.devices) == 1:
        yield "", [*device_facts(result, result.devices[0]), *last]
        return
    for device in result.devices:
        yield device.summary.title, list(device_facts(result, device))
    if last:
        yield "All devices", last


def _table(facts: list[Fact]) -> "Markup":
    return inline_table((), map(_row, facts), (_CELL,) * 3)


def _row(fact: Fact) -> tuple[Cell | str, ...]:
    number = fact.number
    detail = html('<span class="gpuviz-result__detail">{}</span>', _cut(number.detail))
    return (
        Cell(number.name, is_heading=True),
        html("<strong>{}</strong>", number.value),
        joined([detail, *map(_line, fact.lines)]),
    )


def _line(line: CodeLine) -> "Markup":
    # An empty <code> would show as a small grey box.
    source = html(" <code>{}</code>", _cut(line.source)) if line.source else ""
    site = html(' <span class="gpuviz-result__site">{}</span>', _cut(line.site))
    return html("<div><span>{}</span>{}{}</div>", _text(line), source, site if line.site else "")


def _line_text(text: str, *parts: str) -> str:
    return "  ".join([text, *(_cut(part) for part in parts if part)])


def _text(line: CodeLine) -> str:
    return line.text if line.is_whole else _cut(line.text)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 1]}…"
