"""The streams in the report, in a real browser."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page

import gpuviz
from gpuviz.recording import Recording
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import LEVELS, MAP, OVERVIEW, open_report, point
from tests.unit.report.test_page import HOSTILE

pytestmark = pytest.mark.browser

LANES = 4
BY = " \N{MULTIPLICATION SIGN} "


@pytest.fixture
def streams() -> Recording:
    return make_stream_recording()


def hover(page: Page, recording: Recording, lane: str, time_ns: int) -> str:
    """Return the tooltip at a time in a lane."""
    place = page.locator(f"[data-lane='{lane}']")
    x, _ = point(page, LANES, time_ns / recording.duration_ns, 0.5)
    box = page.locator(".gpuviz-plot").nth(LANES).bounding_box()
    middle = float(place.get_attribute("data-middle-px") or 0)
    page.mouse.move(x, box["y"] + middle)
    page.locator(".gpuviz-tooltip").wait_for()
    return page.locator(".gpuviz-tooltip").inner_text()


def activity(recording: Recording, stream: int, row: int = 0) -> dict[str, int]:
    rows = recording.table("activities").to_pylist()
    return [found for found in rows if found["stream"] == stream][row]


def middle(activity: dict[str, int]) -> int:
    return (activity["time"] + activity["end"]) // 2


def overlap_us(recording: Recording) -> tuple[int, int]:
    """Return the time of host copies, and that while kernels ran; all times are whole µs."""
    running: dict[str, set[int]] = {"kernel": set(), "memcpy": set(), "memset": set()}
    for row in recording.table("activities").to_pylist():
        if row["copy_kind"] != "device_to_device":
            running[row["kind"]] |= set(range(row["time"] // 1000, row["end"] // 1000))
    return len(running["memcpy"]), len(running["memcpy"] & running["kernel"])


def test_each_stream_and_thread_has_a_lane_with_its_name(page, streams, tmp_path):
    open_report(page, streams, tmp_path)

    titles = [lane.get_attribute("data-lane") for lane in page.locator("[data-lane]").all()]

    assert titles == [
        "all streams idle",
        "default stream",
        "upload",
        "compute pipeline.py",
        "stream 0x55d0c8a00004",
        "MainThread",
    ]


def test_pointing_at_a_kernel_tells_how_and_where_it_was_launched(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    kernel = activity(streams, 3)

    text = hover(page, streams, "compute pipeline.py", middle(kernel))

    assert "void smooth<float, 4>(float const*, float*, int)" in text
    assert "Kernel for 40.0 µs" in text
    assert f"grid 4096{BY}1{BY}1, block 256{BY}1{BY}1: 1,048,576 threads" in text
    assert "launched: pipeline.py:12 work" in text


def test_pointing_at_a_copy_tells_its_rate(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    copy = activity(streams, 4)

    text = hover(page, streams, "stream 0x55d0c8a00004", middle(copy))

    assert "Copy device to host for 340 µs" in text
    assert "16.0 MiB (16,777,216 B) from device to pageable memory, 46.0 GiB/s" in text


def test_hostile_kernel_names_are_shown_and_do_not_run(page, tmp_path: Path):
    recording = make_stream_recording(HOSTILE)
    open_report(page, recording, tmp_path)
    tiny = activity(recording, 1, 20)

    text = hover(page, recording, "default stream", middle(tiny))

    assert f"{HOSTILE} tiny".replace("\n", " ") in text.replace("\n", " ")
    assert page.locator("img").count() == 0


def test_a_lane_is_pinned_above_the_others_and_unpinned(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    lanes = page.locator("[data-lane]")
    name_of = "all => all.map(each => each.dataset.lane)"
    before = lanes.evaluate_all(name_of)
    moment = page.locator(".gpuviz-moment").text_content()
    point(page, LANES, 0.5, 0.5)
    plot = page.locator(".gpuviz-plot").nth(LANES)
    box = plot.bounding_box()
    last = float(lanes.last.get_attribute("data-middle-px") or 0)

    page.mouse.click(box["x"] + 40, box["y"] + last)
    pinned = lanes.evaluate_all(name_of)
    plot.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("p")

    assert pinned == [before[-1], *before[:-1]]
    assert lanes.evaluate_all(name_of) == before
    assert page.locator(".gpuviz-moment").text_content() == moment


def test_pointing_at_the_name_of_a_lane_tells_how_busy_it_was(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    lane = page.locator("[data-lane='upload']")
    point(page, LANES, 0.5, 0.5)
    box = page.locator(".gpuviz-plot").nth(LANES).bounding_box()

    page.mouse.move(box["x"] + 40, box["y"] + float(lane.get_attribute("data-middle-px") or 0))

    busy = 100 * 6 * 300_000 / streams.duration_ns
    text = page.locator(".gpuviz-tooltip").inner_text().splitlines()
    assert text[:3] == ["upload", "6 spans shown", f"busy for {busy:.1f} % of the time shown"]


def test_a_device_without_allocator_events_shows_its_streams(page, streams, tmp_path):
    tables = {name: table for name, table in streams.tables.items() if name != "memory_events"}
    manifest = replace(streams.manifest, events=0, initial_events=0)
    open_report(page, Recording(tables, manifest), tmp_path)

    tracks = page.locator(".gpuviz-track__title:visible").all_inner_texts()
    tabs = page.get_by_role("tab").locator("visible=true").all_inner_texts()

    assert tracks == ["Streams"]
    assert tabs[:6] == ["Selection", "Lines", "Call stacks", "Kernels", "Copies", "Waits"]
    assert page.locator("[data-lane]").count() == 6


def test_a_selected_kernel_shows_its_blocks_and_each_of_them_its_launches(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    selected = page.get_by_role("region", name="Selected")
    hover(page, streams, "compute pipeline.py", middle(activity(streams, 3)))

    page.mouse.down()
    page.mouse.up()
    kernel = selected.inner_text()
    selected.get_by_role("button", name="16.0 MiB").first.click()
    block = selected.inner_text()

    assert "Blocks that it touched: 2" in kernel
    assert "Block of 16.0 MiB (16,777,216 B)" in block
    assert "requested\n16.0 MiB (16,777,116 B), rounded up by 100 B" in block
    assert "segment\n80.0 MiB (83,886,080 B) at 0x7f0000000000" in block
    assert "allocated at 24.0 µs: pipeline.py:12 work" in block
    assert "freed at " in block
    assert "Launches that touched it: 7" in block


def test_a_click_beside_everything_selects_nothing(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    selected = page.get_by_role("region", name="Selected")

    page.mouse.click(*point(page, MAP, 0.2, 0.5))
    before = selected.inner_text()
    page.mouse.click(*point(page, MAP, 0.2, 0.15))

    assert before.startswith("Block of 16.0 MiB")
    assert selected.inner_text().startswith("Nothing is selected.")


def test_a_selected_cell_shows_what_it_launched(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    selected = page.get_by_role("region", name="Selected")
    lane = page.locator("[data-lane='MainThread']")
    x, _ = point(page, LANES, 600_000 / streams.duration_ns, 0.5)
    box = page.locator(".gpuviz-plot").nth(LANES).bounding_box()
    in_first_row = box["y"] + float(lane.get_attribute("data-middle-px") or 0) - 14

    page.mouse.click(x, in_first_row)

    assert selected.inner_text().startswith("In [1]")
    assert "Launches in it: 69" in selected.inner_text()


def test_a_search_finds_names_lines_and_addresses_and_selects_them(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    selected = page.get_by_role("region", name="Selected")
    shown = page.locator(".gpuviz-controls__text")
    page.keyboard.press("/")

    page.keyboard.type("smooth")
    hits = page.locator(".gpuviz-search__hit")
    kernels = hits.first.inner_text()
    lines = hits.last.inner_text()
    page.keyboard.press("Enter")
    kernel = selected.inner_text()
    page.get_by_role("searchbox").fill("0x7f0000000010")
    hits.first.click()

    assert kernels.startswith("smooth")
    assert "18 times, 1.04 ms in all (41 % of kernels), pipeline.py:12 work" in kernels
    assert lines.startswith("pipeline.py:12 work")
    assert kernel.startswith("void smooth<float, 4>")
    assert selected.inner_text().startswith("Block of 16.0 MiB")
    assert shown.inner_text() != "all 5.49 ms shown"


def test_a_drag_selects_a_span(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    measured = page.get_by_role("region", name="Measured")
    hidden = measured.is_hidden()

    page.mouse.move(*point(page, LEVELS, 0.0001, 0.5))
    page.mouse.down()
    page.mouse.move(*point(page, LEVELS, 0.9999, 0.5), steps=3)
    page.mouse.up()
    text = measured.inner_text()
    page.keyboard.press("Escape")

    assert hidden
    assert text.startswith("Measured: 5.49 ms from ")
    assert "peak allocated\n32.0 MiB\nlowest\n0 B\nmean\n" in text
    assert "allocated in it\n192 MiB in 12 blocks" in text
    copies, overlap = overlap_us(streams)
    assert f"copies under kernels\n{100 * overlap / copies:.0f} % of {copies / 1000:.2f} ms" in text
    assert measured.is_hidden()
    assert page.locator(".gpuviz-controls__text").inner_text() == "all 5.49 ms shown"


def test_keys_zoom_move_and_help(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    shown = page.locator(".gpuviz-controls__text")

    texts = []
    for key in ("w", "d", "a", "s"):
        page.keyboard.press(key)
        texts.append(shown.inner_text())
    page.keyboard.press("?")
    opened = page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")

    assert texts[0].endswith("of 5.49 ms shown")
    assert texts[1] not in {texts[0], texts[3]}
    assert texts[2] == texts[0]
    assert texts[3] == "all 5.49 ms shown"
    assert "Shift and drag" in opened
    assert page.get_by_role("dialog").count() == 0


def test_the_overview_moves_the_part_that_is_shown(page, streams, tmp_path):
    open_report(page, streams, tmp_path)
    shown = page.locator(".gpuviz-controls__text")
    for _ in range(4):
        page.keyboard.press("w")

    page.mouse.click(*point(page, OVERVIEW, 0.9, 0.5))
    right = shown.inner_text()
    page.mouse.click(*point(page, OVERVIEW, 0.1, 0.5))

    assert right.endswith("to 5.490 ms of 5.49 ms shown")
    assert shown.inner_text().startswith("0 ns to ")


CLEAR = """(lane) => {
  const canvas = document.querySelector("[data-pane=streams] .gpuviz-plot__canvas--overlay");
  const row = Math.round(document.querySelector(`[data-lane='${lane}']`).dataset.middlePx);
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(200, row, 600, 1);
  return data.filter((value, at) => at % 4 === 3 && value === 0).length / 600;
}"""


def test_a_finding_lights_up_the_idle_time_that_it_is_about_and_dims_the_rest(page, tmp_path):
    path = Path(gpuviz.__file__).parent / "commands" / "recordings" / "fft_filter.gpuviz"
    open_report(page, gpuviz.load(path), tmp_path)
    lanes = ("all streams idle", "odd chunks")

    before = [page.evaluate(CLEAR, lane) for lane in lanes]
    page.get_by_role("button", name="show", exact=True).first.click()
    page.wait_for_function(f"(lane) => ({CLEAR})(lane) < 0.5", arg="odd chunks")
    idle, odd = (page.evaluate(CLEAR, lane) for lane in lanes)
    page.keyboard.press("Escape")
    page.wait_for_function(f"(lane) => ({CLEAR})(lane) > 0.9", arg="odd chunks")

    assert min(before) > 0.9
    assert idle > 0.6
    assert odd < 0.05
