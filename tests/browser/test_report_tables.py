"""The tables of a report, against those of the recording."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from playwright.sync_api import Browser, Page

from gpuviz.quantities import format_bytes
from gpuviz.recording import Recording, load
from tests.browser.conftest import offline_page
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import open_page, open_tab
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import MIB, SEGMENT, Events, make_recording

pytestmark = pytest.mark.browser

LINES = (
    "live_bytes",
    "total_bytes",
    "total_count",
    "kernel_ns",
    "kernel_count",
    "copy_ns",
    "copy_bytes",
    "wait_ns",
    "idle_ns",
)
RECORDINGS = Path(__file__).parents[2] / "gpuviz" / "commands" / "recordings"
SHIPPED = sorted(RECORDINGS.iterdir())
KMEANS, PIPELINE = (RECORDINGS / f"{name}.gpuviz" for name in ("kmeans", "image_pipeline"))
VALUES = """part => [...document.querySelectorAll(`[data-panel=${part}] table`)].map(
    table => [...table.tBodies[0].rows].map(row => [...row.cells].map(
        cell => cell.dataset.sort)))"""
TEXTS = """part => [...document.querySelectorAll(`[data-panel=${part}] tbody tr`)].map(
    row => [...row.cells].map(cell => cell.innerText))"""


def open_tables(page: Page, recording: Recording, folder: Path) -> None:
    """Open the report."""
    open_page(page, recording.report(folder / "run.html"))


def open_whole(page: Page, part: str) -> None:
    """Open a tab, and show all rows of its tables."""
    tab = page.locator(f"[role=tab][data-tab='{part}']")
    if tab.is_visible():
        tab.click()
    for more in page.locator(".gpuviz-table__more:visible").all():
        more.click()


def cells(page: Page, part: str, table: int = 0) -> list[list[str]]:
    open_whole(page, part)
    found = page.evaluate(VALUES, part)
    return found[table] if found else []


def numbers(rows: list[list[str]], first: int = 1, last: int | None = None) -> Counter:
    """Return the number of occurrences of each row of numbers."""
    return Counter(
        tuple(None if value in ("", None) else float(value) for value in row[first:last])
        for row in rows
    )


@pytest.fixture(
    scope="module", params=[*SHIPPED, "streams"], ids=lambda each: getattr(each, "stem", each)
)
def recorded(request: pytest.FixtureRequest) -> Recording:
    return make_stream_recording() if request.param == "streams" else load(request.param)


@pytest.fixture(scope="module")
def shown(
    chromium: Browser, recorded: Recording, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    """Yield the report of a recording, which several tests look at."""
    with offline_page(chromium) as page:
        open_tables(page, recorded, tmp_path_factory.mktemp("report"))
        yield page


def test_kernels_copies_and_waits_are_those_of_the_recording(shown, recorded):
    check_kernels_copies_and_waits(shown, recorded)


@pytest.mark.parametrize("shares", [(0, 0.3), (0.31, 0.62), (0.5, 0.51), (0.55, 1)])
@pytest.mark.parametrize("name", ["generated", "kmeans", "image_pipeline"])
def test_tables_of_the_time_shown_are_those_of_the_window(page, name, shares, tmp_path, report_of):
    shipped = RECORDINGS / f"{name}.gpuviz"
    whole = generated() if name == "generated" else load(shipped)
    start, end = (int(share * whole.duration_ns) for share in shares)
    path = whole.report(tmp_path / "run.html") if name == "generated" else report_of(shipped)
    page.goto(f"{path.as_uri()}#t={start}-{end}")
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")
    open_tab(page, "kernels")
    page.get_by_label("only the window").check()

    window = whole.window(start, end)
    check_kernels_copies_and_waits(page, window)
    check_lines(page, window, whole)


def generated() -> Recording:
    """Return what overlaps at random: launches long before, copies of all kinds, waits."""
    random = Random(7)
    timeline = Timeline()
    for correlation in range(1, 200):
        begin = random.randrange(1_000_000)
        called = begin + random.randrange(1, 60_000)
        started = begin + random.randrange(120_000)
        ended = started + random.randrange(1, 90_000)
        activity = {"correlation": correlation, "stream": random.randrange(1, 4)}
        kind = random.choice(["kernel", "copy", "synchronize", "pageable"])
        name = {"kernel": "cuLaunchKernel", "synchronize": "cuStreamSynchronize"}.get(
            kind, random.choice(["cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2"])
        )
        if random.random() < 0.8 or kind == "synchronize":
            line = random.randrange(1, 5)
            timeline.call(begin, called, name, line=line, correlation=correlation)
        if kind == "kernel":
            launch = (random.randrange(1, 3), 32)
            timeline.kernel(started, ended, random.choice("abc"), launch=launch, **activity)
        elif kind == "synchronize":
            timeline.synchronization("stream_synchronize", begin, called, **activity)
        else:
            source = {"source": "pageable"} if kind == "pageable" else {}
            timeline.copy(started, ended, bytes=random.randrange(1, 99), **source, **activity)
    return timeline.recording()


def check_kernels_copies_and_waits(page: Page, recorded: Recording) -> None:
    """Compare the tables with those of a recording, or of a part of it."""
    shown = cells(page, "kernels")
    kernels = list(recorded.kernels().to_pylist())
    columns = ("total_ns", "share", "count", "median_ns", "min_ns", "max_ns", "launch_delay_ns")
    assert [row[0] for row in shown] == [row["name"] for row in kernels]
    assert numbers(shown, 1, 8) == Counter(tuple(row[name] for name in columns) for row in kernels)

    columns = ("total_ns", "bytes", "count", "median_ns", "bytes_per_second")
    copies = recorded.copies().to_pylist()
    assert numbers(cells(page, "copies")) == Counter(
        tuple(row[name] for name in columns) for row in copies
    )

    columns = ("total_ns", "waiting_ns", "transfer_ns", "count", "median_ns", "max_ns")
    waits = recorded.synchronizations("line").to_pylist()
    assert numbers(cells(page, "waits")) == Counter(
        tuple(row[name] for name in columns) for row in waits
    )

    waited = Counter(row["site"] for row in waits)
    assert shown_sites(page, "waits") == waited
    check_parts(page, "kernels", recorded.kernels("name_and_line").to_pylist())
    check_parts(page, "copies", recorded.copies("line").to_pylist())


def shown_sites(page: Page, part: str) -> Counter:
    places = page.locator(f"[data-panel={part}] .gpuviz-table__call-site")
    return Counter(places.evaluate_all("all => all.map(place => place.title)"))


def check_parts(page: Page, part: str, by_line: list[dict]) -> None:
    """Compare the rows of lines below those of kernels or copies that several lines caused."""
    columns = {
        "kernels": ("total_ns", "share", "count", "median_ns", "min_ns", "max_ns"),
        "copies": ("total_ns", "bytes", "count", "median_ns", "bytes_per_second"),
    }[part]
    same = {"kernels": ("name",), "copies": ("copy_kind", "host_memory")}[part]
    lines = Counter(tuple(row[name] for name in same) for row in by_line)
    opened = [row for row in by_line if lines[tuple(row[name] for name in same)] > 1]

    open_whole(page, part)
    for closed in page.locator(f"[data-panel={part}] .gpuviz-table__lines").all():
        closed.click()

    found = page.evaluate(
        """part => [...document.querySelectorAll(`[data-panel=${part}] .gpuviz-table__part`)].map(
            row => [...row.cells].map(cell => cell.dataset.sort))""",
        part,
    )
    assert numbers(found, 1, 1 + len(columns)) == Counter(
        tuple(row[name] for name in columns) for row in opened
    )
    assert shown_sites(page, part) == Counter(row["site"] for row in by_line)


def test_the_lines_are_those_of_the_recording(shown, recorded):
    check_lines(shown, recorded, recorded)


def check_lines(page: Page, recorded: Recording, whole: Recording) -> None:
    """Compare the lines with those of a recording, or of a part of it, in their order.

    A column that is empty in the whole recording is not shown.
    """
    device = recorded.devices[0]
    expected = recorded.lines(device).to_pylist()
    used = [name for name in LINES if any(row[name] for row in whole.lines(device).to_pylist())]

    shown = cells(page, "lines")

    assert shown == [[row["site"], *(str(row[name]) for name in used)] for row in expected]


@pytest.mark.parametrize("at", ["peak", "end"])
def test_fragmentation_at_a_moment_is_that_of_the_recording(shown, recorded, at):
    page = shown
    open_whole(page, "moment")
    page.get_by_role("button", name=at.title(), exact=True).click()
    open_whole(page, "fragmentation")
    expected = recorded.fragmentation(at, recorded.devices[0])

    parts = {
        each.get_attribute("data-part"): int(each.get_attribute("data-value"))
        for each in page.locator("[data-panel=fragmentation] dd").all()
    }

    assert parts == {
        "requested": expected.requested,
        "rounding": expected.rounding,
        "pendingFree": expected.pending_free,
        "inactiveSplit": expected.inactive_split,
        "cachedWhole": expected.cached_whole,
    }
    pools = [
        (row["pool"], row["reserved"], row["free"], row["largest_free"], row["external"])
        for row in expected.pools.to_pylist()
    ]
    assert numbers(cells(page, "fragmentation"), 0) == Counter(pools)
    sizes = cells(page, "fragmentation", 1) if expected.free else []
    assert sum(int(row[2]) for row in sizes) == expected.free


def test_free_memory_over_time_ends_as_that_of_the_recording(shown, recorded):
    page = shown
    chart = open_tab(page, "fragmentation").get_by_label(re.compile("^Free bytes in segments"))
    expected = recorded.fragmentation("end", recorded.devices[0])

    width = chart.bounding_box()["width"]
    chart.hover(position={"x": width - 15, "y": 20})

    lines = page.locator(".gpuviz-tooltip").inner_text().splitlines()
    assert [line.partition(": ")[2] or line for line in lines] == [
        f"{format_bytes(expected.free)} free in segments",
        f"the largest free block has {format_bytes(expected.largest_free)}",
    ]


def test_tables_of_a_device_have_what_ran_on_it(page, tmp_path):
    recorded = make_stream_recording()
    activities = recorded.table("activities")
    other = activities.set_column(
        activities.schema.get_field_index("device"),
        "device",
        pc.cast(pc.multiply(pc.cast(pc.equal(activities["bytes"], 0), "int16"), 1), "int16"),
    )
    two = Recording({**recorded.tables, "activities": other}, recorded.manifest)
    open_tables(page, two, tmp_path)
    kernels_of_first = cells(page, "kernels")

    page.locator("#gpuviz-device").select_option("1")
    page.wait_for_selector("[role=tab][data-tab=kernels]:visible")

    alone = other.filter(pc.equal(other["device"], 1))
    expected = replace(two, tables={**two.tables, "activities": alone}).kernels()
    assert kernels_of_first == []
    assert [row[0] for row in cells(page, "kernels")] == expected["name"].to_pylist()


def test_a_heading_sorts_from_the_keyboard_and_says_how(page, report_of):
    open_page(page, report_of(KMEANS))
    heading = page.locator("[data-panel=kernels] th").nth(3)
    launches = [int(row[3]) for row in cells(page, "kernels")]

    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    descending = [int(row[3]) for row in cells(page, "kernels")]
    said = heading.get_attribute("aria-sort")
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")

    assert descending == sorted(launches, reverse=True)
    assert said == "descending"
    assert [int(row[3]) for row in cells(page, "kernels")] == sorted(launches)
    assert heading.get_attribute("aria-sort") == "ascending"
    assert page.locator("[data-panel=kernels] th[aria-sort]").count() == 1


def test_a_click_on_a_kernel_shows_its_longest_launch_in_the_charts(page, report_of):
    recorded = load(KMEANS)
    open_page(page, report_of(KMEANS))
    kernel = recorded.kernels().to_pylist()[0]

    open_tab(page, "kernels").locator(".gpuviz-link").first.click()

    selected = page.locator(".gpuviz-selected").inner_text()
    assert kernel["name"].split("(")[0].split("<")[0].split("::")[-1] in selected
    shown = page.locator(".gpuviz-controls__text").inner_text()
    assert shown.endswith("of 214 ms shown")


def test_the_icicle_has_all_bytes_of_the_peak_and_zooms(page, report_of):
    recorded = load(PIPELINE)
    open_page(page, report_of(PIPELINE))

    open_tab(page, "call-stacks")
    calls = page.locator(".gpuviz-icicle__call")
    whole = calls.first.get_attribute("aria-label")
    page.get_by_text("_measure", exact=False).locator("visible=true").first.wait_for()
    chosen = page.locator(".gpuviz-icicle__call", has_text="median_filter").first
    before = chosen.bounding_box()["width"]
    chosen.click()
    after = page.locator(".gpuviz-icicle__call", has_text="median_filter").first
    wide = after.bounding_box()["width"]
    page.keyboard.press("Escape")

    assert f"({recorded.peak().bytes:,} B)" in whole
    assert wide > 3 * before
    assert page.locator(".gpuviz-icicle__call", has_text="median_filter").first.bounding_box()[
        "width"
    ] == pytest.approx(before)


def test_a_line_leads_to_its_largest_block(page, tmp_path):
    open_tables(page, make_recording(), tmp_path)

    open_tab(page, "lines").locator("tbody .gpuviz-link").first.click()
    page.get_by_role("button", name="Show its largest block in the charts").click()

    assert "Block of 6.00 MiB" in page.locator(".gpuviz-selected").inner_text()


SOURCE = """[...document.querySelectorAll("[data-panel=lines] .gpuviz-source tbody tr")].map(
    row => [row.cells[0].dataset.sort, row.cells[row.cells.length - 1].innerText,
            ...[...row.cells].slice(1, -1).map(cell => cell.dataset.sort)])"""


@pytest.mark.parametrize("share", [None, 0.4])
def test_a_line_opens_the_source_around_it_with_the_figures_of_its_lines(page, report_of, share):
    whole = load(PIPELINE)
    recorded = whole if share is None else whole.window(0, int(share * whole.duration_ns))
    path = report_of(PIPELINE)
    page.goto(f"{path.as_uri()}#t={recorded.time_range[0]}-{recorded.time_range[1]}")
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")
    if share is not None:
        open_tab(page, "lines")
        page.get_by_label("only the window").check()

    line = open_tab(page, "lines").locator("tbody .gpuviz-link").first
    place = line.get_attribute("title")
    line.click()
    shown = page.evaluate(SOURCE)
    current = page.locator(".gpuviz-source__current")
    in_view = current.bounding_box()["y"] < page.viewport_size["height"]
    number = current.locator("td").first.inner_text()
    page.get_by_role("button", name="All lines").click()

    rows = [row for row in recorded.lines().to_pylist() if "image_pipeline.py" in row["site"]]
    # Counts are only in the table of lines.
    amounts = [
        name for name in LINES if name.endswith("_ns") or name in {"live_bytes", "total_bytes"}
    ]
    used = [name for name in amounts if any(row[name] for row in rows)]
    figures = {row["site"].split(":")[-1][:-1]: row for row in rows}
    assert {line: numbers for line, _, *numbers in shown if any(map(int, numbers))} == {
        line: [str(row[name]) for name in used] for line, row in figures.items()
    }
    assert all(text == figures[line]["source"] for line, text, *_ in shown if line in figures)
    assert [int(line) for line, *_ in shown] == sorted(int(line) for line, *_ in shown)
    assert in_view
    assert place.endswith(f":{number})")
    assert len(cells(page, "lines")) == recorded.lines().num_rows


def test_the_selection_shows_the_lines_around_its_own_with_their_figures(page, tmp_path):
    whole = load(PIPELINE)
    text = [f"line {number}" for number in range(200)]
    frames = [
        {
            **row,
            "context": "\n".join(text[row["line"] - 8 : row["line"] + 9]),
            "context_line": first,
        }
        for row in whole.table("frames").to_pylist()
        for first in [row["line"] - 8]
    ]
    known = whole.table("frames").schema
    recorded = Recording(
        {**whole.tables, "frames": pa.Table.from_pylist(frames, schema=known)}, whole.manifest
    )
    open_tables(page, recorded, tmp_path)
    kernel, *_ = recorded.kernels().to_pylist()
    number = int(kernel["site"].split(":")[-1][:-1])

    open_tab(page, "kernels").locator(".gpuviz-link").first.click()
    around = page.locator(".gpuviz-selected__around tbody tr")
    around.first.locator("td").nth(2).wait_for()
    shown = around.evaluate_all("rows => rows.map(row => [...row.cells].map(c => c.dataset.sort))")

    lines = {
        int(row["site"].split(":")[-1][:-1]): row
        for row in recorded.lines().to_pylist()
        if "image_pipeline.py" in row["site"]
    }
    figures = ("live_bytes", "kernel_ns", "wait_ns")
    near = range(number - 4, number + 5)
    used = [name for name in figures if any(lines[each][name] for each in near if each in lines)]
    assert shown == [
        [str(each), *(str(lines[each][name] if each in lines else 0) for name in used), text[each]]
        for each in near
    ]


def test_the_way_back_from_a_source_stays_in_view_and_escape_takes_it(page, report_of):
    page.set_viewport_size({"width": 1280, "height": 720})
    open_page(page, report_of(KMEANS))
    panel = open_tab(page, "lines")
    links = panel.locator("tbody .gpuviz-link").all()
    lowest = max(
        links, key=lambda link: int((link.get_attribute("title") or "")[:-1].split(":")[-1])
    )
    place = lowest.get_attribute("title")
    selected = page.locator(".gpuviz-selected").inner_text()

    lowest.click()
    scrolled = panel.evaluate("panel => panel.scrollTop")
    back = page.get_by_role("button", name="All lines").bounding_box()
    title = page.get_by_text("Kernel time").locator("visible=true").bounding_box()
    current = page.locator(".gpuviz-source__current").bounding_box()
    page.keyboard.press("Escape")

    assert scrolled > 50
    top = panel.bounding_box()["y"]
    assert top <= back["y"] < back["y"] + back["height"] <= title["y"] < current["y"]
    assert page.evaluate("document.activeElement.title") == place
    assert page.locator(".gpuviz-selected").inner_text() == selected


def test_without_source_text_the_selection_and_the_lines_say_so(page, tmp_path):
    recorded = load(KMEANS)
    path = recorded.report(tmp_path / "run.html", redact=True)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")

    open_tab(page, "lines").locator("tbody .gpuviz-link").first.click()

    assert "no source text" in page.locator(".gpuviz-source").inner_text()
    assert page.locator(".gpuviz-source tbody tr").count() == 0


def test_fragmentation_under_an_allocator_that_tells_no_segments_is_called_unknown(page, tmp_path):
    events = Events()
    events.add("alloc", SEGMENT, 3 * MIB)
    open_tables(page, make_recording(events.rows, initial_events=0), tmp_path)

    text = open_tab(page, "fragmentation").inner_text()

    assert "Unknown: this allocator does not expose its segments." in text
    assert page.locator("[data-panel=fragmentation] table").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_printed_report_has_a_picture_of_every_chart(page, tmp_path, scheme):
    page.emulate_media(color_scheme=scheme)
    open_tables(page, make_stream_recording(), tmp_path)
    charts = page.locator(".gpuviz-plot__canvas:not(.gpuviz-plot__canvas--overlay)").count()

    printed = page.pdf(format="A4")

    wide = [int(width) for width in re.findall(rb"/Width (\d+)", printed)]
    assert sum(width > 1000 for width in wide) >= charts
