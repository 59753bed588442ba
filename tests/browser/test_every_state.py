"""Every shipped recording in windows of every kind: each tab, a selection, a span.

Nothing is cut, overlaps or lies outside the window, and axe-core finds nothing.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Page

import gpuviz
from tests.browser.test_accessibility import AXE, violations
from tests.browser.test_report import open_report
from tests.browser.widget_page import kernel, show_widget

pytestmark = [pytest.mark.browser, pytest.mark.deep]

COMMANDS = Path(gpuviz.__file__).parent / "commands"
RECORDINGS = {path.stem: path for path in COMMANDS.rglob("*.gpuviz")}
SHIPPED = sorted(RECORDINGS)
COMPARED = ("one_pool_separate", "one_pool_shared")
# The last one is the first at a zoom of 200 %.
SIZES = [(1280, 720), (1440, 900), (1920, 1080), (390, 844), (640, 360)]
# From this width on, tabs choose one panel.
LEAST_WIDE = 900
# What may be seen only in part: text that ends with an ellipsis, what scrolls, and the calls of a
# flame graph. A dialog and the hits of a search lie on all else.
PROBLEMS = """async () => {
  for (let frame = 0; frame < 2; frame += 1) {
    await new Promise(requestAnimationFrame);
  }
  const found = [];
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) {
    found.push(`the page is ${root.scrollWidth - innerWidth} px wider than the window`);
  }
  if (innerWidth >= 900 && root.scrollHeight > innerHeight) {
    found.push(`the page is ${root.scrollHeight - innerHeight} px higher than the window`);
  }
  const scrolls = (value) => value === "auto" || value === "scroll";
  const nameOf = (each) => {
    const text = (each.ariaLabel || each.textContent || each.className).trim().slice(0, 40);
    return `${each.tagName.toLowerCase()} "${text}"`;
  };
  const shown = [];
  const parts = "button, select, input, h1, h3, h4, th, label";
  for (const each of document.querySelectorAll(`:is(${parts}):not(.gpuviz-icicle *)`)) {
    const own = each.getBoundingClientRect();
    if (!each.checkVisibility({ visibilityProperty: true }) || own.width < 2 || own.height < 2) {
      continue;
    }
    let [left, top, right, bottom] = [own.left, own.top, own.right, own.bottom];
    let [isCut, isUnseen] = [false, getComputedStyle(each).clipPath !== "none"];
    for (let up = each.parentElement; up !== null && up !== document.body; up = up.parentElement) {
      const style = getComputedStyle(up);
      const box = up.getBoundingClientRect();
      isUnseen ||= style.clipPath !== "none";
      if (style.overflowX !== "visible") {
        isCut ||= !scrolls(style.overflowX) && style.textOverflow !== "ellipsis" &&
          (left < box.left - 1 || right > box.right + 1);
        [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      }
      if (style.overflowY !== "visible") {
        isCut ||= !scrolls(style.overflowY) && (top < box.top - 1 || bottom > box.bottom + 1);
        [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
      }
    }
    if (isUnseen || right - left < 1 || bottom - top < 1) {
      continue;
    }
    if (isCut) {
      found.push(`${nameOf(each)} is cut`);
    }
    if (left < -1 || right > innerWidth + 1) {
      found.push(`${nameOf(each)} is outside the window`);
    }
    shown.push({ each, left, top, right, bottom });
  }
  const isSticky = (each) => getComputedStyle(each).position === "sticky";
  shown.forEach((one, at) => {
    for (const other of shown.slice(at + 1)) {
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      const isInside = one.each.contains(other.each) || other.each.contains(one.each);
      const layerOf = ({ each }) => each.closest("dialog, .gpuviz-search__hits");
      // The head of a table lies on the rows that are scrolled below it.
      const isHead = [one.each, other.each].some((each) => isSticky(each.closest("th") ?? each));
      if (wide > 1 && high > 1 && !isInside && !isHead && layerOf(one) === layerOf(other)) {
        found.push(`${nameOf(one.each)} overlaps ${nameOf(other.each)}`);
      }
    }
  });
  return [...new Set(found)];
}"""


def opened(page: Page, name: str, tmp_path: Path) -> None:
    """Open the report of a recording, or the page of two."""
    if name != "compared":
        open_report(page, gpuviz.load(RECORDINGS[name]), tmp_path)
        return
    files = (RECORDINGS[each] for each in COMPARED)
    page.goto(gpuviz.diff(*files).report(tmp_path / "compared.html").as_uri())
    page.wait_for_selector("html[data-gpuviz=ready]", state="attached")


def states(page: Page):
    """Lead the page to one state after the other, and yield what each is called."""
    yield "as it opens"
    width = page.viewport_size["width"]
    tabs = page.locator(".gpuviz-drawer__tab:not([hidden])")
    for name in tabs.evaluate_all("all => all.map(tab => tab.dataset.tab)"):
        if width >= LEAST_WIDE:
            tab = page.locator(f".gpuviz-drawer__tab[data-tab={name}]")
            if tab.is_visible():
                tab.click()
            else:
                page.locator(".gpuviz-drawer__more").select_option(name)
            yield f"tab {name}"
    page.locator("[data-pane=streams] .gpuviz-plot").focus()
    page.keyboard.press("m")
    yield "a span"
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("a")
    yield "a search"
    page.keyboard.press("Enter")
    yield "a selection"
    page.keyboard.press("Escape")
    page.locator("body").press("?")
    yield "the help"


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", [*SHIPPED, "compared"])
def test_nothing_is_cut_overlaps_or_is_outside(page, tmp_path, name, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    opened(page, name, tmp_path)

    found = {state: page.evaluate(PROBLEMS) for state in states(page)}

    assert found == {state: [] for state in found}


@pytest.mark.parametrize("width", [780, 1000])
@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_is_cut_overlaps_or_is_outside_in_a_dashboard(page, monkeypatch, name, width):
    # A pane of JupyterLab beside its side bar, and a wide one; the notebook scrolls.
    page.set_viewport_size({"width": width, "height": 2400})
    with kernel(monkeypatch):
        dashboard = gpuviz.dashboard(gpuviz.load(RECORDINGS[name]))
    show_widget(page, dashboard)
    page.locator(".gpuviz-found").wait_for()
    page.locator("[data-pane=streams] .gpuviz-plot").wait_for()

    found = {state: page.evaluate(PROBLEMS) for state in states(page)}
    dashboard.close()

    assert found == {state: [] for state in found}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*SHIPPED, "compared"])
def test_every_state_is_accessible(page, tmp_path, name, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 1440, "height": 900})
    opened(page, name, tmp_path)
    page.evaluate(AXE)

    found = {state: violations(page) for state in states(page)}

    assert found == {state: [] for state in found}
