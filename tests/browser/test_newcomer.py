"""Five questions of somebody who opens a report for the first time: three actions answer each."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

import gpuviz
from gpuviz.quantities import format_bytes, format_duration, format_share
from gpuviz.recording import Recording, load
from tests.browser.test_report import open_page

pytestmark = pytest.mark.browser

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
MOST_ACTIONS = 3


class Newcomer:
    """A reader of a report, who clicks or drags at most three times."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._actions = 0

    def click(self, place: Locator, **options: dict[str, float]) -> None:
        self._act()
        place.click(**options)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Move the mouse from one place to another with the button held down."""
        self._act()
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(*end, steps=3)
        self.page.mouse.up()

    def _act(self) -> None:
        self._actions += 1
        assert self._actions <= MOST_ACTIONS

    def figure(self, name: str) -> Locator:
        """Return a figure of the headline."""
        return self.page.locator(".gpuviz-headline__figure", has_text=name)

    def panel(self, name: str) -> Locator:
        """Return a panel of the drawer that is in view."""
        panel = self.page.locator(f"[data-panel={name}][role=tabpanel]")
        assert panel.is_visible()
        return panel

    def seen(self, place: Locator) -> str:
        """Return the text of a place if it is on the screen without scrolling."""
        box = place.bounding_box()
        size = self.page.viewport_size
        assert box["y"] >= 0
        assert box["y"] + min(box["height"], 20) <= size["height"]
        return place.inner_text()


@pytest.fixture
def newcomer(page: Page) -> Newcomer:
    page.set_viewport_size({"width": 1440, "height": 900})
    return Newcomer(page)


@pytest.fixture
def opened(newcomer: Newcomer, report_of: Callable[[Path], Path]) -> Callable[[str], Recording]:
    """Open a recording for the newcomer."""

    def open_one(name: str) -> Recording:
        path = RECORDINGS / f"{name}.gpuviz"
        open_page(newcomer.page, report_of(path))
        return load(path)

    return open_one


@pytest.mark.parametrize("name", ["image_pipeline", "kmeans"])
def test_what_makes_the_peak(newcomer, opened, name):
    recording = opened(name)

    first = newcomer.panel("lines").locator("tbody tr").first

    (expected,) = recording.lines(0).slice(0, 1).to_pylist()
    shown = newcomer.seen(first)
    assert expected["source"].strip() in shown
    assert format_bytes(expected["live_bytes"]) in shown
    assert format_bytes(recording.peak().bytes) in newcomer.seen(newcomer.figure("Peak"))


@pytest.mark.parametrize("name", ["image_pipeline", "fft_filter", "conjugate_gradient"])
def test_which_line_blocks_the_host(newcomer, opened, name):
    recording = opened(name)

    newcomer.click(newcomer.figure("Host blocked"))

    expected = recording.synchronizations("line").to_pylist()[0]
    shown = newcomer.seen(newcomer.panel("waits").locator("tbody tr").first)
    assert expected["source"].strip() in shown
    assert format_duration(expected["total_ns"]) in shown


@pytest.mark.parametrize("name", ["image_pipeline", "kmeans", "monte_carlo"])
def test_why_the_gpu_is_idle_in_the_longest_gap(newcomer, opened, name):
    recording = opened(name)

    newcomer.click(newcomer.figure("GPU idle"))
    shown = newcomer.seen(newcomer.page.get_by_role("region", name="Measured"))

    gaps = [row for row in recording.table("idle_gaps").to_pylist() if row["stream"] == 0]
    longest = max(gaps, key=lambda row: row["end"] - row["time"])
    assert format_duration(longest["end"] - longest["time"]) in shown
    assert WORDS[longest["cause"]] in shown


WORDS = {
    "host": "host late",
    "synchronization": "host waits",
    "allocation": "allocation",
    "dependency": "waits for a stream",
    "unknown": "no identified cause",
}


@pytest.mark.parametrize("name", ["image_pipeline", "kmeans"])
def test_which_kernels_touch_the_largest_block(newcomer, opened, name):
    recording = opened(name)

    lines = newcomer.panel("lines")
    newcomer.click(lines.locator("tbody tr").first.get_by_role("button"))
    newcomer.click(lines.get_by_role("button", name="Show its largest block in the charts"))

    panel = newcomer.panel("selection")
    facts = dict(
        zip(
            panel.locator("dt").all_inner_texts(),
            panel.locator("dd").all_inner_texts(),
            strict=True,
        )
    )
    largest = largest_blocks(recording)
    assert newcomer.seen(panel).startswith(f"Block of {format_bytes(largest[0].size)} ")
    (block,) = (
        each
        for each in largest
        if f"0x{each.address:x}" == facts["address"]
        and format_duration(each.end - each.start) == facts["lived"]
        and f"allocated at {format_duration(each.start)}: " in panel.inner_text()
    )
    shown = panel.locator(".gpuviz-selected__table tbody td:first-child").all_inner_texts()
    touched = block.kernels(recording)
    assert len(shown) == len(touched) > 0
    for kernel, full_name in zip(shown, touched, strict=True):
        assert kernel in full_name or "\N{RIGHTWARDS ARROW}" in kernel


@dataclass
class Block:
    """A block from its allocation to its free."""

    address: int
    size: int
    start: int
    end: int

    def kernels(self, recording: Recording) -> list[str]:
        """Return the names of the activities that touched it, in the order in which they ran."""
        strings = recording.table("strings").to_pydict()
        names = dict(zip(strings["id"], strings["text"], strict=True))
        called = {
            call["correlation"]: call["time"] for call in recording.table("api_calls").to_pylist()
        }
        launches = {
            link["correlation"]
            for link in recording.table("launch_blocks").to_pylist()
            if link["block"] == self.address
            and self.start <= called[link["correlation"]] <= self.end
        }
        activities = sorted(recording.table("activities").to_pylist(), key=itemgetter("time"))
        return [names[row["name"]] for row in activities if row["correlation"] in launches]


def largest_blocks(recording: Recording) -> list[Block]:
    blocks, open_blocks = [], {}
    for row in recording.table("memory_events").to_pylist():
        if row["action"] == "alloc":
            block = Block(row["address"], row["size"], row["time"], recording.duration_ns)
            open_blocks[row["address"]] = block
            blocks.append(block)
        elif row["action"] == "free_completed":
            open_blocks.pop(row["address"]).end = row["time"]
    size = max(block.size for block in blocks)
    return [block for block in blocks if block.size == size]


@pytest.mark.parametrize("name", ["image_pipeline", "kmeans", "conjugate_gradient"])
def test_what_one_iteration_costs(newcomer, opened, name):
    recording = opened(name)

    newcomer.click(newcomer.figure("Iterations"))

    rows = recording.iterations().to_pylist()
    expected = sorted(rows, key=lambda row: row["duration_ns"])[(len(rows) - 1) // 2]
    shown = newcomer.seen(newcomer.page.get_by_role("region", name="Measured"))
    busy = format_share(expected["busy_ns"] / expected["duration_ns"])
    assert shown.startswith(f"Measured: {format_duration(expected['duration_ns'])} from ")
    assert format_bytes(expected["peak_bytes"]) in shown
    assert f"{busy} ({format_duration(expected['busy_ns'])})" in shown
