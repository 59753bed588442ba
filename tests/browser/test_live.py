"""The live timeline in a real JupyterLab, in a real browser."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from tests.browser.lab import (
    OPENS_MS,
    open_in_lab,
    prompt,
    run,
    run_cell,
    until,
    wait_until_run,
    write_notebook,
)
from tests.browser.test_report import LEVELS, open_tab, point
from tests.browser.test_report_tables import LINES, cells, numbers

pytestmark = pytest.mark.browser

SHOW, PROGRAM, STOP, COUNT, SHOW_AGAIN, ROWS = range(6)
MIDDLE = (700, 450)
# A page scrolls within a few frames.
TURN_MS = 100
CELLS = [
    """
import os, gpuviz
from pathlib import Path
from gpuviz.notebook.timeline import Timeline
print("kernel process", os.getpid())
gpu = gpuviz.SimulatedGPU(memory=4 << 30)
recorder = gpuviz.record(device=gpu, host_samples=False)  # idle time belongs to what ended it
recorder.start()
Timeline(recorder)
""",
    """
kept, step = [], 0
streams = [gpu.Stream(non_blocking=True) for _ in range(2)]
while not Path("END").exists():
    with streams[step % 2]:
        x, y = gpu.empty((1 + step % 7) << 22), gpu.empty(8 << 20)
        gpu.copy_to_device(x, pinned=True)
        gpu.launch("scale", reads=[x], writes=[y], duration=3e-3)
        gpu.copy_to_host(y, pinned=True)
    if step % 10 == 0 and len(kept) < 200:
        kept.append(y)
    gpu.work_on_host(8e-3)
    step += 1
gpu.synchronize()
""",
    "recorder.stop()",
    """
from gpuviz.notebook import timeline
watched = sum(each.is_watched for each in timeline._open)
print("recording", recorder.is_recording, "watched", watched, end=" ")
print("widgets", len(timeline._open), "listeners", recorder._views.feed.listeners)
""",
    "Timeline(recorder)",
    """
import json
recording = recorder.recording
tables = {
    "kernels": recording.kernels(),
    "copies": recording.copies(),
    "waits": recording.synchronizations("line"),
    "lines": recording.lines(0),
}
print("rows", json.dumps({name: table.to_pylist() for name, table in tables.items()}))
""",
]
DASHBOARDS = [
    """
import gpuviz
gpu = gpuviz.SimulatedGPU()
with gpuviz.record(device=gpu) as recorder:
    for size in range(1, 40):
        array = gpu.empty(size << 20)
        gpu.launch("fill", writes=[array], duration=1e-4)
""",
    *["gpuviz.dashboard(recorder)"] * 3,
]
COLUMNS = {
    "kernels": ["total_ns", "share", "count", "median_ns", "min_ns", "max_ns", "launch_delay_ns"],
    "copies": ["total_ns", "bytes", "count", "median_ns", "bytes_per_second"],
    "waits": ["total_ns", "waiting_ns", "transfer_ns", "count", "median_ns", "max_ns"],
    "lines": LINES,
}


@pytest.fixture
def notebook(
    lab_page: Page, folder: Path, end: Path, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """Yield a page with a new notebook."""
    name = f"{request.node.name[:30]}.ipynb"
    write_notebook(folder, name, [cell.replace("END", str(end)) for cell in CELLS])
    lab_page.set_viewport_size({"width": 1400, "height": 1100})
    open_in_lab(lab_page, name)
    yield lab_page
    end.touch()


def counts(page: Page, view: int = 0) -> tuple[int, int]:
    """Return the numbers of memory events and activities that a view has drawn."""
    drawn = page.locator(".gpuviz-live__counts").nth(view)
    events, activities = (drawn.get_attribute(f"data-{name}") for name in ("events", "activities"))
    assert events is not None
    assert activities is not None
    return int(events), int(activities)


def state(page: Page) -> str:
    return page.locator(".gpuviz-live__state").first.inner_text()


def wait_for_state(page: Page, text: str) -> None:
    page.locator(".gpuviz-live__state").first.get_by_text(text).wait_for()


def window(page: Page) -> str:
    return page.locator(".gpuviz-controls__text").first.inner_text()


def start(page: Page) -> None:
    run_cell(page, SHOW)
    wait_for_state(page, "Recording")
    run_cell(page, PROGRAM)
    page.locator(".gpuviz-plot").nth(LEVELS).wait_for()


def stop(page: Page, end: Path) -> None:
    """End the program and the recording, and wait until the page shows it."""
    end.touch()
    wait_until_run(page, PROGRAM)
    run(page, STOP)
    wait_for_state(page, "Recording stopped")


def wait_for_more(page: Page) -> tuple[int, int]:
    """Wait until more events and activities are drawn than now, and return their numbers."""
    events, activities = counts(page)

    def more() -> tuple[int, int] | None:
        now = counts(page)
        return now if now[0] > events and now[1] > activities else None

    return until(page, more)


def test_the_timeline_moves_while_a_cell_runs_and_can_be_zoomed_meanwhile(notebook, end):
    start(notebook)
    plot = notebook.locator(".gpuviz-plot").nth(LEVELS)
    pictures = set()
    for _ in range(4):
        seen = wait_for_more(notebook)
        pictures.add(plot.screenshot())
    notebook.get_by_role("button", name="Zoom in").first.click()
    zoomed = window(notebook)
    wait_for_more(notebook)
    still_zoomed = window(notebook)
    notebook.get_by_role("button", name="Follow the end").click()
    following = window(notebook)
    wait_for_more(notebook)
    followed = window(notebook)
    while_running = prompt(notebook, PROGRAM)
    stop(notebook, end)

    assert len(pictures) == 4
    assert while_running == "[*]:"
    assert zoomed.split(" of ")[0] == still_zoomed.split(" of ")[0]
    assert followed.split(" to ")[0] != following.split(" to ")[0]
    assert counts(notebook)[0] > seen[0]


def test_tables_follow_a_recording_as_a_reader_has_sorted_them_and_end_with_its_rows(notebook, end):
    start(notebook)
    lines = open_tab(notebook, "lines")

    def is_source_open() -> bool:
        """A table that gets a new column between press and release of the button gets no click."""
        lines.locator("tbody .gpuviz-link").first.click()
        try:
            lines.locator(".gpuviz-source").wait_for(timeout=OPENS_MS)
        except PlaywrightTimeoutError:
            return False
        return True

    until(notebook, is_source_open)
    open_tab(notebook, "copies")
    heading = notebook.locator("[data-panel=copies] th").nth(3)
    heading.get_by_role("button").click()
    heading.get_by_role("button").click()
    before = [int(row[3]) for row in cells(notebook, "copies")]
    notebook.wait_for_function(
        "before => +document.querySelector('[data-panel=copies] td:nth-child(4)').dataset.sort"
        " > before",
        arg=before[0],
    )
    later = [int(row[3]) for row in cells(notebook, "copies")]
    was_open = notebook.locator("[data-panel=lines] .gpuviz-source").count()
    heading.get_by_role("button").focus()
    notebook.wait_for_function(
        "before => +document.querySelector('[data-panel=copies] td:nth-child(4)').dataset.sort"
        " > before",
        arg=later[0],
    )
    has_focus = notebook.evaluate("document.activeElement.closest('th') !== null")
    stop(notebook, end)
    run(notebook, ROWS)
    notebook.locator(".gpuviz-drawer__head").scroll_into_view_if_needed()
    open_tab(notebook, "lines").get_by_role("button", name="All lines").click()
    told = notebook.locator(".jp-OutputArea-output", has_text="rows {").first.text_content()
    expected = {
        part: numbers([[row[name] for name in COLUMNS[part]] for row in rows], 0)
        for part, rows in json.loads(told.removeprefix("rows ")).items()
    }

    def is_shown() -> bool:
        return expected == {
            part: numbers(cells(notebook, part), 1, 1 + len(names))
            for part, names in COLUMNS.items()
        }

    until(notebook, is_shown)
    assert heading.get_attribute("aria-sort") == "ascending"
    assert later == sorted(later)
    assert was_open == 1
    assert has_focus


def test_keys_of_the_timeline_do_not_edit_the_notebook(notebook):
    start(notebook)
    before = notebook.locator(".jp-CodeCell").count()
    notebook.locator(".gpuviz-plot").nth(LEVELS).focus()
    shown = window(notebook)
    for key in "wwaddsxyzm":
        notebook.keyboard.press(key)

    assert window(notebook) != shown
    assert notebook.locator(".jp-CodeCell").count() == before


def test_the_wheel_scrolls_past_three_dashboards_and_back(lab_page, folder):
    page = lab_page
    write_notebook(folder, "dashboards.ipynb", DASHBOARDS)
    open_in_lab(page, "dashboards.ipynb")
    for number in range(len(DASHBOARDS)):
        run(page, number)
    page.locator(".gpuviz-plot canvas").first.wait_for()

    page.mouse.move(*MIDDLE)
    over_plots = [over_plots_until_the_end(page, by) for by in (-200, 200, -200)]

    # Down and up again the pointer was over the charts of each dashboard.
    assert over_plots[1] >= 3
    assert over_plots[2] >= 3


def over_plots_until_the_end(page: Page, by: int) -> int:
    """Scroll a notebook to an end with the wheel; return how often the pointer was over a chart.

    A turn is repeated that moved nothing, as while the notebook is laid out.

    Raises:
        TimeoutError: No turn of the wheel moved anything.
    """
    over = 0
    notebook = page.locator(".jp-WindowedPanel-outer")

    def scrolled() -> tuple[float, bool]:
        top, most = notebook.evaluate(
            "each => [each.scrollTop, each.scrollHeight - each.clientHeight]"
        )
        return top, top <= 1 if by < 0 else top >= most - 1

    while True:
        top, is_at_end = scrolled()
        if is_at_end:
            return over
        over += page.evaluate(
            "place => document.elementFromPoint(...place).closest('.gpuviz-plot') !== null",
            list(MIDDLE),
        )

        def is_turned(before: float = top) -> bool:
            page.mouse.wheel(0, by)
            page.wait_for_timeout(TURN_MS)
            return scrolled() != (before, False)

        until(page, is_turned)


def test_two_widgets_are_in_step_and_nobody_listens_when_the_recorder_stopped(notebook, end):
    # JupyterLab removes content far from the visible part from the page.
    notebook.set_viewport_size({"width": 1400, "height": 6000})
    start(notebook)
    until(notebook, lambda: min(counts(notebook)) > 0)
    end.touch()
    wait_until_run(notebook, PROGRAM)
    for _ in range(2):
        run(notebook, SHOW_AGAIN)
        notebook.locator(".gpuviz-live").nth(1).scroll_into_view_if_needed()
        notebook.locator(".gpuviz-live__counts").nth(1).get_by_text("activities").wait_for()

    def are_both_watched() -> bool:
        run(notebook, COUNT)
        return notebook.get_by_text("recording True watched 2 widgets 2").count() == 1

    # A busy page reports with a delay that it shows the widget.
    until(notebook, are_both_watched)
    stop(notebook, end)
    until(notebook, lambda: counts(notebook, 0) == counts(notebook, 1))
    run(notebook, COUNT)

    assert notebook.get_by_text("recording False watched 2 widgets 2 listeners 0").count() == 1


def test_after_the_kernel_died_the_view_keeps_what_it_has_and_says_so(notebook):
    start(notebook)
    until(notebook, lambda: min(counts(notebook)) > 0)
    notebook.locator("[data-command='notebook:restart-kernel']").first.click()
    notebook.locator(".jp-Dialog button.jp-mod-accept").click()
    wait_for_state(notebook, "The kernel is no longer running")
    known = counts(notebook)
    whole = window(notebook)
    notebook.get_by_role("button", name="Zoom in").first.click()

    assert known[0] > 0
    assert whole.startswith("all ")
    assert re.fullmatch(r".* to .* of .* shown", window(notebook))


def test_after_the_kernel_was_killed_the_view_says_so_and_is_zoomed_pointed_at_and_searched(
    notebook,
):
    start(notebook)
    until(notebook, lambda: min(counts(notebook)) > 0)
    told = notebook.locator(".jp-OutputArea-output").first.text_content()
    os.kill(int(re.search(r"kernel process (\d+)", told)[1]), signal.SIGKILL)
    notebook.locator(".jp-Dialog").get_by_text("Kernel Restarting").wait_for()
    notebook.locator(".jp-Dialog button.jp-mod-accept").click()
    wait_for_state(notebook, "The kernel is no longer running")
    known = counts(notebook)
    notebook.get_by_role("button", name="Zoom in").first.click()
    zoomed = window(notebook)
    notebook.mouse.move(*point(notebook, LEVELS, 0.5, 0.5))
    pointed_at = notebook.locator(".gpuviz-readout__where").inner_text()
    notebook.get_by_role("searchbox").fill("scale")
    notebook.locator(".gpuviz-search__hit").first.click()
    selected = notebook.get_by_role("region", name="Selected").inner_text()

    assert known[0] > 0
    assert known[1] > 0
    assert re.fullmatch(r".* to .* of .* shown", zoomed)
    assert pointed_at.startswith("At the cursor")
    assert "scale" in selected
