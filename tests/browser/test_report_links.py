"""Links to a part of a report."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Page

from gpuviz.data.tables import schemas
from gpuviz.recording import Recording, load
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import open_tab
from tests.unit.report.recordings import make_recording, small_program

pytestmark = pytest.mark.browser

RECORDINGS = Path(__file__).parents[2] / "gpuviz" / "commands" / "recordings"
SHIPPED = sorted(RECORDINGS.iterdir())
LANES = 4
KMEANS = RECORDINGS / "kmeans.gpuviz"


def open_at(page: Page, recording: Recording, folder: Path, fragment: str = "") -> None:
    path = folder / "run.html"
    if not path.exists():
        recording.report(path)
    open_report_at(page, path, fragment)


def open_report_at(page: Page, path: Path, fragment: str = "") -> None:
    page.goto("about:blank")
    page.goto(path.as_uri() + fragment)
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")


def shown(page: Page) -> str:
    return page.locator(".gpuviz-controls__text").inner_text()


def wait_for_fragment(page: Page, pattern: str) -> str:
    page.wait_for_function("text => new RegExp(text).test(location.hash)", arg=pattern)
    return page.evaluate("location.hash")


def test_a_time_and_a_selection_are_in_the_address_and_come_back(page, report_of):
    recording = load(KMEANS)
    open_report_at(page, report_of(KMEANS))
    open_tab(page, "kernels").locator(".gpuviz-link").first.click()
    fragment = wait_for_fragment(page, r"^#t=\d+-\d+&select=activity:\d+$")
    window, selected = shown(page), page.locator(".gpuviz-selected").inner_text()

    open_report_at(page, report_of(KMEANS), fragment)

    assert shown(page) == window
    assert page.locator(".gpuviz-selected").inner_text() == selected
    assert selected.startswith(recording.kernels()["name"][0].as_py())


def test_pinned_lanes_are_in_the_address_and_come_back(page, tmp_path):
    recording = make_stream_recording()
    open_at(page, recording, tmp_path)
    lanes = page.locator("[data-lane]")
    name_of = "all => all.map(each => each.dataset.lane)"
    before = lanes.evaluate_all(name_of)
    box = page.locator(".gpuviz-plot").nth(LANES).bounding_box()
    last = float(lanes.last.get_attribute("data-middle-px") or 0)
    page.mouse.click(box["x"] + 40, box["y"] + last)
    fragment = wait_for_fragment(page, r"^#pin=(stream|thread):\d+$")

    open_at(page, recording, tmp_path, f"{fragment}&pin=stream:4000000000")

    assert lanes.evaluate_all(name_of) == [before[-1], *before[:-1]]
    assert "“pin=stream:4000000000”" in page.locator("#gpuviz-notice").inner_text()


def test_a_block_and_a_moment_are_restored(page, tmp_path):
    open_at(page, make_recording(), tmp_path, "#t=100000-300000&select=block:1&event=3")

    assert re.fullmatch(r"100\.\d µs to 300\.\d µs of 600 µs shown", shown(page))
    assert "Block of 6.00 MiB" in page.locator(".gpuviz-selected").inner_text()
    assert "after event 2 of 5" in page.locator(".gpuviz-moment").inner_text()
    assert page.locator("#gpuviz-notice").is_hidden()


@pytest.mark.parametrize("kind", ["activity", "call", "wait", "range"])
def test_every_kind_of_span_can_be_linked_to(page, tmp_path, kind):
    open_at(page, make_stream_recording(), tmp_path, f"#select={kind}:0")

    assert page.locator(".gpuviz-selected__title").inner_text() != ""
    assert page.locator("#gpuviz-notice").is_hidden()


@pytest.mark.parametrize(
    ("kind", "title"),
    [("overhead", "Overhead: lazy function loading"), ("memory", "CUDA releases memory: 512 B")],
)
def test_what_cuda_did_by_itself_can_be_linked_to(page, tmp_path, kind, title):
    recording = with_cuda_alone(make_stream_recording())
    open_at(page, recording, tmp_path, f"#select={kind}:0")

    page.keyboard.press("]")
    fragment = wait_for_fragment(page, f"^#select={kind}:1$")
    open_at(page, recording, tmp_path, fragment)

    assert page.locator(".gpuviz-selected__title").inner_text() == title


def with_cuda_alone(recording: Recording) -> Recording:
    """Return a recording that also has memory operations and overheads, two of each."""
    numbers = {"address": 4096, "bytes": 512, "device": 0, "stream": 0, "correlation": 0}
    operations = [
        numbers | {"time": time, "operation": operation, "memory": "device", "source": 0}
        for time, operation in ((1000, "allocation"), (2000, "release"))
    ]
    overheads = [
        {"time": time, "end": time + 10, "kind": kind, "thread": 1, "correlation": 0}
        for time, kind in ((1000, "buffer_flush"), (2000, "lazy_function_loading"))
    ]
    more = {"memory_operations": operations, "overheads": overheads}
    tables = {
        name: pa.Table.from_pylist(rows, schema=schemas()[name]) for name, rows in more.items()
    }
    return Recording(recording.tables | tables, recording.manifest)


def test_a_span_is_named_kept_sent_in_the_link_and_written_as_a_recording(page, tmp_path):
    page.context.grant_permissions(["clipboard-read"])
    open_at(page, make_recording(), tmp_path, "#span=100000-300000")
    panel = page.get_by_role("region", name="Measured")
    page.keyboard.press("n")
    page.keyboard.type("warm-up & co")
    page.keyboard.press("Enter")
    panel.get_by_role("button", name="Copy command").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("Escape")
    hidden = panel.is_hidden()
    fragment = wait_for_fragment(page, r"^#keep=100000-300000:warm-up%20%26%20co$")
    open_at(page, make_recording(), tmp_path, fragment)
    page.get_by_role("group", name="Kept spans").get_by_role("button").first.click()

    assert copied == "gpuviz convert 'run.html' span.gpuviz --range 100000ns:300000ns"
    assert hidden
    assert panel.inner_text().startswith("Measured: 200 µs from 100.0 µs to 300.0 µs")
    assert panel.get_by_role("textbox").input_value() == "warm-up & co"


def test_showing_all_again_leaves_no_fragment(page, tmp_path):
    open_at(page, make_recording(), tmp_path, "#t=100000-300000")

    page.get_by_role("button", name="All", exact=True).click()

    page.wait_for_function("() => location.hash === ''")
    assert shown(page) == "all 600 µs shown"


def test_another_fragment_in_the_open_page_is_followed(page, tmp_path):
    open_at(page, make_recording(), tmp_path)

    page.evaluate("location.hash = '#t=0-150000&select=block:2'")

    page.wait_for_selector(".gpuviz-selected__title")
    assert re.fullmatch(r"0\.?\d* ns to 150\.\d µs of 600 µs shown", shown(page))
    assert "Block of 4.00 MiB" in page.locator(".gpuviz-selected").inner_text()


def test_a_fragment_is_followed_though_the_page_writes_its_own_meanwhile(page, tmp_path):
    open_at(page, make_recording(), tmp_path)

    page.evaluate(
        "location.hash = '#t=0-150000&select=block:2'; history.replaceState(null, '', '#t=1-9')"
    )

    page.wait_for_selector(".gpuviz-selected__title")
    assert "Block of 4.00 MiB" in page.locator(".gpuviz-selected").inner_text()


@pytest.mark.parametrize(
    "part",
    [
        "t=9-3",
        "t=999999999-9999999999",
        "t=1e3-1e9",
        "select=block:99999",
        "select=activity:0",
        "select=soul:1",
        "device=7",
        "event=99999999",
        "<img src=x onerror=alert(1)>",
        "%00%ff",
    ],
)
def test_what_a_fragment_has_no_meaning_for_is_told_and_the_rest_is_shown(page, tmp_path, part):
    open_at(page, make_recording(), tmp_path, f"#select=block:1&{part}&")

    if not part.startswith("select"):
        assert "Block of 6.00 MiB" in page.locator(".gpuviz-selected").inner_text()
    notice = page.locator("#gpuviz-notice").inner_text()
    assert notice.startswith("This link's “")
    assert notice.endswith("” cannot be found in this recording.")
    assert shown(page) == "all 600 µs shown"


def test_the_device_is_part_of_a_link_where_there_are_several(page, tmp_path):
    second = [row | {"size": row["size"] // 2} for row in small_program(1)]
    rows = sorted([*small_program(0), *second], key=lambda row: row["time"])
    recording = make_recording(rows, initial_events=4, devices=2)
    open_at(page, recording, tmp_path)

    page.locator("#gpuviz-device").select_option("1")
    page.get_by_role("button", name="Zoom in").locator("visible=true").click()
    fragment = wait_for_fragment(page, r"&device=1$")
    open_at(page, recording, tmp_path, fragment)

    assert page.locator("#gpuviz-device").input_value() == "1"
    assert page.locator("article h2").text_content().startswith("Device 1")


def test_another_device_is_shown_at_the_same_time_and_the_link_leads_there(page, tmp_path):
    second = [row | {"size": row["size"] // 2} for row in small_program(1)]
    rows = sorted([*small_program(0), *second], key=lambda row: row["time"])
    recording = make_recording(rows, initial_events=4, devices=2)
    open_at(page, recording, tmp_path, "#t=100000-300000&select=block:1")

    page.locator("#gpuviz-device").select_option("1")

    fragment = wait_for_fragment(page, r"^#t=100000-300000&device=1$")
    assert re.fullmatch(r"100\.\d µs to 300\.\d µs of 600 µs shown", shown(page))
    open_at(page, recording, tmp_path, fragment)
    assert page.locator("article h2").text_content().startswith("Device 1")


def test_a_report_of_a_window_opens_on_it(page, tmp_path):
    path = load(KMEANS).report(tmp_path / "run.html", window=(20_000_000, 60_000_000))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")

    assert re.fullmatch(r"20\.0+ ms to 60\.0+ ms of \d+\.?\d* ms shown", shown(page))


def test_a_finding_shows_its_moment_in_the_timeline(page, tmp_path):
    open_at(page, make_recording(), tmp_path)

    page.get_by_role("button", name="show", exact=True).first.click()

    assert re.fullmatch(r"38\d\.\d+ µs to 41\d\.\d+ µs of 600 µs shown", shown(page))
    assert page.get_by_role("region", name="Measured").is_visible()


def test_a_finding_opens_the_track_that_has_its_evidence(page, report_of):
    path = KMEANS.with_stem("image_pipeline")
    recording = load(path)
    found = (each for each in recording.findings() if each.evidence is not None)
    finding = next(each for each in found if each.evidence.table == "memory_events")
    open_report_at(page, report_of(path))
    titled = page.locator(".gpuviz-first__title", has_text=shown_title(finding))
    blocks = page.get_by_role("button", name="Blocks", exact=True)
    drawer = page.locator("[data-pane=drawer]")
    blocks.click()
    closed, before = blocks.get_attribute("aria-expanded"), drawer.bounding_box()

    line = page.locator(".gpuviz-first__line", has=titled)
    line.get_by_role("button", name="show", exact=True).click()

    after = drawer.bounding_box()
    assert closed == "false"
    assert blocks.get_attribute("aria-expanded") == "true"
    assert page.locator("[data-pane=blocks]").bounding_box()["height"] > 90
    assert after["height"] < before["height"] - 60
    assert after["y"] + after["height"] == pytest.approx(before["y"] + before["height"], abs=2)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_finding_leads_to_its_rows_in_the_table_that_has_them(page, path, report_of):
    recording = load(path)
    open_report_at(page, report_of(path))
    findings = {shown_title(each): each for each in recording.findings()}

    for line in page.locator(".gpuviz-first__line").all():
        shown = line.get_by_role("button", name="show")
        finding = findings.get(line.locator(".gpuviz-first__title").text_content())
        if finding is None or finding.evidence is None or shown.count() == 0:
            continue
        shown.click()
        table = page.locator("[role=tabpanel].gpuviz-drawer__panel--shown table").first
        marked = table.locator("tbody tr").evaluate_all(
            """rows => rows.map(row => [row.cells[0].dataset.sort,
                row.classList.contains("gpuviz-table__marked")])"""
        )

        names = {name for name, is_marked in marked if is_marked}
        assert names == rows_of(recording.window(*finding.evidence.window), recording, finding)
        assert [is_marked for _, is_marked in marked] == sorted(
            (is_marked for _, is_marked in marked), reverse=True
        )
    page.get_by_role("region", name="Measured").get_by_role("button", name="Clear").click()
    open_tab(page, "lines")

    assert page.locator(".gpuviz-table__marked").count() == 0


def shown_title(finding) -> str:
    """Return the title as text, in which code has no marks."""
    return finding.title.replace("`", "")


def rows_of(window, recording, finding) -> set[str]:
    """Return the names of the rows that show a finding, as far as they are in its time."""
    evidence = finding.evidence
    if evidence.table == "activities":
        activities = recording.table("activities").take(list(evidence.rows)).to_pylist()
        if {row["kind"] for row in activities} == {"kernel"}:
            texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
            return {texts[row["name"]] for row in activities}
    return {line.site for line in finding.lines} & set(window.lines()["site"].to_pylist())
