"""The report in a real browser, opened from disk with the network off."""

import csv
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import gpuviz
from gpuviz.formats.gpuviz import BATCH_ROWS
from gpuviz.quantities import format_duration
from gpuviz.recording import Recording
from gpuviz.report.page import write_report
from tests.benchmarks._large_recording import recorded
from tests.patience import PATIENCE_S
from tests.unit.report.recordings import MIB, SEGMENT, Events, make_recording, small_program
from tests.unit.report.test_page import HOSTILE

pytestmark = pytest.mark.browser

COMMANDS = Path(gpuviz.__file__).parent / "commands"
TRAINING = COMMANDS / "training" / "layers.gpuviz"
KMEANS = COMMANDS / "recordings" / "kmeans.gpuviz"

OVERVIEW, LEVELS, MAP, MOMENT = 0, 2, 3, 4
LEFT_PX, RIGHT_PX = 112, 16


def open_report(page: Page, recording: Recording, folder: Path) -> None:
    open_page(page, write_report(recording, folder / "run.html"))


def open_page(page: Page, path: Path) -> None:
    """Open a report, and wait until it has read its recording."""
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")


def open_tab(page: Page, name: str) -> Locator:
    """Open a tab of the drawer, and return its panel."""
    tab = page.locator(f"[role=tab][data-tab='{name}']:visible")
    more = page.get_by_label("More details").locator("visible=true")
    tab.or_(more).first.wait_for()
    if tab.count() > 0:
        tab.click()
    else:
        more.select_option(name)
    return page.locator(f"[data-panel='{name}']:visible")


def plot(page: Page, index: int) -> Locator:
    """Return a plot by its number, without the row of iterations that only some pages have."""
    return page.locator(".gpuviz-plot:not([aria-label^=Iterations])").nth(index)


def point(page: Page, index: int, time_share: float, height_share: float) -> tuple[float, float]:
    """Return the position in the window of a point given as shares of a chart's size."""
    plot(page, index).scroll_into_view_if_needed()
    box = plot(page, index).bounding_box()
    width = box["width"] - LEFT_PX - RIGHT_PX
    return box["x"] + LEFT_PX + time_share * width, box["y"] + height_share * box["height"]


@contextmanager
def serving(start: bytes, rest: threading.Event, end: bytes) -> Iterator[str]:
    """Serve a page whose end waits for an event; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(start)
            self.wfile.flush()
            rest.wait(PATIENCE_S)
            self.wfile.write(end)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            rest.set()
            server.shutdown()


def level(page: Page, name: str) -> str:
    return page.locator(f"[data-level={name}]").get_attribute("title") or ""


def test_the_page_opens_and_shows_the_peak(page, recording, tmp_path):
    open_report(page, recording, tmp_path)

    assert page.locator(".gpuviz-plot").count() == 5
    assert f"{recording.peak(0).bytes:,} B" in level(page, "allocated")
    assert f"{recording.peak(0).reserved_bytes:,} B" in level(page, "reserved")
    assert page.locator(".gpuviz-moment").inner_text().startswith("Peak of allocated memory, 200")
    assert page.locator("#gpuviz-notice").is_hidden()


def test_the_last_levels_are_those_of_the_statistics(page, recording, tmp_path):
    open_report(page, recording, tmp_path)
    stats = recording.memory_stats(0)

    open_tab(page, "moment").get_by_role("button", name="End", exact=True).click()

    for name in ("allocated", "active", "reserved", "requested"):
        assert f"{stats[f'{name}_bytes.all.current']:,} B" in level(page, name)


def test_pointing_at_the_levels_reads_out_the_values_there(page, recording, tmp_path):
    open_report(page, recording, tmp_path)

    page.mouse.move(*point(page, LEVELS, 350 / 600, 0.5))

    assert "At the cursor" in page.locator(".gpuviz-readout__where").inner_text()
    assert f"{12 * MIB:,} B" in level(page, "active")
    assert f"{6 * MIB:,} B" in level(page, "allocated")


def test_pointing_at_a_band_lists_what_is_allocated_and_a_click_selects_its_block(
    page, recording, tmp_path
):
    open_report(page, recording, tmp_path)
    tooltip = page.locator(".gpuviz-tooltip")

    for height in range(30, 100, 4):
        page.mouse.move(*point(page, LEVELS, 250 / 600, height / 100))
        if "main ◂" in tooltip.inner_text():
            break
    lines = [re.sub(r"\s+", " ", line).strip() for line in tooltip.inner_text().splitlines()]
    page.mouse.click(*point(page, LEVELS, 250 / 600, height / 100))

    assert re.fullmatch(r"2(49|50)\.\d µs: 12\.0 MiB allocated", lines[0])
    assert lines[1:] == [
        "6.00 MiB 50 % train.py:12 x",
        "4.00 MiB 33 % main.py:34 main ◂",
        "2.00 MiB 17 % no call stack",
        "main.py:34 main · 4.00 MiB: click to select",
    ]
    assert "Block of 4.00 MiB" in page.locator(".gpuviz-selected").inner_text()


def test_pointing_at_a_block_names_its_lines(page, recording, tmp_path):
    open_report(page, recording, tmp_path)
    tooltip = page.locator(".gpuviz-tooltip")

    page.mouse.move(*point(page, MAP, 200 / 600, 0.65))

    tooltip.wait_for()
    text = tooltip.inner_text()
    assert "Block of 6.00 MiB (6,291,456 B)" in text
    assert "requested: 6.00 MiB (6,291,356 B)" in text
    assert "allocated at 100 µs: train.py:12 train.py" in text
    assert "freed at 300 µs: main.py:34 main" in text
    assert "free pending for 200 µs" in text


# In a process of its own: among a million objects, as other tests leave, no name is looked for.
NAMED = """
import sys
import gpuviz

def train(gpu):
    batches = [gpu.empty(20 << 20)]
    copies = gpu.Stream(non_blocking=True)
    with copies:
        gpu.launch("fill", writes=batches, duration=1e-3)
    gpu.synchronize()
    recorder.stop().save(sys.argv[1])

recorder = gpuviz.record(device=(gpu := gpuviz.SimulatedGPU(real_time=False)))
recorder.start()
train(gpu)
"""


def test_a_block_that_is_not_freed_and_a_stream_have_the_names_of_their_variables(page, tmp_path):
    path, program = tmp_path / "named.gpuviz", tmp_path / "program.py"
    program.write_text(NAMED)
    subprocess.run([sys.executable, program, path], check=True)
    open_report(page, gpuviz.load(path), tmp_path)

    page.mouse.click(*point(page, MAP, 0.9, 0.5))

    selected = page.locator(".gpuviz-selected").inner_text()
    assert "held by\nbatches[0] in train()" in selected
    lanes = page.locator("[data-lane]").evaluate_all("all => all.map(e => e.dataset.lane)")
    assert "copies" in lanes


def test_a_click_moves_the_moment_and_a_double_click_does_not(page, recording, tmp_path):
    open_report(page, recording, tmp_path)
    moment = page.locator(".gpuviz-moment")

    page.mouse.click(*point(page, LEVELS, 350 / 600, 0.5))
    clicked = moment.inner_text()
    page.mouse.dblclick(*point(page, LEVELS, 150 / 600, 0.5))

    assert "after event 3 of 5" in clicked
    assert "6.00 MiB allocated of 20.0 MiB reserved; 3 blocks in 1 segment" in clicked
    assert moment.inner_text() == clicked


def drag(page: Page, from_share: float, to_share: float, key: str = "") -> str:
    """Drag in the memory track, with a key held, and return what is shown then."""
    if key:
        page.keyboard.down(key)
    page.mouse.move(*point(page, LEVELS, from_share, 0.5))
    page.mouse.down()
    page.mouse.move(*point(page, LEVELS, to_share, 0.5), steps=4)
    page.mouse.up()
    if key:
        page.keyboard.up(key)
    return page.locator(".gpuviz-controls__text").inner_text()


def test_a_drag_with_ctrl_zooms_one_with_shift_moves_and_a_double_click_shows_all(
    page, recording, tmp_path
):
    open_report(page, recording, tmp_path)

    zoomed = drag(page, 0.25, 0.5, "Control")
    moved = drag(page, 0.75, 0.25, "Shift")
    page.mouse.dblclick(*point(page, MAP, 0.5, 0.5))

    assert re.fullmatch(r"(149|150)\.\d µs to (299|300)\.\d µs of 600 µs shown", zoomed)
    assert re.fullmatch(r"22[45]\.\d µs to 37[45]\.\d µs of 600 µs shown", moved)
    assert page.locator(".gpuviz-controls__text").inner_text() == "all 600 µs shown"


def test_the_charts_work_from_the_keyboard(page, recording, tmp_path):
    open_report(page, recording, tmp_path)

    plot(page, LEVELS).focus()
    for key in ("+", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    zoomed = page.locator(".gpuviz-controls__text").inner_text()
    page.keyboard.press("0")
    open_tab(page, "moment")
    plot(page, MOMENT).focus()
    page.keyboard.press("ArrowRight")

    assert zoomed.endswith("of 600 µs shown")
    assert page.locator(".gpuviz-controls__text").inner_text() == "all 600 µs shown"
    assert "after event 3 of 5" in page.locator(".gpuviz-moment").inner_text()
    assert "Block of 2.00 MiB" in page.locator(".gpuviz-tooltip").inner_text()


def test_blocks_can_be_coloured_by_stream(page, recording, tmp_path):
    open_report(page, recording, tmp_path)
    entries = page.locator(".gpuviz-legend").first.locator("li")
    by_line = [entry.get_attribute("title") for entry in entries.all()]
    shares = entries.all_inner_texts()

    page.get_by_label("Colour by").select_option("stream")

    assert by_line == [
        "train.py:12 x = train.py: 6.00 MiB at the peak",
        "main.py:34 run(): 4.00 MiB at the peak",
        "no call stack: 2.00 MiB at the peak",
    ]
    assert [" ".join(text.split()) for text in shares] == [
        "6.00 MiB, 50 % train.py:12 x",
        "4.00 MiB, 33 % main.py:34 main",
        "2.00 MiB, 17 % no call stack",
    ]
    assert entries.first.get_attribute("title") == "train.py: 12.0 MiB at the peak"


def test_blocks_can_be_coloured_by_function(page, recording, tmp_path):
    open_report(page, recording, tmp_path)
    entries = page.locator(".gpuviz-legend").first.locator("li")

    page.get_by_label("Colour by").select_option("function")

    frames = {row["filename"]: row["name"] for row in recording.table("frames").to_pylist()}
    assert [entry.get_attribute("title") for entry in entries.all()] == [
        f"{frames['train.py']} (train.py): 6.00 MiB at the peak",
        f"{frames['main.py']} (main.py): 4.00 MiB at the peak",
        "no call stack: 2.00 MiB at the peak",
    ]


def test_blocks_can_be_coloured_by_the_innermost_call(page, report_of):
    recording = gpuviz.load(TRAINING)
    open_page(page, report_of(TRAINING))
    entries = page.locator(".gpuviz-legend").first.locator("li")

    page.get_by_label("Colour by").select_option("call")

    frames = {row["id"]: row for row in recording.table("frames").to_pylist()}
    called = {
        f"{frame['name']} ({'/'.join(frame['filename'].split('/')[-2:])}:{frame['line']})"
        for stack in recording.table("stacks").to_pylist()
        for frame in (frames[each] for each in stack["frames"][:1])
    }
    names = [title.rpartition(": ")[0] for title in map(title_of, entries.all())]
    assert {*names} <= called | {"no call stack", "other calls"}
    assert "Linear.forward (modules/linear.py:134)" in names


def test_a_training_program_has_modules_phases_and_categories(page, report_of):
    recording = gpuviz.load(TRAINING)
    open_page(page, report_of(TRAINING))
    entries = page.locator(".gpuviz-legend").first.locator("li")

    names = {}
    for by in ("module", "phase", "category"):
        page.get_by_label("Colour by").select_option(by)
        names[by] = {title.partition(":")[0] for title in map(title_of, entries.all())}
    modules = open_tab(page, "modules").locator("tbody tr td:first-child").all_inner_texts()
    lines = open_tab(page, "lines").locator("tbody td:first-child").all_inner_texts()

    assert {"blocks.0.up", "head"} <= names["module"]
    assert names["phase"] == {"forward", "backward", "optimizer", "other"}
    assert {"activation", "gradient", "parameter", "optimizer state"} <= names["category"]
    assert modules == [
        row["module"] or "no module, or unknown" for row in recording.modules(0).to_pylist()
    ]
    assert any(line.startswith("backward of record_training.py:") for line in lines)


def test_legends_name_lines_by_their_numbers_where_all_are_in_one_file(page, report_of):
    open_page(page, report_of(TRAINING))

    names = page.locator("[data-pane=memory] .gpuviz-legend").first.inner_text()

    assert ":25 h\n" in names
    assert ":41 backward Layers.forward\n" in names
    assert "record_training" not in names


WRITTEN = """
window.written = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
  window.written.push({ text, panel: this.canvas.closest("[data-panel]")?.dataset.panel });
  fillText.call(this, text, ...at);
};
"""


def test_blocks_at_a_moment_are_named_by_their_lines(page, report_of):
    recording = gpuviz.load(KMEANS)
    page.add_init_script(WRITTEN)
    open_page(page, report_of(KMEANS))
    open_tab(page, "moment")

    wanted = {":76 distances", ":75 differences", ":48 points"}
    named = "written.flatMap(({ panel, text }) => panel === 'moment' ? [text] : [])"
    page.wait_for_function(f"all => all.every(name => {named}.includes(name))", arg=list(wanted))
    kept = {row["source"].split()[0] for row in recording.sites("line").to_pylist()[:3]}
    assert {name.partition(" ")[2] for name in wanted} == kept


def test_the_blocks_at_the_peak_are_copied_as_csv(page, report_of):
    recording = gpuviz.load(KMEANS)
    open_page(page, report_of(KMEANS))
    page.context.grant_permissions(["clipboard-read"])

    panel = open_tab(page, "moment")
    panel.get_by_role("button", name="Peak", exact=True).click()
    panel.get_by_role("button", name="Copy blocks").click()
    text = page.evaluate("navigator.clipboard.readText()")

    rows = list(csv.DictReader(text.splitlines()))
    blocks = [
        (hex(block["address"]), str(block["size"]), str(block["requested_size"]))
        for segment in recording.memory_snapshot(at="peak")
        for block in segment["blocks"]
        if block["state"].startswith("active")
    ]
    shown = [(row["Address"], row["Size (bytes)"], row["Requested (bytes)"]) for row in rows]
    assert shown == sorted(blocks, key=lambda block: int(block[0], 16))
    assert any("kmeans.py:" in row["Line"] for row in rows)


def test_modules_are_a_flame_graph_of_what_they_hold_and_launch(page, report_of):
    recording = gpuviz.load(TRAINING)
    open_page(page, report_of(TRAINING))
    panel = open_tab(page, "call-stacks")
    calls = panel.locator(".gpuviz-icicle__call")

    panel.get_by_label("Direction").select_option("by module")
    root = title_of_call(calls.first)
    head = title_of_call(calls.filter(has_text="head"))
    panel.get_by_label("What", exact=True).select_option("in kernels of the backward pass")
    backward = title_of_call(calls.first)

    modules = {row["module"]: row for row in recording.modules(0).to_pylist()}
    assert f"({recording.peak().bytes:,} B) allocated at the peak" in root
    assert f"({modules['head']['peak_bytes']:,} B)" in head
    total_ns = sum(row["backward_ns"] for row in modules.values())
    assert f"{format_duration(total_ns)} in kernels of the backward pass" in backward


def title_of_call(call: Locator) -> str:
    return call.get_attribute("aria-label") or ""


def test_passes_and_steps_are_ranges_of_the_thread_that_trains(page, report_of):
    open_page(page, report_of(TRAINING))

    kinds = page.locator(".gpuviz-legend li").all_inner_texts()

    assert {"forward pass", "backward pass", "optimizer step"} <= {*kinds}


def title_of(entry: Locator) -> str:
    return entry.get_attribute("title") or ""


def test_the_table_sorts_by_any_column(page, recording, tmp_path):
    open_report(page, recording, tmp_path)
    places = page.locator("[data-panel=lines] tbody td:first-child")
    heading = open_tab(page, "lines").locator("th button").first

    heading.click()
    descending = places.all_inner_texts()
    heading.click()

    assert "train.py:12" in descending[0]
    assert places.all_inner_texts() == descending[::-1]


def test_hostile_names_are_shown_and_do_not_run(page, tmp_path):
    open_report(page, make_recording(text=HOSTILE, label=HOSTILE), tmp_path)

    page.mouse.move(*point(page, MAP, 200 / 600, 0.65))
    page.locator(".gpuviz-tooltip").wait_for()

    shown = HOSTILE.replace("\n", " ")
    assert shown in page.locator(".gpuviz-tooltip").inner_text().replace("\n", " ")
    assert shown in page.locator(".gpuviz-label").inner_text().replace("\n", " ")
    assert page.locator("img").count() == 0
    assert page.locator("script:not([type='application/json'])").count() == 1


def test_the_device_choice_shows_one_device_at_a_time(page, tmp_path):
    second = [row | {"size": row["size"] // 2} for row in small_program(1)]
    rows = sorted([*small_program(0), *second], key=lambda row: row["time"])
    open_report(page, make_recording(rows, initial_events=4, devices=2), tmp_path)
    first = level(page, "allocated")

    page.locator("#gpuviz-device").select_option("1")

    assert f"{12 * MIB:,} B" in first
    assert f"{6 * MIB:,} B" in level(page, "allocated")
    assert page.locator("article:visible").count() == 1


def test_a_damaged_recording_is_reported_and_the_numbers_stay(page, recording, tmp_path):
    path = write_report(recording, tmp_path / "run.html")
    damaged = re.sub(r'(data-encoding="base64">)[^<]{200}', r"\1" + "A" * 200, path.read_text())
    path.write_text(damaged)

    page.goto(path.as_uri())
    page.wait_for_selector("html[data-gpuviz=failed]", state="attached")

    notice = page.locator("#gpuviz-notice").inner_text()
    assert notice.startswith("Cannot draw charts and tables: The member ")
    assert page.locator(".gpuviz-number").first.is_visible()


def test_charts_appear_while_the_page_is_still_read(chromium, tmp_path):
    """A server sends the rest of the page only after the charts are drawn."""
    recording = recorded(4 * BATCH_ROWS, 0)
    page = write_report(recording, tmp_path / "run.html").read_bytes()
    cut = len(page) * 3 // 4
    rest = threading.Event()
    with serving(page[:cut], rest, page[cut:]) as url:
        shown = chromium.new_page()
        shown.goto(url, wait_until="commit")
        shown.wait_for_selector("html[data-gpuviz=reading]", state="attached")
        states = [shown.evaluate("document.readyState")]
        charts = plot(shown, LEVELS).is_visible()
        rest.set()
        shown.wait_for_selector("html[data-gpuviz=ready]", state="attached")
        states.append(shown.evaluate("document.readyState"))
        events = level(shown, "allocated")
        shown.close()

    assert charts
    assert states == ["loading", "complete"]
    assert f"{recording.peak(0).bytes:,} B" in events


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_page_that_was_cut_says_so_and_the_numbers_stay(page, recording, tmp_path, share):
    path = write_report(recording, tmp_path / "run.html")
    text = path.read_text()
    begin = text.index('<script type="application/octet-stream" id="gpuviz-recording"')
    path.write_text(text[: begin + round(share * (len(text) - begin))])

    page.goto(path.as_uri())
    page.wait_for_selector("html[data-gpuviz=failed]", state="attached")

    assert "is damaged or truncated" in page.locator("#gpuviz-notice").inner_text()
    assert page.locator(".gpuviz-number").first.is_visible()


def test_a_moment_without_known_segments_says_so(page, tmp_path):
    events = Events()
    events.add("alloc", SEGMENT, 3 * MIB)
    open_report(page, make_recording(events.rows, initial_events=0), tmp_path)

    text = page.locator(".gpuviz-moment").inner_text()

    assert "3.00 MiB allocated in 1 block; this allocator does not expose its segments" in text
    expect(page.locator("[data-level=reserved]")).to_have_text("unknown")


def test_a_report_opens_after_a_long_warm_up(page, tmp_path):
    recording = gpuviz.load(TRAINING)
    open_report(page, recording, tmp_path)
    shown = page.locator(".gpuviz-overview .gpuviz-controls__text")

    first = recording.iterations().to_pylist()[0]["start"] / 1e9
    opened = shown.inner_text()
    page.get_by_role("button", name="All", exact=True).click()

    assert first - 0.1 < float(opened.split(" s to ")[0]) < first
    assert "all but the first" in shown.inner_text()
