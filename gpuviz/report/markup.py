"""HTML fragments of a page; all input is escaped."""

import re
from collections.abc import Iterable, Mapping
from html import escape

# A path but for its last two parts, in `function (file:line)`.
_FOLDERS = re.compile(r"(?<=\()[^()]*[/\\](?=[^()/\\]*[/\\][^()/\\]*:\d+\)$)")


def section(title: str, body: str, *, slug: str) -> str:
    """Return a section of the page, which ``slug`` names; ``body`` is HTML."""
    return (
        f'<section class="gpuviz-section" id="gpuviz-{escape(slug)}">\n'
        f"<h3>{escape(title)}</h3>\n{body}\n</section>"
    )


def facts_list(facts: Mapping[str, str], css_class: str = "gpuviz-facts") -> str:
    """Return facts by name; those that are not known are left out."""
    rows = "\n".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items() if text
    )
    return f'<dl class="{css_class}">\n{rows}\n</dl>'


def code_and_place(source: str, place: str) -> str:
    """Return a line of the program's source, where known, and where it stands, its path cut."""
    text = source.strip()
    code = f'<code class="gpuviz-code">{escape(text)}</code> ' if text else ""
    short = escape(_FOLDERS.sub("", place))
    return f'<span>{code}<span class="gpuviz-place" title="{escape(place)}">{short}</span></span>'


def table(label: str, head: str, rows: str) -> str:
    """Return a table that scrolls by itself, from the HTML of its headings and of its rows."""
    return (
        f'<div class="gpuviz-scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="gpuviz-table">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def items(parts: Iterable[str], css_class: str) -> str:
    """Return a list of HTML parts; nothing if there are none."""
    found = "".join(f"<li>{part}</li>" for part in parts)
    return f'<ul class="{css_class}">{found}</ul>' if found else ""
