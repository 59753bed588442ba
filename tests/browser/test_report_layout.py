"""The layout of the report: long names, narrow windows, forced colours, rotated text."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Locator, Page

import gpuviz
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording, load
from tests.browser.conftest import offline_page
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import TRAINING, drag, open_page, open_report, open_tab
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import make_recording

pytestmark = pytest.mark.browser

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
TWO_GPUS = Path(__file__).parents[1] / "unit" / "two_gpus" / "data"
KMEANS = RECORDINGS / "kmeans.gpuviz"
SHIPPED = sorted(RECORDINGS.glob("*.gpuviz"))
RIGHT_TO_LEFT_OVERRIDE = "\N{RIGHT-TO-LEFT OVERRIDE}"
TURNED = f"{RIGHT_TO_LEFT_OVERRIDE}gnp.exe"


@pytest.fixture(scope="module")
def path(request: pytest.FixtureRequest) -> Path:
    """Return the path of the recording that is shown."""
    return request.param


@pytest.fixture(scope="module")
def shown(chromium: Browser, path: Path, report_of: Callable[[Path], Path]) -> Iterator[Page]:
    """Yield the report of a recording, at which several tests only look."""
    with offline_page(chromium) as page:
        page.set_viewport_size({"width": 1280, "height": 720})
        open_page(page, report_of(path))
        yield page


def of_recordings(*paths: Path) -> pytest.MarkDecorator:
    """Show the reports of these recordings, one after the other."""
    return pytest.mark.parametrize("path", paths, ids=lambda each: each.stem, indirect=True)


def resize(page: Page, width: int, height: int) -> None:
    """Give a page another size, and wait until it is drawn."""
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(TWO_FRAMES)


def overflow(page: Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("name", ["x" * 10_000, "ab " * 3333], ids=["one word", "many words"])
def test_a_name_of_10_000_characters_pushes_nothing_aside(page, tmp_path, name):
    open_report(page, make_stream_recording(name, batches=3), tmp_path)

    assert overflow(page) == 0
    assert page.locator("h1").bounding_box()["height"] < 150
    for track in page.locator(".gpuviz-pane >> visible=true").all():
        box = track.bounding_box()
        assert 0 < box["y"] < box["y"] + box["height"] <= 1000


def test_a_narrow_window_leaves_room_for_lines_and_numbers(page, tmp_path):
    page.set_viewport_size({"width": 400, "height": 900})
    open_report(page, make_stream_recording(), tmp_path)

    assert overflow(page) == 0
    line = page.locator("[data-panel=lines] td").first.bounding_box()
    assert line["width"] >= 200
    total = page.locator("[data-panel=kernels] tbody td").nth(1).bounding_box()
    assert total["x"] + total["width"] <= 400
    finding = page.locator(".gpuviz-finding__lines .gpuviz-place").first.bounding_box()
    assert finding["width"] >= 100


def test_bars_keep_their_colours_where_the_system_chooses_colours(page, tmp_path):
    page.emulate_media(forced_colors="active")
    open_report(page, make_stream_recording(), tmp_path)
    open_tab(page, "fragmentation")

    colours = page.locator(".gpuviz-parts__part, .gpuviz-sizes__bar").evaluate_all(
        "parts => parts.map(part => getComputedStyle(part).backgroundColor)"
    )

    assert len(set(colours)) >= 5
    assert "rgba(0, 0, 0, 0)" not in colours


def test_a_name_that_turns_text_around_turns_no_number_beside_it(page, tmp_path):
    open_report(page, make_stream_recording(TURNED), tmp_path)

    open_tab(page, "moment")
    # The drawn position of the last words of the sentence about the moment.
    words = page.locator(".gpuviz-moment").evaluate(
        """text => {
            const node = text.firstChild;
            const left = (word) => {
                const range = document.createRange();
                const from = node.data.lastIndexOf(word);
                range.setStart(node, from);
                range.setEnd(node, from + word.length);
                return range.getBoundingClientRect().left;
            };
            return [left("blocks in"), left(" segment;")];
        }"""
    )

    assert words[0] < words[1]


def test_the_arrow_keys_choose_a_tab_and_tab_leads_into_it(page, tmp_path):
    open_report(page, make_stream_recording(), tmp_path)

    page.get_by_role("tab", name="Lines").focus()
    page.keyboard.press("ArrowRight")
    for _ in range(7):
        page.keyboard.press("Tab")

    chosen = page.get_by_role("tab", selected=True)
    assert chosen.inner_text() == "Call stacks"
    focused = page.evaluate("document.activeElement.closest('[data-panel]').dataset.panel")
    assert focused == "call-stacks"
    panel = page.get_by_role("tabpanel").locator("visible=true")
    assert panel.get_attribute("id") == chosen.get_attribute("aria-controls")


SIZES = [(1440, 900), (1280, 720), (1920, 1080)]
TWO_FRAMES = """async () => {
  for (let frame = 0; frame < 2; frame += 1) {
    await new Promise(requestAnimationFrame);
  }
}"""
PARTS = "header, .gpuviz-headline, .gpuviz-first, .gpuviz-overview, .gpuviz-ruler, .gpuviz-pane"


@of_recordings(*SHIPPED)
def test_everything_is_on_one_screen_and_nothing_overlaps(shown, path):
    page, name = shown, path.stem

    for width, height in SIZES:
        resize(page, width, height)
        parts = page.locator(PARTS).locator("visible=true").all()
        boxes = [part.bounding_box() for part in parts]
        plots = [plot.bounding_box() for plot in page.locator(".gpuviz-plot:visible").all()]
        bottoms = [box["y"] + box["height"] for box in boxes]
        below = zip(bottoms, boxes[1:], strict=False)

        assert len(boxes) == 9 + ("one_pool" in name)  # with a track of other memory
        assert all(box["width"] > 0.7 * width or box["height"] < 70 for box in boxes)
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
        assert bottoms[-1] <= height
        assert all(box["y"] >= bottom - 0.5 for bottom, box in below)
        assert all(box["height"] >= 24 for box in boxes[-4:])
        assert boxes[-1]["height"] >= (0.25 if "one_pool" in name else 0.35) * height
        assert all(box["height"] >= 18 for box in plots)
        assert overflow(page) == 0
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")


@pytest.mark.parametrize("width", [1280, 1440])
@of_recordings(*SHIPPED, TRAINING)
def test_the_first_findings_are_read_without_hovering(shown, width):
    resize(shown, width, 720)

    lines = shown.locator(".gpuviz-first__line")
    titles = lines.locator(".gpuviz-first__title")
    cut = titles.evaluate_all("all => all.filter((each) => each.scrollWidth > each.clientWidth)")
    texts = titles.evaluate_all(
        """all => all.map((each) => {
            const range = document.createRange();
            range.selectNodeContents(each);
            const { right, bottom } = range.getBoundingClientRect();
            const line = each.parentElement.getBoundingClientRect();
            return [right <= line.right + 1, bottom <= line.bottom + 1];
        })"""
    )

    assert cut == []
    assert texts == [[True, True]] * lines.count()


@pytest.mark.parametrize("width", [1280, 1440, 1920])
@of_recordings(TRAINING)
def test_the_headline_of_a_training_program_is_one_line(shown, width):
    resize(shown, width, 900)

    figures = shown.locator(".gpuviz-headline__figure")
    texts = figures.all_inner_texts()

    assert len({each.bounding_box()["y"] for each in figures.all()}) == 1
    assert any(text.startswith("Iterations 4 \N{MULTIPLICATION SIGN} ") for text in texts)
    # What takes most room is left out first.
    busy = figures.filter(has_text="GPU busy")
    assert "of warm-up" in busy.get_attribute("title")
    assert ("of warm-up" in busy.inner_text()) == (width > 1440)


@pytest.mark.parametrize("width", [780, 1000])
@of_recordings(TRAINING)
def test_the_headline_in_a_pane_of_jupyterlab_is_at_most_two_lines(shown, width):
    resize(shown, width, 900)

    figures = shown.locator(".gpuviz-headline__figure")

    assert len({each.bounding_box()["y"] for each in figures.all()}) <= 2
    assert "of 79.2 GiB" in figures.first.get_attribute("title")


def test_several_notes_take_one_line_until_they_are_opened(page, tmp_path):
    open_report(page, make_recording(notes=("One was lost.", "Another, too.")), tmp_path)
    notes = page.get_by_role("note")

    closed = notes.bounding_box()["height"]
    text = notes.inner_text()
    notes.get_by_text("and 1 more").click()

    assert closed < 30
    assert text.split("\n") == ["One was lost. and 1 more"]
    assert notes.inner_text().split("\n") == ["One was lost.", "Another, too."]


def test_on_a_phone_and_on_paper_the_parts_follow_one_another(page, report_of):
    page.set_viewport_size({"width": 390, "height": 844})
    open_page(page, report_of(KMEANS))

    panels = [panel.bounding_box() for panel in page.locator(".gpuviz-drawer__panel").all()]
    tracks = [
        track.bounding_box() for track in page.locator(".gpuviz-track__frame >> visible=true").all()
    ]
    tabs = page.get_by_role("tab").locator("visible=true").count()

    boxes = [*tracks, *panels]
    assert all(below["y"] >= above["y"] + above["height"] for above, below in pairwise(boxes))
    assert len(panels) > 8
    assert min(box["height"] for box in tracks) > 100
    assert overflow(page) == 0
    assert tabs == 0


def test_findings_with_long_words_do_not_widen_the_page_of_a_phone(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 844})
    open_report(page, load(TWO_GPUS / "training_sharded.gpuviz"), tmp_path)

    assert overflow(page) == 0


def test_a_track_is_closed_and_resized_and_a_link_keeps_that(page, tmp_path):
    open_report(page, make_stream_recording(), tmp_path)
    memory, streams = (
        page.locator(f".gpuviz-pane[data-pane={name}]") for name in ("memory", "streams")
    )
    before = streams.bounding_box()["height"]

    page.get_by_role("button", name="Blocks", exact=True).click()
    page.get_by_role("separator").locator("visible=true").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    arranged = [each.bounding_box()["height"] for each in (memory, streams)]
    written = f"streams-{round(arranged[1])}"
    page.wait_for_function("(written) => location.hash.includes(written)", arg=written)
    page.reload()
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")

    assert (
        page.get_by_role("button", name="Blocks", exact=True).get_attribute("aria-expanded")
        == "false"
    )
    assert page.locator(".gpuviz-pane[data-pane=blocks]").bounding_box()["height"] < 30
    assert arranged[1] > before + 40
    shown = [each.bounding_box()["height"] for each in (memory, streams)]
    assert shown == pytest.approx(arranged, abs=2)


def test_all_tabs_can_be_opened_and_the_drawer_takes_the_window(page, report_of):
    page.set_viewport_size({"width": 1280, "height": 720})
    open_page(page, report_of(KMEANS))
    rows = page.locator("[data-panel=lines] tbody tr")
    drawer = page.locator(".gpuviz-pane[data-pane=drawer]")

    seen = [row.bounding_box() for row in rows.all()]
    others = page.get_by_label("More details")
    tabs = page.get_by_role("tab").locator("visible=true").all_inner_texts()
    hidden = others.locator("option").all_inner_texts()[1:]
    others.select_option(label=hidden[0])
    chosen = page.get_by_role("tab", selected=True)
    opened, is_visible = chosen.inner_text(), chosen.is_visible()
    page.locator(".gpuviz-drawer__head").dblclick(position={"x": 1276, "y": 17})

    assert sum(row["y"] + row["height"] <= 720 for row in seen) >= 9
    assert "Findings 5" in tabs
    assert len(hidden) >= 2
    assert (opened, is_visible) == (hidden[0], True)
    assert drawer.bounding_box()["height"] > 390


@pytest.mark.parametrize("path", [RECORDINGS / "one_pool_shared.gpuviz", TRAINING], ids=str)
def test_nine_rows_fit_below_notes_and_a_memory_track(page, tmp_path, path):
    page.set_viewport_size({"width": 1280, "height": 720})
    recording = load(path)
    noted = replace(recording.manifest, notes=("One was lost.", "Another, too."))
    open_report(page, Recording(dict(recording.tables), noted), tmp_path)

    rows = open_tab(page, "lines").locator("tbody tr")
    tracks = [
        page.locator(f".gpuviz-pane[data-pane={name}]").bounding_box()["height"]
        for name in ("memory", "streams")
    ]

    assert (
        sum(row["y"] + row["height"] <= 720 for row in map(Locator.bounding_box, rows.all())) >= 9
    )
    assert tracks[0] >= 76
    assert tracks[1] >= 63


@of_recordings(*SHIPPED, TRAINING)
def test_a_stream_of_the_gpu_is_on_the_first_screen(shown):
    page = shown
    resize(page, 1280, 720)

    names = [lane.get_attribute("data-lane") for lane in page.locator("[data-lane]").all()]
    first = int(names[0] == "all streams idle")
    plot = page.locator("[data-pane=streams] .gpuviz-plot").bounding_box()
    frame = page.locator("[data-pane=streams] .gpuviz-track__frame").bounding_box()
    middle = page.locator("[data-lane]").nth(first).get_attribute("data-middle-px")

    assert names[first] not in {"MainThread", "CUDA memory"}
    assert plot["y"] + float(middle or 0) + 5 <= frame["y"] + frame["height"] <= 720


@pytest.mark.parametrize("name", ["kmeans", "image_pipeline", "conjugate_gradient"])
@pytest.mark.parametrize("size", [(1280, 720), (1440, 900)], ids=str)
def test_every_column_about_a_selection_is_seen(page, report_of, name, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    open_page(page, report_of(RECORDINGS / f"{name}.gpuviz"))

    open_tab(page, "kernels").locator("tbody .gpuviz-link").first.click()
    selected = page.locator(".gpuviz-selected")
    selected.locator("th", has_text="Source").wait_for()
    wider = selected.locator(".gpuviz-selected__around, .gpuviz-selected__frame").evaluate_all(
        "all => all.map((each) => each.scrollWidth - each.clientWidth)"
    )

    assert wider == [0, 0]
    assert selected.locator("th", has_text="lived").is_visible()


@pytest.mark.parametrize("name", ["kmeans", "one_pool_shared"])
@pytest.mark.parametrize("size", [(1280, 720), (1440, 900)], ids=str)
def test_a_legend_shows_whole_lines_and_says_that_more_follow(page, report_of, name, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    open_page(page, report_of(RECORDINGS / f"{name}.gpuviz"))
    side = page.locator("[data-pane=memory] .gpuviz-track__side")
    more = (
        "side => document.elementFromPoint(side.getBoundingClientRect().right - 40,"
        " side.getBoundingClientRect().bottom - 9) === side"
    )

    where = side.locator(".gpuviz-readout__where").bounding_box()["height"]
    frame = side.evaluate("side => [side.getBoundingClientRect().bottom, side.clientHeight]")
    tops = [entry.bounding_box()["y"] for entry in side.locator(".gpuviz-legend__entry").all()]
    cut = [top for top in tops if top + 1 < frame[0] < top + 17]
    before = side.evaluate(more)
    side.evaluate("side => side.scrollTo(0, side.scrollHeight)")
    page.evaluate(TWO_FRAMES)

    assert where < 20
    assert cut == []
    assert sum(top + 18 <= frame[0] - 17 for top in tops) >= 2
    assert (before, side.evaluate(more)) == (True, False)


@pytest.mark.parametrize("width", [1280, 1440])
def test_names_of_kernels_that_begin_alike_are_told_apart(page, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 900})
    name = f"sm90_xmma_{'implicit_gemm_' * 8}tilesize128x256x64"
    timeline = Timeline()
    timeline.kernel(0, 1000, name)
    open_report(page, timeline.recording(duration_ns=2000), tmp_path)

    link = open_tab(page, "kernels").locator("tbody .gpuviz-link").first
    table = page.locator("[data-panel=kernels] table").bounding_box()

    assert link.evaluate("link => link.scrollHeight - link.clientHeight") <= 1
    assert link.evaluate("link => link.scrollWidth <= link.clientWidth")
    assert (link.inner_text(), link.get_attribute("title")) == (name, name)
    assert table["x"] + table["width"] <= width


def test_a_wheel_over_a_chart_zooms_only_with_ctrl_or_after_a_click(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 844})
    open_report(page, make_stream_recording(), tmp_path)
    shown = page.locator(".gpuviz-controls__text")
    memory = page.locator(".gpuviz-pane[data-pane=memory] .gpuviz-plot")
    memory.scroll_into_view_if_needed()
    memory.hover()
    whole = shown.inner_text()
    before = page.evaluate("scrollY")

    page.mouse.wheel(0, 200)
    page.wait_for_function("before => scrollY > before", arg=before)
    unzoomed = shown.inner_text()
    hint = page.get_by_text("Ctrl or ⌘ and wheel zooms").locator("visible=true").count()
    memory.click()
    page.mouse.wheel(0, -200)
    page.wait_for_function(
        "whole => document.querySelector('.gpuviz-controls__text').textContent !== whole",
        arg=whole,
    )

    assert unzoomed == whole
    assert hint == 1


def test_rows_are_filtered_and_copied_as_csv(page, report_of):
    open_page(page, report_of(KMEANS))
    page.context.grant_permissions(["clipboard-read"])
    rows = open_tab(page, "kernels").locator("tbody tr")
    all_rows = rows.count()

    page.get_by_label("Filter rows").fill("sum")
    few = rows.count()
    page.get_by_role("button", name="Copy as CSV").click()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()

    kernels = load(KMEANS).kernels().to_pylist()
    found = [
        row for row in kernels if "sum" in row["name"] or any("sum" in s for s in row["sites"])
    ]
    assert 0 < few < all_rows
    assert copied[0].startswith('"Kernel","Total"')
    assert len(copied) == 1 + few
    assert copied[1].split('",')[1] == f'"{found[0]["total_ns"]}'


def test_tables_count_the_measured_window(page, report_of):
    open_page(page, report_of(KMEANS))
    only = page.get_by_label("only the window")
    launches = "[...document.querySelectorAll('[data-panel=kernels] tbody tr')].reduce("
    launches += "(sum, row) => sum + Number(row.cells[3].dataset.sort), 0)"
    open_tab(page, "kernels")
    whole = page.evaluate(launches)

    drag(page, 0.4, 0.6)
    opened = page.get_by_role("tab", selected=True).inner_text()
    checked, few = only.is_checked(), page.evaluate(launches)
    page.keyboard.press("Escape")

    assert opened == "Kernels"
    assert checked
    assert 0 < few < whole
    assert not only.is_checked()
    assert page.evaluate(launches) == whole


def test_what_is_used_of_the_device_is_told_with_the_time_of_its_sample(page, recording, tmp_path):
    samples = [
        {"time": time, "device": 0, "used": used} for time, used in ((50_000, 0), (500_000, 99))
    ]
    used = pa.Table.from_pylist(samples, schema=schemas()["device_memory"])
    sampled = Recording(recording.tables | {"device_memory": used}, recording.manifest)

    open_report(page, sampled, tmp_path)

    text = page.locator("[data-level=used]").inner_text()
    assert " ".join(text.split()) == "0 B sampled at 50 µs"


def test_a_click_in_the_row_of_iterations_shows_one(page, report_of):
    path = RECORDINGS / "image_pipeline.gpuviz"
    recording = load(path)
    open_page(page, report_of(path))
    rows = recording.iterations().to_pylist()
    middle = (rows[4]["start"] + rows[4]["end"]) / 2 / recording.duration_ns

    row = page.get_by_label("Iterations. A click shows and measures one.")
    row.click(position={"x": on_time_axis(row, middle), "y": 9})
    measured = page.locator(".gpuviz-measured").evaluate("panel => ({...panel.dataset})")
    page.get_by_role("tab", name="Iterations 24").click()
    page.locator("[data-panel=iterations]").get_by_role("button", name="7", exact=True).click()
    again = page.locator(".gpuviz-measured").evaluate("panel => ({...panel.dataset})")

    for shown, row in ((measured, rows[4]), (again, rows[6])):
        assert shown == {"fromNs": str(row["start"]), "toNs": str(row["end"])}


def on_time_axis(plot: Locator, share: float) -> float:
    """Return how far from the left of a chart a share of the recording is."""
    return 112 + share * (plot.bounding_box()["width"] - 112 - 16)
