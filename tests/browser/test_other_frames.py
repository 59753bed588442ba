"""The dashboard and a report in the output frames of VS Code and Colab, as far as these matter.

VS Code styles every table and the frame's body, and has colours of its own; Colab's frame has no
origin, so that nothing can be stored, and marks a dark theme by an attribute.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Frame, Page

import gpuviz
from gpuviz.report.page import build_page
from tests.browser.test_accessibility import AXE
from tests.browser.test_every_state import PROBLEMS
from tests.browser.widget_page import kernel, show_widget

pytestmark = pytest.mark.browser

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
DARK = {"editor-background": "#1f1f1f", "editor-foreground": "#cccccc"}
LIGHT = {"editor-background": "#ffffff", "editor-foreground": "#3b3b3b"}
VS_CODE_STYLE = """
body { overflow: hidden; margin: 0; padding: 0; font-size: 13px; }
#output { overflow-x: auto; box-sizing: border-box; padding: 8px; }
table, thead, tr, th, td, tbody {
  border: none !important; border-spacing: 0; border-collapse: collapse; }
table, th, tr { text-align: left !important; }
th, td { padding: 4px 8px; }
tr:nth-child(even) { background-color: rgba(130, 130, 130, 0.08); }
"""


def vs_code(kind: str) -> str:
    """Return the page of an output in VS Code, with a theme of a kind."""
    colours = DARK if kind == "vscode-dark" else LIGHT
    variables = "".join(f"--vscode-{name}: {value};" for name, value in colours.items())
    return (
        f'<!doctype html><html style="{variables}"><head><style>{VS_CODE_STYLE}</style></head>'
        f'<body class="{kind}" data-vscode-theme-kind="{kind}"><div id="output"></div></body>'
    )


def colab(theme: str) -> str:
    """Return the page of an output in Colab."""
    return f'<!doctype html><html theme="{theme}"><body><div id="output"></div></body></html>'


FRAMES = {
    "VS Code, light": (vs_code("vscode-light"), False),
    "VS Code, dark": (vs_code("vscode-dark"), True),
    "Colab, light": (colab("light"), False),
    "Colab, dark": (colab("dark"), True),
}


def open_frame(page: Page, html: str, height: int) -> Frame:
    """Show a page in a frame that may do nothing but run scripts."""
    page.set_viewport_size({"width": 1100, "height": height})
    page.set_content('<body style="margin: 0"></body>')
    page.evaluate(
        """([html, height]) => new Promise((done) => {
          const frame = document.createElement("iframe");
          frame.setAttribute("sandbox", "allow-scripts");
          frame.style = `width: 1000px; height: ${height}px; border: 0`;
          frame.srcdoc = html;
          frame.onload = done;
          document.body.append(frame);
        })""",
        [html, height],
    )
    return page.frames[1]


@pytest.mark.parametrize("name", FRAMES)
def test_a_dashboard_in_the_frame_of_another_notebook(page, monkeypatch, name):
    html, is_dark = FRAMES[name]
    frame = open_frame(page, html, 1000)
    with kernel(monkeypatch):
        dashboard = gpuviz.dashboard(gpuviz.load(RECORDINGS / "image_pipeline.gpuviz"))
    show_widget(page, dashboard, frame)
    frame.locator(".gpuviz-found").wait_for()
    frame.get_by_text("1,394 activities").wait_for()

    frame.get_by_role("button", name="show", exact=True).first.click()
    measured = frame.get_by_role("region", name="Measured")
    measured.wait_for()
    frame.get_by_role("tab", name="Kernels", exact=True).click()
    first = frame.locator("[data-panel=kernels] tbody tr").first
    first.wait_for()
    problems = frame.evaluate(PROBLEMS)
    looks = frame.evaluate(
        """() => {
          const root = document.querySelector(".gpuviz-widget");
          const cells = [...document.querySelectorAll("[data-panel=kernels] tr")].slice(0, 2);
          const column = cells.map((row) => getComputedStyle(row.children[1]).textAlign);
          return { isDark: root.classList.contains("gpuviz-theme--dark"), column };
        }"""
    )
    frame.evaluate(AXE)
    found = frame.evaluate("axe.run('.gpuviz-widget').then(found => found.violations)")
    dashboard.close()

    assert "peak allocated" in measured.inner_text()
    assert looks == {"isDark": is_dark, "column": ["right", "right"]}
    assert [each["id"] for each in found] == []
    # The frame is as high as its output, so only the page around it scrolls.
    assert [each for each in problems if "higher than the window" not in each] == []


def test_a_report_in_a_frame_without_an_origin(page):
    text = build_page(gpuviz.load(RECORDINGS / "kmeans.gpuviz"))
    frame = open_frame(page, text, 700)
    frame.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")

    frame.locator(".gpuviz-headline__figure", has_text="GPU idle").click()

    assert "159 µs host waits" in frame.get_by_role("region", name="Measured").inner_text()
    assert frame.evaluate(PROBLEMS) == []
