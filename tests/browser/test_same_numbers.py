"""The timeline's numbers in the browser, against the analyses in Python."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

import gpuviz
from gpuviz.analysis.overlap import LaneOverlap
from gpuviz.conclusions.recording_numbers import host_blocked_ns
from gpuviz.data.derived import DICTIONARIES
from gpuviz.quantities import format_bytes, format_duration
from gpuviz.recording import Recording
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import LEVELS, open_page, open_report, open_tab, plot, point

pytestmark = pytest.mark.browser

LANES = 4
RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
CAUSES = DICTIONARIES["idle_gaps", "cause"]
RANKS = Path(__file__).parents[1] / "unit" / "two_gpus" / "data" / "training_late_rank.gpuviz"
RECORDED = ("image_pipeline", "fft_filter", "monte_carlo")


@pytest.fixture
def recording(
    name: str, page: Page, tmp_path: Path, report_of: Callable[[Path], Path]
) -> Recording:
    """Open the report of a recording, and return the recording."""
    if name == "":
        made = make_stream_recording()
        open_report(page, made, tmp_path)
        return made
    path = RECORDINGS / f"{name}.gpuviz"
    open_page(page, report_of(path))
    return gpuviz.load(path)


def lines_about_lane(page: Page, title: str) -> list[str]:
    lane = page.locator(f"[data-lane='{title}']")
    plot(page, LANES).scroll_into_view_if_needed()
    box = plot(page, LANES).bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + float(lane.get_attribute("data-middle-px") or 0))
    lines = page.locator(".gpuviz-tooltip").inner_text().splitlines()
    assert lines[0] == title
    return lines


def causes_of(lane: LaneOverlap) -> list[str]:
    """Return the parts of the idle time as shown in the timeline, largest first."""
    times = {cause: getattr(lane, f"idle_{cause}_ns") for cause in CAUSES}
    return [
        f"{cause.replace('_', ' ')}: {format_duration(ns)}"
        for cause, ns in sorted(times.items(), key=lambda each: -each[1])
        if ns > 0
    ]


@pytest.mark.parametrize("name", ["", *RECORDED])
def test_the_causes_of_idle_gaps_are_those_of_the_overlap(page, recording):
    titles = {row["id"]: row["name"] for row in recording.table("streams").to_pylist()}
    streams = [lane for lane in recording.overlap().streams if titles[lane.stream] != ""]

    for lane in streams:
        lines = lines_about_lane(page, titles[lane.stream])
        idle = next(number for number, line in enumerate(lines) if line.startswith("idle for"))
        assert lines[idle] == f"idle for {format_duration(lane.idle_ns)} of it"
        *causes, pinning = lines[idle + 1 :]
        assert [line.split(" (")[0] for line in causes] == causes_of(lane)
        assert pinning == "Click or P: pin to the top, or unpin"


@pytest.mark.parametrize("name", ["", *RECORDED])
@pytest.mark.parametrize("shares", [(0.17, 0.4), (0.31, 0.93)])
def test_a_measured_window_has_the_numbers_of_the_recording_cut_to_it(page, recording, shares):
    panel = page.get_by_role("region", name="Measured")

    page.mouse.move(*point(page, LEVELS, shares[0], 0.5))
    page.mouse.down()
    page.mouse.move(*point(page, LEVELS, shares[1], 0.5), steps=3)
    page.mouse.up()

    start, end = (int(panel.get_attribute(f"data-{side}-ns") or 0) for side in ("from", "to"))
    cut = recording.window(start, end)
    allocations = [
        row["size"]
        for row in cut.table("memory_events").slice(cut.manifest.initial_events).to_pylist()
        if row["action"] == "alloc"
    ]
    (lane,) = recording.overlap(0, start, end).devices
    text = panel.inner_text()
    assert f"peak allocated\n{format_bytes(cut.peak(0).bytes)}" in text
    assert f"{format_bytes(sum(allocations))} in {len(allocations):,} blocks" in text
    assert f"({format_duration(lane.busy_ns)})" in text
    assert f"({format_duration(lane.kernel_ns)})" in text
    if lane.copy_ns > 0:
        percent = 100 * lane.kernel_copy_overlap
        share = f"{percent:.1f}" if 0 < percent < 10 else f"{percent:.0f}"
        assert f"{share} % of {format_duration(lane.copy_ns)} of copying" in text


@pytest.mark.parametrize("device", [0, 1])
def test_the_waits_of_a_rank_are_those_of_its_headline(page, tmp_path, device):
    recording = gpuviz.load(RANKS)
    open_report(page, recording, tmp_path)

    page.get_by_label("Device", exact=True).select_option(str(device))
    totals = open_tab(page, "waits").locator("tbody tr td:nth-child(2)")
    waited = totals.evaluate_all("cells => cells.map((cell) => Number(cell.dataset.sort))")

    assert sum(waited) == host_blocked_ns(recording, device)
