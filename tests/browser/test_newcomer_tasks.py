"""Tasks of a newcomer to a report or a dashboard: at most three actions solve each.

The programs use CuPy or PyTorch.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

import gpuviz
from gpuviz.analysis.device_summary import summarize
from gpuviz.quantities import format_bytes, format_duration, format_share
from gpuviz.recording import Recording
from tests.browser.test_newcomer import WORDS, Newcomer
from tests.browser.test_report import open_page, plot
from tests.browser.widget_page import kernel, show_widget

pytestmark = pytest.mark.browser

COMMANDS = Path(gpuviz.__file__).parent / "commands"
CUPY = COMMANDS / "recordings" / "image_pipeline.gpuviz"
STREAMS = COMMANDS / "recordings" / "fft_filter.gpuviz"
TORCH = COMMANDS / "training" / "layers.gpuviz"
ALL = re.compile(r"^all \d+$")
PROGRAMS = pytest.mark.parametrize("path", [CUPY, TORCH], ids=["CuPy", "PyTorch"])

Opened = Callable[[Path], Recording]


@pytest.fixture
def newcomer(page: Page) -> Newcomer:
    page.set_viewport_size({"width": 1440, "height": 1000})
    return Newcomer(page)


@pytest.fixture(params=["report", "dashboard"])
def opened(request, newcomer: Newcomer, report_of, monkeypatch) -> Opened:
    """Open a recording for the newcomer, either way."""
    shown = []

    def open_one(path: Path) -> Recording:
        recording = gpuviz.load(path)
        if request.param == "report":
            open_page(newcomer.page, report_of(path))
            return recording
        with kernel(monkeypatch):
            shown.append(gpuviz.dashboard(recording))
        show_widget(newcomer.page, shown[0])
        newcomer.page.locator(".gpuviz-found").wait_for()
        newcomer.page.locator("[data-pane=streams] .gpuviz-plot").wait_for()
        return recording

    yield open_one
    for each in shown:
        each.close()


def tab(newcomer: Newcomer, name: str) -> None:
    """Open a tab of the drawer, as one action."""
    tabs = newcomer.page.locator(f".gpuviz-drawer__tab[data-tab={name}]")
    tabs.wait_for()
    newcomer.click(tabs)


@PROGRAMS
def test_what_the_peak_is_made_of_and_which_line(newcomer, opened, path):
    recording = opened(path)

    legend = newcomer.page.locator("[data-pane=memory] .gpuviz-legend li").first

    (expected,) = recording.lines(0).slice(0, 1).to_pylist()
    share = format_share(expected["live_bytes"] / recording.peak(0).bytes)
    line = expected["site"].rpartition(":")[2].strip(")")
    assert f"{format_bytes(expected['live_bytes'])}, {share}" in newcomer.seen(legend)
    assert f":{line}" in legend.inner_text()


@PROGRAMS
def test_why_the_gpu_is_idle_between_two_times(newcomer, opened, path):
    recording = opened(path)
    streams = newcomer.page.locator("[data-pane=streams] .gpuviz-plot").bounding_box()

    y = streams["y"] + 30
    newcomer.drag((streams["x"] + 300, y), (streams["x"] + 640, y))

    measured = newcomer.page.get_by_role("region", name="Measured")
    text = newcomer.seen(measured)
    span = [int(measured.get_attribute(f"data-{side}-ns")) for side in ("from", "to")]
    (device,) = recording.overlap(0, *span).devices
    causes = {cause: getattr(device, f"idle_{cause}_ns") for cause in WORDS}
    most = max(causes, key=causes.get)
    assert f"GPU idle\n{format_duration(causes[most])} {WORDS[most]}" in text


@PROGRAMS
def test_whether_memory_is_fragmented_and_what_can_be_done(newcomer, opened, path, request):
    recording = opened(path)
    found = recording.fragmentation("peak", 0)

    tab(newcomer, "moment")
    shown = newcomer.seen(newcomer.panel("moment"))

    assert f"{format_bytes(found.free)} free in segments" in shown
    assert f"the largest piece {format_bytes(found.largest_free)}" in shown
    assert "free segment (cached): empty_cache releases it" in shown
    if "report" in request.node.callspec.id:
        tab(newcomer, "what-if")
        assert "expandable_segments:True" in newcomer.seen(newcomer.panel("what-if"))


@PROGRAMS
def test_where_free_memory_is(newcomer, opened, path):
    recording = opened(path)
    found = recording.fragmentation("peak", 0)

    tab(newcomer, "fragmentation")
    shown = newcomer.seen(newcomer.panel("fragmentation"))

    assert (
        f"{format_bytes(found.free)} of {format_bytes(found.reserved)} reserved are free" in shown
    )
    assert f"The largest free block has {format_bytes(found.largest_free)}" in shown
    # Over time, in line with the tracks.
    over_time = newcomer.panel("fragmentation").locator(".gpuviz-plot").bounding_box()
    track = newcomer.page.locator("[data-pane=streams] .gpuviz-plot").bounding_box()
    assert (over_time["x"], over_time["width"]) == (track["x"], track["width"])


@PROGRAMS
def test_which_array_is_still_held(newcomer, opened, path):
    recording = opened(path)
    held = [row for row in recording.sites("line", at=None).to_pylist() if row["live_bytes"]]
    total = sum(row["live_bytes"] for row in held)

    tab(newcomer, "moment")
    newcomer.click(newcomer.panel("moment").get_by_role("button", name="End", exact=True))

    assert f"{format_bytes(total)} allocated of" in newcomer.seen(newcomer.panel("moment"))
    legend = newcomer.page.locator("[data-pane=memory] .gpuviz-legend").first.inner_text()
    assert (held == []) == (" MiB, " not in legend)
    for row in held[:1]:
        line = row["site"].rpartition(":")[2].strip(")")
        (variable, *_) = row["source"].split()
        assert f":{line} {variable}" in legend
        assert format_bytes(row["live_bytes"]) in legend


def test_what_other_settings_of_the_allocator_save(newcomer, opened):
    recording = opened(CUPY)

    tab(newcomer, "what-if")

    seen = newcomer.seen(newcomer.panel("what-if"))
    reserved = format_bytes(summarize(recording, 0).reserved_peak)
    assert re.search(rf"expandable_segments:True reserves \S+ MiB instead of {reserved}:", seen)


def test_whether_two_streams_overlap_and_why_not(newcomer, opened):
    recording = opened(STREAMS)
    (expected,) = [each for each in recording.findings() if each.rule == "R44"]
    title = expected.title.replace("`", "")
    lanes = newcomer.page.locator("[data-lane]").evaluate_all("all => all.map(e => e.dataset.lane)")

    more = newcomer.page.get_by_text("more finding").locator("visible=true")
    newcomer.click(more.or_(newcomer.page.get_by_role("button", name=ALL)).first)

    assert {"even chunks", "odd chunks"} <= set(lanes)
    said = ":is(.gpuviz-finding, .gpuviz-found summary)"
    found = newcomer.page.locator(said, has_text=title).locator("visible=true").first
    found.scroll_into_view_if_needed()
    assert "never work at the same time" in newcomer.seen(found)


def test_that_one_stream_has_all_the_work(newcomer, opened):
    recording = opened(TORCH)
    used = {row["stream"] for row in recording.table("activities").to_pylist()}

    lanes = newcomer.page.locator("[data-lane*=stream]")

    assert len(used) == 1
    assert lanes.evaluate_all("all => all.map(e => e.dataset.lane)") == ["default stream"]
    assert plot(newcomer.page, 0).is_visible()
