"""The headline numbers of a dashboard."""

from html import escape

from gpuviz.report.live_numbers import LiveNumbers
from gpuviz.report.summary import Number

__all__ = ["LiveNumbers", "numbers_html"]

# No <dl>: JupyterLab has a style of its own for those.
_STYLE = """<style>
.gpuviz-numbers{display:flex;flex-wrap:wrap;gap:8px 24px;margin:6px 2px;line-height:1.35;
color:var(--jp-ui-font-color1,inherit);font-family:var(--jp-ui-font-family,system-ui,sans-serif)}
.gpuviz-numbers__number{display:flex;flex-direction:column}
.gpuviz-numbers__name,.gpuviz-numbers__detail{font-size:11px;opacity:.85}
.gpuviz-numbers__value{font-size:16px;font-weight:600;font-variant-numeric:tabular-nums}
</style>"""


def numbers_html(numbers: list[Number]) -> str:
    """Return headline numbers as HTML; all texts are escaped."""
    parts = (
        '<div class="gpuviz-numbers__number" role="listitem">'
        f'<span class="gpuviz-numbers__name">{escape(number.name)}</span>'
        f'<span class="gpuviz-numbers__value">{escape(number.value)}</span>'
        f'<span class="gpuviz-numbers__detail">{escape(number.detail)}</span></div>'
        for number in numbers
    )
    return f'{_STYLE}<div class="gpuviz-numbers" role="list">{"".join(parts)}</div>'
