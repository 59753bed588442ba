"""The side panel, the commands, the status bar and the list of leaks in a real JupyterLab."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import gpuviz
from tests.browser.lab import (
    gpu_panel,
    open_in_lab,
    palette,
    prompt,
    run,
    run_cell,
    until,
    wait_until_run,
    write_notebook,
)

pytestmark = pytest.mark.browser

LOAD, START, PROGRAM, ONE_CELL, ADD, STATUS, KEPT = range(7)
CELLS = [
    "import time, gpuviz\n%load_ext gpuviz\ngpu = gpuviz.SimulatedGPU()",
    "%gpuviz start --simulated gpu",
    """
kept = []
while True:
    kept.append(gpu.empty(1 << 20))
    gpu.launch("work", writes=[kept[-1]], duration=0.02)
    time.sleep(0.05)
""",
    "one = gpu.empty(3 << 20)\none.nbytes",
    "1 + 1",
    "%gpuviz status",
    "model = {'w': gpu.empty(3 << 20)}\ngpu.empty(2 << 20)",
]

LEAKING, OUTPUT, FAILURE, SHOW, USED, WAIT = range(6)
LEAKS = [
    """
%load_ext gpuviz
import gpuviz
gpu = gpuviz.SimulatedGPU(memory=4 << 30)
weights = gpu.empty(40 << 20)
def train():
    batch = gpu.empty(30 << 20)
    1 / 0
""",
    "gpu.empty(20 << 20)",
    "train()",
    "%gpuviz dashboard",
    "gpu.memory_stats()['allocated_bytes.all.current'] >> 20",
    "import time\ntime.sleep(3)\nweights.nbytes >> 20",
]


@pytest.fixture
def page(lab_page: Page, folder: Path, request: pytest.FixtureRequest) -> Page:
    """Return a page with a new notebook."""
    name = f"{request.node.name[5:25]}.ipynb"
    write_notebook(folder, name, CELLS)
    open_in_lab(lab_page, name)
    return lab_page


def test_the_status_bar_has_its_style_before_the_panel_is_opened(page):
    for cell in (LOAD, START, ONE_CELL):
        run(page, cell)
    button = page.locator(".gpuviz-status", has_text="GPU 3.00 MiB")
    button.wait_for()

    styles = button.evaluate(
        "each => [getComputedStyle(each).borderTopStyle, getComputedStyle(each).backgroundColor]"
    )

    assert styles == ["none", "rgba(0, 0, 0, 0)"]


def test_the_panel_tells_and_obeys_while_a_cell_runs(page, folder):
    card = gpu_panel(page)
    card.get_by_text("gpuviz is not loaded").wait_for()
    run(page, LOAD)
    card.get_by_text("Not recording").wait_for()
    run(page, START)
    run_cell(page, PROGRAM)
    card.get_by_text("GPU busy").wait_for()
    first = until(page, lambda: peak_mib(card))
    until(page, lambda: peak_mib(card) > first)
    status = page.locator(".gpuviz-status").inner_text()
    card.get_by_role("button", name="Save").click()
    card.get_by_text("Wrote").wait_for()
    card.get_by_role("button", name="Report").click()
    card.get_by_text(".html").wait_for()
    card.get_by_role("button", name="Stop").click()
    card.get_by_text("Not recording").wait_for()
    while_running = prompt(page, PROGRAM)
    saved = next(folder.glob("the_panel*.gpuviz"))

    assert while_running == "[*]:"
    assert re.fullmatch(r"GPU [\d.]+ MiB / [\d.]+ MiB", status)
    assert gpuviz.load(saved).table("memory_events").num_rows > 10
    assert len(list(folder.glob("the_panel*.html"))) == 1


def test_the_panel_lists_what_keeps_memory_alive_and_lets_go_of_it(page):
    card = gpu_panel(page)
    run(page, LOAD)
    run(page, KEPT)
    card.get_by_role("button", name="Leaks").click()
    card.get_by_text("model['w']").wait_for()
    listed = card.locator("li").all_inner_texts()

    card.get_by_role("button", name=re.compile(r"Drop Out\[\d+\]: 2.00 MiB")).click()

    card.get_by_text("Freed 2.00 MiB.").wait_for()
    assert [text.split(" MiB")[0] for text in listed] == ["3.00", "2.00"]
    assert len(card.locator("li").all()) == 1


def peak_mib(card: Locator) -> float:
    """Return the peak in MiB; 0 before the first allocation."""
    found = re.search(r"peak ([\d.]+) MiB", card.inner_text())
    return float(found[1]) if found else 0


def test_the_panel_starts_anew_with_a_kernel_that_is_restarted(page):
    card = gpu_panel(page)
    run(page, LOAD)
    card.get_by_text("Not recording").wait_for()
    palette(page, "Restart Kernel…")
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    card.get_by_text("gpuviz is not loaded").wait_for()
    card.get_by_role("button", name="Load gpuviz in this kernel").click()

    card.get_by_text("Not recording").wait_for()


def test_a_cell_is_profiled_as_it_stands_and_the_dashboard_opens_beside_it(page):
    run(page, LOAD)
    run(page, START)
    run_cell(page, ONE_CELL)
    page.locator(".jp-CodeCell").nth(ONE_CELL).locator(".cm-content").click()
    palette(page, "Profile This Cell on the GPU")
    cell = page.locator(".jp-CodeCell").nth(ONE_CELL)
    cell.get_by_text("Peak allocated").wait_for()
    page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=gpuviz]").first.click()
    dashboard = page.locator(".gpuviz-dashboard-tab")
    dashboard.get_by_role("region", name="Memory over time").wait_for()

    assert cell.locator(".cm-content").inner_text() == CELLS[ONE_CELL]
    assert "3145728" in cell.inner_text()
    assert dashboard.bounding_box()["x"] > cell.bounding_box()["x"]


def numbers_of_the_dashboard(page):
    """Return value and detail of each number by name."""
    texts = page.locator(".gpuviz-numbers__number").evaluate_all(
        "all => all.map(each => [...each.children].map(part => part.textContent))"
    )
    return {name: (value, detail) for name, value, detail in texts}


def numbers_of_the_panel(card):
    texts = card.locator("dl").evaluate(
        "list => [...list.querySelectorAll('dt')].map(name => ["
        " name.textContent, name.nextSibling.firstChild.textContent.trim(),"
        " name.nextSibling.lastChild.textContent])"
    )
    return {name: (value, detail) for name, value, detail in texts}


def all_numbers(page, card):
    return (
        numbers_of_the_dashboard(page),
        numbers_of_the_panel(card),
        page.locator(".gpuviz-status").inner_text(),
        page.locator(".gpuviz-live__counts").first.inner_text(),
    )


def said_by(status, numbers):
    """Whether the text of a status says each of these numbers."""
    return all(
        re.search(rf"{name} +{re.escape(value)}( \({re.escape(detail)}\))?\n", status)
        for name, (value, detail) in numbers.items()
    )


def test_panel_dashboard_status_bar_and_status_show_the_same_numbers(page):
    card = gpu_panel(page)
    for cell in (LOAD, START, ONE_CELL):
        run(page, cell)
    page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=gpuviz]").first.click()
    page.locator(".gpuviz-numbers__value").first.wait_for()
    page.locator(".gpuviz-live__counts").get_by_text("allocated").wait_for()
    card.get_by_role("button", name="Stop").click()
    card.get_by_text("Not recording").wait_for()
    run(page, STATUS)
    status = page.locator(".jp-CodeCell").nth(STATUS).locator(".jp-OutputArea-output").inner_text()
    elapsed = re.match(r"Recording stopped after (.*)", status)[1]
    page.locator(".gpuviz-live__counts").get_by_text(elapsed).wait_for()
    # An earlier message may have said the same of the time that has passed.
    until(page, lambda: said_by(status, numbers_of_the_dashboard(page)))
    dashboard, panel, bar, live = all_numbers(page, card)
    allocated, peak = dashboard["Allocated"][0], dashboard["Allocated"][1].removeprefix("peak ")

    assert set(panel) == {"Allocated", "Reserved", "GPU busy"}
    assert panel.items() <= dashboard.items()
    assert bar == f"GPU {allocated} / {peak}"
    assert live.startswith(f"{elapsed} · {allocated} allocated, peak {peak} · ")
    assert allocated == "3.00 MiB"


def test_the_numbers_move_together_while_a_cell_runs(page):
    gpu_panel(page)
    for cell in (LOAD, START):
        run(page, cell)
    page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=gpuviz]").first.click()
    page.locator(".gpuviz-numbers__value").first.wait_for()
    run_cell(page, PROGRAM)
    # Read in one task of the page, so that no message of the kernel comes in between.
    same = """() => {
      const text = (element) => element?.textContent ?? "";
      const dashboard = text(document.querySelector(".gpuviz-numbers__value"));
      const panel = text(document.querySelector(".gpuviz-card__numbers dd")?.firstChild).trim();
      const live = text(document.querySelector(".gpuviz-live__counts"));
      const bar = text(document.querySelector(".gpuviz-status"));
      window.agreed ??= new Set();
      const isSame = dashboard === panel && live.includes(`${dashboard} allocated`);
      if (dashboard.includes("MiB") && isSame && bar.startsWith(`GPU ${dashboard}`)) {
        window.agreed.add(dashboard);
      }
      return window.agreed.size >= 2;
    }"""
    page.wait_for_function(same, polling=50)

    assert prompt(page, PROGRAM) == "[*]:"


def output(page: Page, cell: int) -> str:
    """Return what a cell that has been started shows at its end."""
    wait_until_run(page, cell)
    return page.locator(".jp-CodeCell").nth(cell).locator(".jp-OutputArea-output").inner_text()


def test_leaks_lists_holders_and_a_button_frees_what_it_says(lab_page, folder):
    notebook = lab_page
    notebook.set_viewport_size({"width": 1400, "height": 1100})
    write_notebook(folder, "leaks.ipynb", LEAKS)
    open_in_lab(notebook, "leaks.ipynb")
    for cell in (LEAKING, OUTPUT, FAILURE, SHOW):
        run(notebook, cell)
    buttons = notebook.locator(".gpuviz-widget .gpuviz-button")
    buttons.get_by_text("Leaks", exact=True).click()
    listed = notebook.locator(".gpuviz-holders")
    expect(listed).to_contain_text("90.0 MiB of GPU memory in use.")
    rows = listed.locator("tbody tr")

    texts = [row.inner_text() for row in rows.all()]
    assert [text.split("\t")[0] for text in texts] == ["40.0 MiB", "30.0 MiB", "20.0 MiB"]
    assert texts[0].split("\t")[2:] == ["weights", "only holder"]
    assert "local `batch` of train() line 7" in texts[1]
    assert texts[2].split("\t")[2:] == ["Out[2]", "only holder"]

    forget = buttons.filter(has_text="Forget the last exception")
    expect(forget).to_have_text(re.compile("30.0 MiB$"))
    forget.click()
    expect(notebook.get_by_text("Freed 30.0 MiB.")).to_be_visible()
    expect(rows).to_have_count(2)
    expect(forget).to_have_count(0)

    buttons.get_by_text("Drop Out[2]: 20.0 MiB", exact=True).click()
    expect(notebook.get_by_text("Freed 20.0 MiB.")).to_be_visible()
    run_cell(notebook, USED)
    assert output(notebook, USED) == "40"

    run_cell(notebook, WAIT)
    buttons.get_by_text("Delete weights: 40.0 MiB", exact=True).click()
    # The variable is there until the cell has ended.
    assert output(notebook, WAIT) == "40"
    expect(notebook.get_by_text("Freed 40.0 MiB.")).to_be_visible()
