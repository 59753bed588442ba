"""Recordings as documents of a real JupyterLab."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from zipfile import ZipFile

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Route

import gpuviz
from gpuviz.data.derived import DERIVED_VERSION
from tests.browser.lab import (
    LoadedLab,
    listed_file,
    open_lab,
    patient_page,
    running_lab,
    saved_on_server,
    until,
)

pytestmark = pytest.mark.browser

RECORDINGS = sorted(Path(gpuviz.__file__).parent.glob("commands/recordings/*.gpuviz"))
SNAPSHOT = Path(__file__).parents[1] / "unit" / "formats" / "data" / "pipeline.pickle"


class Runs:
    """Calls a function when it is unpickled."""

    def __reduce__(self):
        return os.getcwd, ()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    for path in RECORDINGS:
        shutil.copy(path, folder)
    whole = RECORDINGS[0].read_bytes()
    (folder / "cut.gpuviz").write_bytes(whole[: len(whole) // 2])
    (folder / "text.gpuviz").write_text("no recording")
    middle = len(whole) // 2
    damaged = whole[:middle] + bytes(64) + whole[middle + 64 :]
    (folder / "damaged.gpuviz").write_bytes(damaged)
    gpuviz.load(RECORDINGS[0]).report(folder / "run.html")
    shutil.copy(SNAPSHOT, folder / "snapshot.pickle")
    (folder / "runs.pickle").write_bytes(pickle.dumps({"segments": [Runs()]}))
    (folder / "cut.pkl").write_bytes(SNAPSHOT.read_bytes()[:5000])
    (folder / "weights.pkl").write_bytes(pickle.dumps({"bias": [0.5, 1.5]}))
    write_as_of(folder / "current.gpuviz", DERIVED_VERSION)
    write_as_of(folder / "old.gpuviz", 0)
    # The format is determined by the content, not by the name.
    shutil.copy(SNAPSHOT, folder / "snapshot.gpuviz")
    return folder


def write_as_of(path: Path, derived_version: int) -> None:
    """Write a recording with this version of derived tables; 0 for none."""
    with ZipFile(RECORDINGS[0]) as archive, ZipFile(path, "w") as written:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "manifest.json":
                manifest = json.loads(content) | {"derived_version": derived_version}
                content = json.dumps(manifest).encode()
            if derived_version > 0 or not name.startswith("derived/"):
                written.writestr(name, content)


def is_ours(message: ConsoleMessage) -> bool:
    """Return whether a message in the browser's console fails a test: a warning does, too."""
    # The browser logs an error response that the tab also shows.
    is_answer = "gpuviz/api/" in message.location.get("url", "")
    # JupyterLab warns of plugins that take more than five seconds, as on a busy machine.
    is_slow = message.text.endswith("to activate.")
    return message.type in {"error", "warning"} and not is_answer and not is_slow


@pytest.fixture(scope="module")
def loaded_lab(chromium: Browser, lab: str) -> Iterator[LoadedLab]:
    loaded = LoadedLab(chromium, lab, is_ours=is_ours)
    yield loaded
    loaded.discard()


@pytest.fixture
def page(lab_page: Page) -> Page:
    """Return JupyterLab's page, which lists the recordings."""
    listed_file(lab_page, RECORDINGS[0].name).wait_for()
    return lab_page


def tab(page: Page) -> Locator:
    return page.locator(".gpuviz-recording:visible")


def memory(page: Page) -> Locator:
    return tab(page).get_by_role("region", name="Memory over time")


def test_the_extension_is_enabled():
    listed = subprocess.run(
        [sys.executable, "-m", "jupyter", "labextension", "list"],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    line = next(line for line in listed.splitlines() if line.split()[:1] == ["gpuviz"])

    assert "enabled" in line
    assert "OK" in line


def test_a_double_click_shows_a_recording(page):
    for path in RECORDINGS:
        listed_file(page, path.name).dblclick()
        memory(page).wait_for()

        assert tab(page).get_by_role("region", name="Streams over time").count() == 1
        assert tab(page).locator("canvas").count() > 3


def test_findings_are_shown_above_the_charts_and_lead_to_their_time(page):
    path = next(each for each in RECORDINGS if each.stem == "image_pipeline")
    first = gpuviz.load(path).findings()[0]
    listed_file(page, path.name).dblclick()
    listed = tab(page).locator(".gpuviz-first__line")
    listed.first.wait_for()
    shown = tab(page).get_by_text(re.compile("^all .+ shown$"))
    shown.wait_for()
    listed.first.get_by_role("button", name="show").click()
    shown.wait_for(state="detached")

    assert first.title.split("`")[1] in listed.first.inner_text()
    assert listed.first.bounding_box()["y"] < tab(page).locator("canvas").first.bounding_box()["y"]


def test_findings_that_take_long_are_announced_and_move_nothing_when_they_come(page):
    held: list[Route] = []
    released: list[Route] = []

    def hold(route: Route) -> None:
        if released:
            route.continue_()
        else:
            held.append(route)

    page.route("**/gpuviz/api/findings?**", hold)
    listed_file(page, "kmeans.gpuviz").dblclick()
    memory(page).wait_for()
    tab(page).get_by_text("Looking for findings").wait_for()
    until(page, lambda: len(held) == 1)
    before = tab(page).locator(".gpuviz-overview").bounding_box()
    released.extend(held)
    held[0].continue_()
    tab(page).locator(".gpuviz-first__line").first.wait_for()
    page.unroute("**/gpuviz/api/findings?**")

    assert tab(page).get_by_text("Looking for findings").count() == 0
    assert tab(page).locator(".gpuviz-overview").bounding_box() == pytest.approx(before, abs=0.5)


def test_iterations_are_shown_below_the_time_axis_and_in_a_table(page):
    path = next(each for each in RECORDINGS if each.stem == "image_pipeline")
    row = gpuviz.load(path).iterations().to_pylist()[6]
    listed_file(page, path.name).dblclick()
    tab(page).get_by_label("Iterations. A click shows").wait_for()
    tab(page).get_by_role("tab", name="Iterations 24").click()
    numbers = tab(page).locator("[data-panel=iterations]")
    numbers.get_by_role("button", name="7", exact=True).click()

    measured = tab(page).locator(".gpuviz-measured").evaluate("panel => ({...panel.dataset})")
    assert measured == {"fromNs": str(row["start"]), "toNs": str(row["end"])}


def test_what_is_wrong_with_a_file_is_said_in_its_tab(page):
    wrong = {
        "cut.gpuviz": "the end of its ZIP archive is missing",
        "text.gpuviz": "neither a .gpuviz file, a gpuviz report nor",
        "damaged.gpuviz": ".arrow: damaged",
    }
    for name, said in wrong.items():
        listed_file(page, name).dblclick()
        alert = tab(page).get_by_role("alert")
        alert.wait_for()

        assert name in alert.inner_text()
        assert said in alert.inner_text()


def open_with(page: Page, name: str) -> Locator:
    """Return the entries of the menu of ways to open a file, the default first."""
    listed_file(page, name).click(button="right")
    page.locator(".lm-Menu-item", has_text="Open With").hover()
    page.locator(".lm-Menu-item", has_text="GPU Timeline").wait_for()
    return page.locator(".lm-Menu").last.locator(".lm-Menu-item")


def test_a_torch_snapshot_opens_by_open_with_and_by_no_double_click(page):
    ways = open_with(page, "snapshot.pickle")
    assert ways.first.inner_text() != "GPU Timeline"
    ways.filter(has_text="GPU Timeline").click()
    memory(page).wait_for()

    assert tab(page).get_by_role("region", name="Blocks over time").count() == 1
    assert tab(page).locator("canvas").count() > 2


def test_a_snapshot_by_another_name_is_known_by_its_content(page):
    listed_file(page, "snapshot.gpuviz").dblclick()
    memory(page).wait_for()

    assert tab(page).get_by_role("alert").count() == 0


def test_what_is_wrong_with_a_pickle_is_said_in_its_tab(page):
    wrong = {
        "runs.pickle": "could run code",
        "cut.pkl": "truncated",
        "weights.pkl": "expected a torch memory snapshot",
    }
    for name, said in wrong.items():
        open_with(page, name).filter(has_text="GPU Timeline").click()
        alert = tab(page).get_by_role("alert").filter(has_text=name)
        alert.wait_for()

        assert said in alert.inner_text()


def asked_for(url: str) -> list[str]:
    """Return the path whose conversion a URL requests, if any."""
    parts = urlsplit(url)
    asks = parts.path.endswith("/gpuviz/api/recordings")
    return parse_qs(parts.query)["path"] if asks else []


def test_the_server_is_asked_only_for_what_the_browser_cannot_show(page):
    asked: list[str] = []
    page.on("request", lambda request: asked.extend(asked_for(request.url)))
    recording = gpuviz.load(RECORDINGS[0])
    shown = []
    for name in ("current.gpuviz", "snapshot.gpuviz", "old.gpuviz"):
        listed_file(page, name).dblclick()
        memory(page).wait_for()
        shown.append(tab(page).locator(".gpuviz-recording__counts").inner_text())

    # A conversion that takes long is asked for again until it is done.
    assert list(dict.fromkeys(asked)) == ["snapshot.gpuviz", "old.gpuviz"]
    assert shown[0] == shown[2]
    assert f"{recording.manifest.events - recording.manifest.initial_events:,}" in shown[0]


def test_a_server_without_gpuviz_shows_recordings_and_says_what_snapshots_need(
    chromium, folder, tmp_path
):
    for name in ("snapshot.pickle", "old.gpuviz"):
        shutil.copy(folder / name, tmp_path)
    disabled = ["--ServerApp.jpserver_extensions={'gpuviz.server': False}"]
    with (
        running_lab(tmp_path, more_options=disabled) as url,
        patient_page(chromium) as page,
    ):
        open_lab(page, url)
        listed_file(page, "old.gpuviz").dblclick()
        memory(page).wait_for()
        open_with(page, "snapshot.pickle").filter(has_text="GPU Timeline").click()
        alert = tab(page).get_by_role("alert").filter(has_text="snapshot.pickle")
        alert.wait_for()
        said = alert.inner_text()

    assert "Install it there, then restart JupyterLab" in said


def test_a_report_opens_by_open_with_and_beside_it_a_recording(page):
    open_with(page, "run.html").filter(has_text="GPU Timeline").click()
    memory(page).wait_for()
    listed_file(page, RECORDINGS[1].name).dblclick()
    page.wait_for_function("document.querySelectorAll('.gpuviz-recording').length === 2")
    memory(page).wait_for()

    assert page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab").count() >= 2


def test_two_selected_recordings_are_compared(page):
    listed_file(page, RECORDINGS[0].name).click()
    listed_file(page, RECORDINGS[1].name).click(modifiers=["ControlOrMeta"])
    listed_file(page, RECORDINGS[1].name).click(button="right")
    page.locator(".lm-Menu-item", has_text="Compare With").click()
    compared = page.frame_locator(".jp-IFrame iframe")
    after = compared.get_by_role("region", name="After: memory over time")
    after.wait_for()

    assert compared.get_by_role("tab", name="Changes").get_attribute("aria-selected") == "true"
    assert " and " in page.locator(".lm-DockPanel-tabBar .lm-mod-current").first.inner_text()


def test_a_reloaded_page_brings_recordings_back(page, lab):
    # JupyterLab saves its workspace a moment after it changed.
    with saved_on_server(page, "/api/workspaces/", RECORDINGS[2].name):
        listed_file(page, RECORDINGS[2].name).dblclick()
        memory(page).wait_for()
    page.goto(f"{lab}/lab")

    memory(page).wait_for()
    assert RECORDINGS[2].name in page.locator(".lm-DockPanel-tabBar").first.inner_text()
