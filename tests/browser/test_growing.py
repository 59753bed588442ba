"""Charts of a growing recording, as in a live view."""

import base64
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest
from playwright.sync_api import Page

from gpuviz.recording import Recording
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import point

pytestmark = pytest.mark.browser

EXTENSION = Path(__file__).parents[2] / "extension"
MAP, LANES = 3, 4
GROWING = ("memory_events", "activities", "api_calls", "synchronizations", "launch_blocks")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    """Return a folder with the page."""
    folder = tmp_path_factory.mktemp("growing")
    esbuild = EXTENSION / "node_modules" / "esbuild" / "bin" / "esbuild"
    page = EXTENSION / "pages" / "growing.ts"
    command = [shutil.which("node"), esbuild, page, "--bundle", "--format=iife"]
    subprocess.run([*map(str, command), f"--outdir={folder}"], check=True, capture_output=True)
    (folder / "index.html").write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="stylesheet" '
        'href="growing.css"></head><body><script src="growing.js"></script></body></html>'
    )
    return folder


def parts(whole: Recording) -> tuple[Recording, Recording]:
    """Return the first and the second half of a recording."""
    middle = whole.duration_ns // 2
    cells = whole.table("ranges").slice(0, 1)
    first = {
        name: whole.table(name).filter(pc.less(_times(whole, name), middle)) for name in GROWING
    }
    then = {
        name: whole.table(name).filter(pc.greater_equal(_times(whole, name), middle))
        for name in GROWING
    }
    tables = dict(whole.tables)
    manifest = replace(whole.manifest, duration_ns=middle)
    return (
        Recording(tables | first | {"ranges": cells}, manifest),
        Recording(tables | then, whole.manifest),
    )


def _times(recording: Recording, name: str):
    if name != "launch_blocks":
        return recording.table(name)["time"]
    calls = recording.table("api_calls")
    starts = dict(zip(calls["correlation"].to_pylist(), calls["time"].to_pylist(), strict=True))
    correlations = recording.table("launch_blocks")["correlation"].to_pylist()
    return pc.cast([starts[correlation] for correlation in correlations], "int64")


def take(page: Page, recording: Recording, folder: Path) -> None:
    path = recording.save(folder / f"{recording.duration_ns}.gpuviz")
    page.evaluate("takeRecording", base64.b64encode(path.read_bytes()).decode())


def test_what_is_shown_goes_on_and_what_is_selected_stays(page, bundle, tmp_path):
    whole = make_stream_recording()
    first, then = parts(whole)
    page.goto((bundle / "index.html").as_uri())
    take(page, first, tmp_path)
    shown = page.locator(".gpuviz-controls__text")
    selected = page.get_by_role("region", name="Selected")
    before = shown.inner_text(), page.locator("[data-lane='upload']").inner_text()
    page.mouse.click(*point(page, MAP, 0.2, 0.5))
    story = selected.inner_text()

    take(page, then, tmp_path)

    assert before == ("all 3.29 ms shown", "upload: 4 spans")
    assert story.startswith("Block of 16.0 MiB")
    assert selected.inner_text() == story
    assert shown.inner_text() == "all 5.49 ms shown"
    assert page.locator("[data-lane='upload']").inner_text() == "upload: 6 spans"


def test_a_part_that_was_chosen_stays_while_the_recording_goes_on(page, bundle, tmp_path):
    first, then = parts(make_stream_recording())
    page.goto((bundle / "index.html").as_uri())
    take(page, first, tmp_path)
    shown = page.locator(".gpuviz-controls__text")
    page.mouse.move(*point(page, LANES, 0.3, 0.5))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    page.wait_for_function(
        "document.querySelector('.gpuviz-controls__text').textContent[0] !== 'a'"
    )
    chosen = shown.inner_text()

    take(page, then, tmp_path)

    assert chosen.endswith(" of 3.29 ms shown")
    assert shown.inner_text() == chosen.replace("3.29 ms", "5.49 ms")


def test_nothing_stays_of_a_view_that_is_closed(page, bundle, tmp_path):
    first, _ = parts(make_stream_recording())
    page.goto((bundle / "index.html").as_uri())
    empty = page.evaluate("document.body.innerHTML")
    take(page, first, tmp_path)

    page.evaluate("closeView()")

    assert page.evaluate("document.body.innerHTML") == empty
