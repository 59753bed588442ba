"""Text and HTML of a cell result, which need neither kernel nor script."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from gpuviz.data.escaping import as_unicode
from gpuviz.notebook.facts import Fact, device_facts, headline, waits_fact
from gpuviz.notebook.picture import picture

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuviz.notebook.cell_result import CellResult
    from gpuviz.notebook.facts import CodeLine

LARGEST = 100_000
_LONGEST_LINE = 160

# JupyterLab's colours where available, else colours readable on light and dark. The doubled class
# outweighs JupyterLab's own table style.
_STYLE = """<style>
.gpuviz-result{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;
line-height:1.45;color:var(--jp-ui-font-color1,inherit);max-width:760px;
border-left:3px solid var(--jp-border-color2,#8a8f98);padding:2px 0 2px 10px;margin:4px 0}
.gpuviz-result.gpuviz-result table{border-collapse:collapse;margin:4px 0;background:none;
color:inherit;font-size:inherit;width:auto;table-layout:auto}
.gpuviz-result.gpuviz-result tbody tr{background:none}
.gpuviz-result.gpuviz-result tbody :is(th,td){padding:1px 14px 1px 0;border:none;background:none;
color:inherit;font-size:inherit;max-width:none;white-space:normal;line-height:1.45}
.gpuviz-result.gpuviz-result tbody th{font-weight:400;white-space:nowrap}
.gpuviz-result strong{font-variant-numeric:tabular-nums;white-space:nowrap}
.gpuviz-result code{font-family:var(--jp-code-font-family,monospace);font-size:12px}
.gpuviz-result__detail,.gpuviz-result__site{color:var(--jp-ui-font-color2,inherit)}
.gpuviz-result__note{border-left:3px solid var(--jp-warn-color1,#b8860b);padding-left:6px}
:is([data-jp-theme-light="false"],.vscode-dark) .gpuviz-picture{
filter:invert(.93) hue-rotate(180deg)}
</style>"""
# Repeated inline: JupyterLab removes style elements from untrusted notebooks.
_CELL = 'style="text-align:left;vertical-align:top"'


def as_text(result: "CellResult") -> str:
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


def as_html(result: "CellResult", written: "Sequence[Path]" = ()) -> str:
    """Return the result of a cell as HTML of at most `LARGEST` bytes; all texts are escaped."""
    notes = "".join(
        f'<div class="gpuviz-result__note">{escape(_cut(note))}</div>' for note in result.notes
    )
    tables = "".join(
        (f"<div>{escape(title)}</div>" if title else "") + _table(facts)
        for title, facts in _sections(result)
    )
    files = "".join(f"<div>Wrote <code>{escape(str(path))}</code></div>" for path in written)
    start = as_unicode(
        f'{_STYLE}<div class="gpuviz-result"><div><b>gpuviz</b> {escape(headline(result))}</div>'
        f"{notes}{tables}{files}"
    )
    drawn = as_unicode(picture(result.recording, result.start, result.end))
    whole = f"{start}{drawn}</div>"
    return whole if len(whole.encode()) <= LARGEST else f"{start}</div>"


def _sections(result: "CellResult") -> Iterator[tuple[str, list[Fact]]]:
    waits = waits_fact(result.waits)
    last = [*result.asked, *([] if waits is None else [waits])]
    if len(result.devices) == 1:
        yield "", [*device_facts(result, result.devices[0]), *last]
        return
    for device in result.devices:
        yield device.summary.title, list(device_facts(result, device))
    if last:
        yield "All devices", last


def _table(facts: list[Fact]) -> str:
    return f"<table>{''.join(map(_row, facts))}</table>"


def _row(fact: Fact) -> str:
    number = fact.number
    lines = "".join(map(_line, fact.lines))
    return (
        f'<tr><th scope="row" {_CELL}>{escape(number.name)}</th>'
        f"<td {_CELL}><strong>{escape(number.value)}</strong></td>"
        f'<td {_CELL}><span class="gpuviz-result__detail">{escape(_cut(number.detail))}</span>'
        f"{lines}</td></tr>"
    )


def _line(line: "CodeLine") -> str:
    # An empty <code> would show as a small grey box.
    source = f" <code>{escape(_cut(line.source))}</code>" if line.source else ""
    site = f' <span class="gpuviz-result__site">{escape(_cut(line.site))}</span>'
    return f"<div><span>{escape(_text(line))}</span>{source}{site if line.site else ''}</div>"


def _line_text(text: str, *parts: str) -> str:
    return "  ".join([text, *(_cut(part) for part in parts if part)])


def _text(line: "CodeLine") -> str:
    return line.text if line.is_whole else _cut(line.text)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 1]}…"
