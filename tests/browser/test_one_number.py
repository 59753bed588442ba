"""Tooltip, right column, tables, Python and commands give one number of any moment."""

import json
import re
from dataclasses import dataclass
from random import Random

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page

import gpuviz
from gpuviz.commands.cli import commands
from gpuviz.quantities import format_bytes
from gpuviz.recording import Recording
from tests.browser.test_report import LEVELS, open_report, open_tab, point

pytestmark = pytest.mark.browser

SEEDS = range(4)
LATE = 1  # after the last event
AFTER = re.compile(r"after event ([\d,]+) of")
MOST = re.compile(r"(?:at most )?(.*) allocated(?:, within .*)?")


def random_program(seed: int) -> Recording:
    """Record a program that allocates and frees at random, now seldom and then at once."""
    random = Random(seed)
    gpu = gpuviz.SimulatedGPU(memory=4 << 30)
    held = []
    with gpuviz.record(device=gpu, host_samples=False) as recorder:
        for _ in range(random.randint(20, 120)):
            gpu.work_on_host(random.choice((1e-6, 1e-4, 2e-3)))
            for _ in range(random.choice((1, 1, 3, 40))):
                if held and random.random() < 0.48:
                    held.pop(random.randrange(len(held)))
                elif random.random() < 0.5:
                    held.append(gpu.empty(random.randint(1, 3 << 20)))
                else:
                    held.append(gpu.empty(random.randint(1, 80 << 10)))
        gpu.work_on_host(5e-3)
    return recorder.recording


@dataclass
class Shown:
    """What a page says about a moment."""

    page: Page

    @property
    def tooltip(self) -> list[str]:
        return self.page.locator(".gpuviz-tooltip").inner_text().splitlines()

    @property
    def event(self) -> int:
        """The event after which the right column shows the memory, counted from 1; 0 before all."""
        # In the right column there is no room for it.
        where = self.page.locator(".gpuviz-readout__where").text_content()
        found = AFTER.search(where)
        return 0 if found is None else int(found[1].replace(",", ""))

    @property
    def is_of_many(self) -> bool:
        return "the most within" in self.page.locator(".gpuviz-readout__where").inner_text()

    def level(self, name: str) -> int:
        title = self.page.locator(f"[data-level={name}]").first.get_attribute("title")
        return int(title.removesuffix(" B").replace(",", ""))

    @property
    def parts(self) -> list[str]:
        """The size and the name of each line in the right column."""
        items = self.page.locator("[data-pane=memory] .gpuviz-legend li")
        texts = [item.replace("\n", ", ").split(", ", 2) for item in items.all_inner_texts()]
        # Below the name may be what holds its blocks.
        return sorted(
            f"{text[0]} {text[2].split(', held by')[0]}" for text in texts if len(text) > 2
        )


SIGNS = {
    "alloc": (1, 0),
    "free_requested": (-1, 0),
    "segment_alloc": (0, 1),
    "segment_free": (0, -1),
}


def held_and_reserved(recording: Recording, event: int) -> tuple[int, int]:
    """Return the allocated and the reserved bytes after an event.

    A snapshot at its time must have them too, unless the next event came at once.
    """
    rows = recording.table("memory_events").to_pylist()
    held = reserved = 0
    for row in rows[:event]:
        of_held, of_reserved = SIGNS.get(row["action"], (0, 0))
        held += of_held * row["size"]
        reserved += of_reserved * row["size"]
    at = rows[event - 1]["time"] if event else -1
    if event == len(rows) or rows[event]["time"] > at:
        segments = recording.memory_snapshot(at=at)
        assert sum(segment["allocated_size"] for segment in segments) == held
        assert sum(segment["total_size"] for segment in segments) == reserved
        assert sum(recording.sites(at=at)["live_bytes"].to_pylist()) == held
    return held, reserved


def window(page: Page) -> tuple[int, int]:
    """Return the time that the charts show, in ns."""
    page.get_by_role("button", name="Measure", exact=True).click()
    panel = page.get_by_role("region", name="Measured")
    shown = tuple(int(panel.get_attribute(f"data-{side}-ns")) for side in ("from", "to"))
    page.keyboard.press("Escape")
    return shown


@pytest.mark.parametrize("seed", SEEDS)
def test_every_place_gives_the_number_of_the_moment(page, tmp_path, seed):
    recording = random_program(seed)
    times = recording.table("memory_events")["time"].to_pylist()
    # A pixel of the whole recording shows several of these.
    at_once = [at for at, later in zip(times, times[9:], strict=False) if later - at < 100_000]
    random = Random(seed)
    page.set_viewport_size({"width": 1280, "height": 800})
    open_report(page, recording, tmp_path)
    open_tab(page, "moment")
    shown, kinds = Shown(page), set()

    for zoom in (0, 0, 5, 5, 12, 12, LATE):
        page.keyboard.press("Escape")
        page.get_by_role("button", name="All", exact=True).click()
        from_ns, to_ns = window(page)
        share = (random.choice(times if zoom else at_once) - from_ns) / (to_ns - from_ns)
        x, _ = point(page, LEVELS, 0.995 if zoom == LATE else share, 0.5)
        _, y = point(page, LEVELS, 0, 0.8)
        page.mouse.move(x, y)
        for _ in range(zoom):
            page.keyboard.press("w")
        page.mouse.move(x - 1, y)
        page.mouse.move(x, y)

        allocated, reserved = held_and_reserved(recording, shown.event)
        kinds.add(shown.is_of_many)
        at, _, most = shown.tooltip[0].partition(": ")
        assert MOST.fullmatch(most)[1] == format_bytes(allocated)
        assert ("at most" in most) == shown.is_of_many
        assert (shown.level("allocated"), shown.level("reserved")) == (allocated, reserved)
        assert at in page.locator(".gpuviz-readout__where").inner_text()
        lines = [re.sub(r"\s+", " ", text).strip(" ◂") for text in shown.tooltip[1:]]
        named = [re.fullmatch(r"([\d.]+ \w+) [\d.]+ % (.*)", each) for each in lines]
        assert sorted(f"{each[1]} {each[2]}" for each in named if each) == shown.parts

        page.mouse.click(x, y)
        page.keyboard.press("Escape")
        text = open_tab(page, "moment").inner_text()
        page.mouse.move(5, 5)
        assert held_and_reserved(recording, shown.event) == (allocated, reserved)
        assert f"{format_bytes(allocated)} allocated of {format_bytes(reserved)}" in text

    assert kinds == {True, False}


@pytest.mark.parametrize("seed", SEEDS)
def test_commands_give_the_numbers_of_the_page(page, tmp_path, seed):
    recording = random_program(seed)
    path = recording.save(tmp_path / "run.gpuviz")
    open_report(page, recording, tmp_path)
    moment = open_tab(page, "moment")

    levels = {}
    for name in ("Peak", "End"):
        moment.get_by_role("button", name=name, exact=True).click()
        levels[name.lower()] = Shown(page).level("allocated")

    facts = json.loads(CliRunner().invoke(commands, ["info", "--json", str(path)]).output)
    (device,) = facts["devices"]
    assert levels == device["allocated_bytes"]
    told = CliRunner().invoke(commands, ["peak", str(path)]).output
    assert format_bytes(levels["peak"]) in told
    snapshot = gpuviz.load(path).memory_snapshot()
    assert sum(each["allocated_size"] for each in snapshot) == levels["end"]


@pytest.mark.usefixtures("search_for_holders")
def test_the_legend_names_what_holds_memory_at_the_end(page, tmp_path):
    recording = random_program(0)
    open_report(page, recording, tmp_path)
    legend = page.locator("[data-pane=memory] .gpuviz-legend")
    at_peak = legend.inner_text()

    panel = open_tab(page, "moment")
    panel.get_by_role("button", name="End", exact=True).click()

    # Simulated GPUs of earlier tests in this process may have arrays in use, too.
    blocks = [block for segment in recording.memory_snapshot() for block in segment["blocks"]]
    own = {block["address"] for block in blocks if block["state"] == "active_allocated"}
    rows = recording.table("held_blocks").to_pylist()
    holders = [row["holder"] for row in rows if row["address"] in own]
    # It is drawn in the next frame.
    said = page.get_by_text(f" and {len(holders) - 1} more", exact=False)
    legend.filter(has=said).wait_for()
    (line,) = [text for text in legend.inner_text().split("\n") if text.startswith("held by")]
    assert line.removeprefix("held by ").rpartition(" and ")[0] in holders
    assert "held by" not in at_peak
