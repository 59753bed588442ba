"""HTML from templates, which escape every text; the only module that writes a table."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from gpuviz.conclusions.item import AT_ONCE, FIRST
from gpuviz.data.escaping import as_unicode
from gpuviz.present.section import Part, Section, of_line
from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from jinja2 import Environment

_CODE = re.compile("`([^`]+)`")
# Inline, because JupyterLab removes style elements from untrusted notebooks.
NUMBER = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
TEXT = "text-align:left"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: Text, or HTML that is marked as such.
        title: Shown while the pointer is over it.
        css_class: Its class.
        is_heading: Whether it is the heading of its row.
    """

    text: str
    title: str = ""
    css_class: str = ""
    is_heading: bool = False


def columns(numbers: str) -> tuple[str, ...]:
    """Return the styles of columns from a letter each: ``n`` for numbers, ``t`` for texts."""
    return tuple(NUMBER if each == "n" else TEXT for each in numbers)


def html(pattern: str, *texts: Any, **named: Any) -> Markup:
    """Return a pattern of HTML, as of ``str.format``, filled with texts, which are escaped."""
    return Markup(pattern).format(*texts, **named)  # noqa: S704 - patterns are literals


def trusted(text: str) -> Markup:
    """Return a text of gpuviz's own files as HTML, which no template escapes."""
    return Markup(text)  # noqa: S704 - no text of a recording


def joined(parts: Iterable[str], separator: str = "") -> Markup:
    """Return pieces of HTML one after the other; those not marked as HTML are escaped."""
    return Markup(separator).join(parts)  # noqa: S704 - separators are literals


def part(name: str, *values: Any, **named: Any) -> Markup:
    """Return what a macro of ``templates/parts.html`` makes of values."""
    macro = getattr(_environment().get_template("parts.html").module, name)
    return Markup(macro(*values, **named))  # noqa: S704 - templates escape


def page(template: str, **values: Any) -> tuple[str, str]:
    """Return a page before and after the recording that it embeds; texts are escaped.

    Args:
        template: The name of a file in ``templates``.
        values: The texts, and the pieces that are marked as HTML.
    """
    place = token_hex()
    text = _environment().get_template(template).render(values, recording=place)
    before, _, after = text.partition(place)
    return before, after


@cache
def _environment() -> "Environment":
    # Not at import, because only pages need it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from gpuviz.present.compiled_templates import CompiledTemplates

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        bytecode_cache=CompiledTemplates(),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "code": with_code,
        "counted": format_counted,
        "of_line": lambda line: of_line(line.source, line.site),
    }
    environment.globals |= {"AT_ONCE": AT_ONCE, "FIRST": FIRST}
    environment.tests["cell"] = lambda value: isinstance(value, Cell)
    return environment


def _finalized(value: Any) -> Any:
    """Return a text without what UTF-8 cannot express."""
    if isinstance(value, Markup):
        return Markup(as_unicode(value))  # noqa: S704 - it was marked before
    return as_unicode(value) if isinstance(value, str) else value


def section_html(section: Section, device: int) -> Markup:
    """Return a section of a page, with a name to which links lead; without title only its parts."""
    if not section.title:
        return parts_html(section.parts, "h4")
    return part("section", section, f"{section.name}-{device}")


def parts_html(parts: Iterable[Part], heading: str) -> Markup:
    """Return parts of a page, whose headings have an element's name."""
    return part("parts", list(parts), heading)


def with_code(text: str) -> Markup:
    """Return text as HTML, with what is between backquotes as code."""
    return Markup(_CODE.sub(r'<code class="gpuviz-code">\1</code>', str(escape(text))))  # noqa: S704 - escaped


def inline_table(
    headings: Sequence[str], rows: Iterable[Iterable[str | Cell]], styles: Sequence[str]
) -> Markup:
    """Return a table for a notebook, with a style for each column."""
    return part("table", headings, list(map(tuple, rows)), styles)
