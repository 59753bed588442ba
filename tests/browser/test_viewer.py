"""The page of ``gpuviz viewer`` in a real browser: files dropped on it, from disk and offline."""

import random
import re
from base64 import b64encode
from pathlib import Path
from zipfile import ZipFile, sizeFileHeader

import pytest
from playwright.sync_api import Page, expect

import gpuviz
from gpuviz.quantities import format_bytes
from gpuviz.report import viewer
from gpuviz.report.page import write_report
from gpuviz.report.viewer import write_viewer
from tests.browser.test_report import TRAINING, level, open_tab
from tests.unit.formats.damaged_files import torch_file
from tests.unit.formats.false_snapshots import snapshot_file
from tests.unit.formats.plain_snapshots import DATA, SNAPSHOTS, snapshot_bytes

pytestmark = pytest.mark.browser

LEVELS = ("allocated", "active", "reserved", "requested")
DROP = """([text, name]) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], name));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer, cancelable: true }));
}"""
# Keeps every name that the page had, and the first file from being read.
HOLD = """() => {
    const read = Blob.prototype.arrayBuffer;
    const title = document.querySelector("h1");
    const shown = (window.shown = []);
    new MutationObserver(() => shown.push(title.textContent)).observe(title, { childList: true });
    const held = new Promise((resolve) => (window.release = resolve));
    let isFirst = true;
    Blob.prototype.arrayBuffer = async function () {
        if (isFirst) {
            isFirst = false;
            await held;
        }
        return read.call(this);
    };
}"""


def open_viewer(page: Page, folder: Path) -> None:
    page.goto(write_viewer(folder / "viewer.html").as_uri())
    page.wait_for_selector("html[data-gpuviz=empty]", state="attached")


def drop(page: Page, content: bytes, name: str) -> None:
    page.evaluate(DROP, [b64encode(content).decode(), name])


def notice_of(page: Page, name: str) -> str:
    """Return what the page says of a file, once it shows it or refuses it."""
    notice = page.locator("#gpuviz-notice")
    expect(notice).not_to_have_text(f"Reading {name}…")
    return notice.inner_text()


def memory(recording: gpuviz.Recording, at: str) -> str:
    """Return what the page says of a snapshot's memory at its peak or end."""
    segments = recording.memory_snapshot(at=at)
    states = [block["state"] for segment in segments for block in segment["blocks"]]
    blocks = sum(state.startswith("active") for state in states)
    allocated = sum(segment["allocated_size"] for segment in segments)
    reserved = sum(segment["total_size"] for segment in segments)
    return (
        f"{format_bytes(allocated)} allocated of {format_bytes(reserved)} reserved; "
        f"{blocks} blocks in {len(segments)} segments"
    )


def sites(recording: gpuviz.Recording) -> list[tuple[str, str]]:
    """Return the lines of a recording as the page names them, and what they hold at the peak."""
    rows = recording.sites("line").to_pylist()
    return [
        (
            re.sub(r"(\S+) \((?:.*/)?(.*)\)", r"\2 \1", row["site"]),
            format_bytes(row["live_bytes"]),
        )
        for row in rows
    ]


def test_a_dropped_recording_and_then_a_report_are_shown(page, recording, tmp_path):
    report = write_report(recording, tmp_path / "run.html")
    saved = recording.save(tmp_path / "run.gpuviz")
    open_viewer(page, tmp_path)
    lines = page.locator("[data-panel=lines] tbody tr")
    title = page.locator("h1")

    page.get_by_label("Open a file").set_input_files(report)
    page.get_by_role("button", name="show", exact=True).first.wait_for()
    of_report = title.inner_text()
    drop(page, saved.read_bytes(), "run.gpuviz")
    expect(title).to_have_text("run.gpuviz")
    lines.first.wait_for()
    sums = page.get_by_label("All of the recording").inner_text()

    assert of_report == "run.html"
    assert lines.count() > 1
    assert f"peak allocated\n{format_bytes(recording.peak(0).bytes)}" in sums


def test_a_recording_with_a_damaged_table_is_refused_and_not_shown_in_part(
    page, recording, tmp_path
):
    content = bytearray(recording.save(tmp_path / "run.gpuviz").read_bytes())
    with ZipFile(tmp_path / "run.gpuviz") as archive:
        member = archive.getinfo("memory_events.arrow")
    extra = content[member.header_offset + 28]
    begin = member.header_offset + sizeFileHeader + len(member.filename) + extra
    content[begin : begin + 8] = bytes(8)
    open_viewer(page, tmp_path)

    drop(page, bytes(content), "run.gpuviz")
    page.wait_for_selector("html[data-gpuviz=failed]", state="attached")

    assert "memory_events.arrow" in notice_of(page, "run.gpuviz")
    expect(page.locator(".gpuviz-reading")).to_have_count(0)
    expect(page.locator("main canvas")).to_have_count(0)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_dropped_snapshot_of_pytorch_has_the_numbers_that_load_gives(name, page, tmp_path):
    recording = gpuviz.load(DATA / f"{name}.pickle")
    stats = recording.memory_stats(0)
    open_viewer(page, tmp_path)

    drop(page, snapshot_bytes(name), f"{name}.pickle")
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")
    notice = notice_of(page, f"{name}.pickle")
    sums = page.get_by_label("All of the recording").inner_text()
    at_peak = page.locator(".gpuviz-moment").inner_text()
    panel = open_tab(page, "lines")
    panel.locator("tbody tr").first.wait_for()
    rows = [row.locator("th, td").all_inner_texts() for row in panel.locator("tbody tr").all()]
    open_tab(page, "fragmentation").locator("table").first.wait_for()
    open_tab(page, "moment").get_by_role("button", name="End", exact=True).click()
    expect(page.locator(".gpuviz-moment")).to_contain_text("Moment, ")
    at_end = page.locator(".gpuviz-moment").inner_text()

    assert f"peak allocated\n{format_bytes(recording.peak(0).bytes)}" in sums
    assert memory(recording, "peak") in at_peak
    assert memory(recording, "end") in at_end
    assert f" in {stats['segment.all.current']} segments; " in at_end
    for each in LEVELS:
        assert level(page, each) == f"{stats[f'{each}_bytes.all.current']:,} B"
    assert [(row[0].strip(), row[1].strip()) for row in rows[:3]] == sites(recording)[:3]
    assert all(note in notice for note in recording.notes)
    assert (
        "This page has no findings, no iterations, no what-if and no summary of a snapshot: "
        f"gpuviz view {name}.pickle shows them, and gpuviz report {name}.pickle writes a report"
    ) in notice
    assert "lacks" not in notice


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x80\x04.", "byte 2: "),
        (snapshot_bytes("oom")[:5000], "byte 2: truncated"),
        (snapshot_bytes("gpt").replace(b"blocks", b"blacks"), 'segments[0]: expected "blocks"'),
        (b"\x80\x04c__builtin__\neval\n.", "GLOBAL could run code and is refused"),
        (b"\x80\x04}.", 'no memory snapshot; expected a dict with "segments"'),
        (b"", "The file is neither a .gpuviz file, a gpuviz report nor a PyTorch memory snapshot"),
    ],
)
def test_a_damaged_snapshot_is_refused_in_words_and_the_next_one_is_shown(
    content, problem, page, tmp_path
):
    open_viewer(page, tmp_path)

    drop(page, content, "damaged.pickle")
    refused = notice_of(page, "damaged.pickle")
    drop(page, snapshot_bytes("pipeline"), "pipeline.pickle")
    page.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")

    assert refused.startswith("damaged.pickle cannot be shown: ")
    assert problem in refused
    expect(page.locator("h1")).to_have_text("pipeline.pickle")
    assert "cannot be shown" not in notice_of(page, "pipeline.pickle")


@pytest.mark.parametrize("make", [torch_file, snapshot_file])
def test_damaged_and_false_snapshots_are_shown_or_refused(make, page, tmp_path):
    source = random.Random(1)
    open_viewer(page, tmp_path)

    refused = 0
    for number in range(25):
        path = make(tmp_path, source)
        drop(page, path.read_bytes(), f"{number}.pickle")
        is_refused = f"{number}.pickle cannot be shown: " in notice_of(page, f"{number}.pickle")
        expect(page.locator("h1")).to_have_text(
            re.compile(r".*" if is_refused else rf"^{number}\.")
        )
        refused += is_refused

    assert 0 < refused < 25


def test_a_file_that_was_written_again_can_be_chosen_again(page, tmp_path):
    path = tmp_path / "snapshot.pickle"
    open_viewer(page, tmp_path)
    sums = page.get_by_label("All of the recording")

    for name in ("gpt", "oom"):
        path.write_bytes(snapshot_bytes(name))
        page.get_by_label("Open a file").set_input_files(path)
        peak = gpuviz.load(path).peak(0).bytes

        expect(sums).to_contain_text(f"peak allocated{format_bytes(peak)}")


def test_the_file_that_was_dropped_last_is_shown(page, tmp_path):
    open_viewer(page, tmp_path)
    page.evaluate(HOLD)

    drop(page, snapshot_bytes("gpt"), "gpt.pickle")
    drop(page, snapshot_bytes("oom"), "oom.pickle")
    expect(page.locator("h1")).to_have_text("oom.pickle")
    page.evaluate("() => window.release()")
    drop(page, snapshot_bytes("pipeline"), "pipeline.pickle")
    expect(page.locator("h1")).to_have_text("pipeline.pickle")

    assert page.evaluate("() => window.shown") == ["oom.pickle", "pipeline.pickle"]


def test_the_viewer_without_its_reader_of_snapshots_names_the_command(page, tmp_path, monkeypatch):
    monkeypatch.setattr(viewer, "_READER", tmp_path / "missing")
    open_viewer(page, tmp_path)

    page.get_by_label("Open a file").set_input_files(DATA / f"{SNAPSHOTS[0]}.pickle")
    notice = page.locator("#gpuviz-notice:visible code")

    expect(notice).to_have_text("gpuviz report snapshot.pickle")
    assert "wasm" not in (tmp_path / "viewer.html").read_text().partition("<title>")[0]


def test_the_viewer_says_what_a_file_without_derived_tables_lacks(page, tmp_path):
    open_viewer(page, tmp_path)
    page.get_by_label("Open a file").set_input_files(TRAINING)
    panel = open_tab(page, "fragmentation")
    panel.locator("table").first.wait_for()

    text = panel.inner_text()

    assert "This file lacks the tables that this version derives" in text
    assert "free bytes in segments" not in text
