"""HTML fragments of a page; all input is escaped."""

import re
from collections.abc import Iterable, Mapping
from html import escape

# All but the last two parts of a path, in `function (file:line)`.
_FOLDERS = re.compile(r"(?<=\()[^()]*[/\\](?=[^()/\\]*[/\\][^()/\\]*:\d+\)$)")
_CODE = re.compile("`([^`]+)`")
# The heading of a column of bars, for screen readers; a table's headings are HTML.
BAR_HEADING = '<span class="gpuviz-unseen">As a bar</span>'
# Of the drawing of a bar, which is stretched to the width of its column.
_WIDTH, _HEIGHT = 1000, 10


def panel(title: str, body: str, *, slug: str, count: int = 0) -> str:
    """Return a section that the page shows as a tab of its drawer.

    Args:
        title: The tab's title.
        body: HTML.
        slug: The tab's name in links and scripts.
        count: Shown beside the title; omitted if 0.
    """
    numbered = f"{title} {count}" if count else title
    return (
        f'<section class="gpuviz-section" data-panel="{escape(slug)}" '
        f'data-title="{escape(numbered)}">\n<h3>{escape(title)}</h3>\n{body}\n</section>'
    )


def facts_list(facts: Mapping[str, str], css_class: str = "gpuviz-facts") -> str:
    """Return a list of facts by name, without empty ones."""
    rows = "\n".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items() if text
    )
    return f'<dl class="{css_class}">\n{rows}\n</dl>'


def code_and_site(source: str, site: str) -> str:
    """Return a source line, if known, and its call site with a shortened path."""
    text = source.strip()
    code = f'<code class="gpuviz-code">{escape(text)}</code> ' if text else ""
    short = escape(_FOLDERS.sub("", site))
    return f'<span>{code}<span class="gpuviz-place" title="{escape(site)}">{short}</span></span>'


def with_code(text: str) -> str:
    """Return text as HTML, with what is between backquotes as code."""
    return _CODE.sub(r'<code class="gpuviz-code">\1</code>', escape(text))


def table(label: str, head: str, rows: str) -> str:
    """Return a scrollable table from the HTML of its headings and rows."""
    return (
        f'<div class="gpuviz-scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="gpuviz-table">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def sortable_table(label: str, titles: Iterable[str], rows: str) -> str:
    """Return a table that sorts by any column; cells have what they sort by in ``data-sort``."""
    head = "".join(
        f'<th scope="col"><button type="button">{escape(title)}</button></th>' for title in titles
    )
    return table(label, head, rows).replace("<table ", "<table data-sortable ", 1)


def items(parts: Iterable[str], css_class: str) -> str:
    """Return an HTML list; empty without parts."""
    found = "".join(f"<li>{part}</li>" for part in parts)
    return f'<ul class="{css_class}">{found}</ul>' if found else ""


def bar(before: int, added: int, largest: int, responsible: str) -> str:
    """Return a bar of a table as HTML: a pale part and a coloured one.

    Args:
        before: Bytes of the pale part.
        added: Bytes of the coloured part.
        largest: Bytes of the longest bar.
        responsible: Who is responsible for what was added, which decides the colour.
    """
    begin, length = (size / largest * _WIDTH for size in (before, added))
    return (
        f'<svg class="gpuviz-bar" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="gpuviz-bar__before" width="{begin:.1f}" height="{_HEIGHT}"/>'
        f'<rect class="gpuviz-bar__{responsible}" x="{begin:.1f}" '
        f'width="{length:.1f}" height="{_HEIGHT}"/></svg>'
    )


def cell_bar(value: int, largest: int) -> str:
    """Return a bar that lies behind the text of a table's cell, as HTML."""
    width = value / largest * _WIDTH
    return (
        f'<svg class="gpuviz-bar gpuviz-bar--cell" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:.1f}" height="{_HEIGHT}"/></svg>'
    )
