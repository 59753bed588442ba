"""The headline numbers of a dashboard."""

from html import escape

from gpuviz.report.live_numbers import LiveNumbers
from gpuviz.report.summary import Number

__all__ = ["LiveNumbers", "numbers_html"]

_STYLE = """<style>
.gpuviz-numbers{display:flex;flex-wrap:wrap;gap:6px 22px;margin:4px 0;line-height:1.35;
color:var(--jp-ui-font-color1,inherit);font-family:var(--jp-ui-font-family,system-ui,sans-serif)}
.gpuviz-numbers dt{font-size:11px;opacity:.8;font-weight:400;margin:0}
.gpuviz-numbers dd{margin:0;font-variant-numeric:tabular-nums}
.gpuviz-numbers__value{font-size:16px;font-weight:600}
.gpuviz-numbers__detail{font-size:11px;opacity:.8}
</style>"""


def numbers_html(numbers: list[Number]) -> str:
    """Return headline numbers as HTML; all texts are escaped."""
    parts = (
        f"<div><dt>{escape(number.name)}</dt>"
        f'<dd class="gpuviz-numbers__value">{escape(number.value)}</dd>'
        f'<dd class="gpuviz-numbers__detail">{escape(number.detail)}</dd></div>'
        for number in numbers
    )
    return f'{_STYLE}<dl class="gpuviz-numbers">{"".join(parts)}</dl>'
