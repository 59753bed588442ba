"""gpuviz's menus, palette, launcher, keys and settings in JupyterLab."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

import gpuviz
from tests.browser.lab import (
    gpu_panel,
    open_in_lab,
    palette,
    run,
    saved_on_server,
    wait_until_restored,
    write_notebook,
)

pytestmark = pytest.mark.browser

SETUP, STOP, PROGRAM, MOVE = range(4)
CELLS = [
    "import gpuviz\n%load_ext gpuviz\ngpu = gpuviz.SimulatedGPU()\n%gpuviz start --simulated gpu",
    "%gpuviz stop",
    "kept = [gpu.empty(1 << 20) for _ in range(8)]",
    "import os; os.chdir('/')",
]
# The dashboard and the panel in a saved workspace.
OPEN = ("gpuviz-dashboards:", '"current":"gpuviz-panel"')
MENUS = {
    "File": ["Open GPU Recording…"],
    "View": ["Show GPU Panel", "GPU Dashboard"],
    "Run": ["Profile This Cell on the GPU"],
    "Kernel": [
        "Load gpuviz in This Kernel",
        "Start Recording the GPU",
        "Stop Recording the GPU",
        "Save GPU Recording",
        "Save GPU Report",
    ],
    "Settings": ["GPU Settings…"],
}


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name[5:30]


@pytest.fixture
def page(lab_page: Page, folder: Path, name: str) -> Page:
    """Return a page with a new notebook."""
    write_notebook(folder, f"{name}.ipynb", CELLS)
    open_in_lab(lab_page, f"{name}.ipynb")
    return lab_page


def menu(page: Page, name: str) -> list[str]:
    """Open a menu, and return the labels in it."""
    page.locator(".lm-MenuBar-itemLabel").get_by_text(name, exact=True).click()
    labels = page.locator(".lm-MenuBar-menu .lm-Menu-itemLabel")
    labels.first.wait_for()
    return labels.all_inner_texts()


def choose(page: Page, name: str, label: str) -> None:
    menu(page, name)
    page.locator(".lm-Menu-item", has_text=label).click()


def test_the_menus_have_every_command_at_its_place(page):
    found = {}
    for name, labels in MENUS.items():
        found[name] = [label for label in menu(page, name) if label in labels]
        page.keyboard.press("Escape")

    assert found == MENUS


def test_a_recording_is_started_saved_and_stopped_by_menus(page, folder, name):
    run(page, SETUP)
    run(page, STOP)
    # It records the same device as last time: the simulated one.
    choose(page, "Kernel", "Start Recording the GPU")
    page.get_by_text("Recording started.").first.wait_for()
    run(page, PROGRAM)
    choose(page, "Kernel", "Save GPU Recording")
    page.get_by_text("Wrote").first.wait_for()
    choose(page, "Kernel", "Stop Recording the GPU")
    page.get_by_text("Recording stopped.").wait_for()
    (saved,) = folder.glob(f"{name}-*.gpuviz")

    assert gpuviz.load(saved).memory_stats()["allocation.all.current"] == 8


def test_what_was_saved_opens_from_the_message_about_it(page):
    run(page, SETUP)
    run(page, PROGRAM)
    palette(page, "Save GPU Report")
    page.get_by_role("button", name="Open", exact=True).click()

    page.locator(".gpuviz-recording:visible").get_by_role(
        "region", name="Memory over time"
    ).wait_for()


def test_files_stand_beside_the_notebook_wherever_its_program_works(page, folder, name):
    run(page, SETUP)
    run(page, PROGRAM)
    run(page, MOVE)
    gpu_panel(page)
    card = page.locator("#gpuviz-panel .gpuviz-card").filter(has_text=name)
    card.get_by_role("button", name="Save").click()
    card.get_by_text("Wrote").wait_for()

    assert len(list(folder.glob(f"{name}-*.gpuviz"))) == 1


def test_keys_profile_the_cell(page):
    run(page, SETUP)
    page.locator(".jp-CodeCell .cm-content").nth(PROGRAM).click()
    page.keyboard.press("Control+Alt+Enter")

    page.locator(".jp-CodeCell").nth(PROGRAM).get_by_text("8.00 MiB").first.wait_for()


def test_the_launcher_and_the_dialog_open_a_recording(lab_page, folder):
    page = lab_page
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu) as recorder:
        kept = gpu.empty(1 << 20)
        del kept
    recorder.recording.save(folder / "launched.gpuviz")
    (folder / "notes.txt").write_text("no recording")
    page.locator(".jp-LauncherCard", has_text="Open GPU Recording…").click()
    dialog = page.locator(".jp-Open-Dialog")
    chosen = dialog.locator(".jp-DirListing-item", has_text="launched.gpuviz")
    chosen.click()
    names = dialog.locator(".jp-DirListing-itemText").all_inner_texts()
    page.locator(".jp-Dialog").get_by_role("button", name="Select").click()
    page.locator(".gpuviz-recording:visible").get_by_role(
        "region", name="Memory over time"
    ).wait_for()

    assert "notes.txt" not in names


def test_settings_say_what_is_recorded_and_what_reports_hold(page, folder, name):
    palette(page, "GPU Settings…")
    editor = page.locator(".jp-SettingsPanel")
    # JupyterLab saves settings a moment after they changed.
    with saved_on_server(page, "/api/settings/gpuviz", "redact"):
        editor.get_by_label("Call stacks").uncheck()
        editor.get_by_label("Redacted reports").check()
    page.locator(".lm-TabBar-tab", has_text=f"{name}.ipynb").click()
    run(page, SETUP)
    run(page, STOP)
    palette(page, "Start Recording the GPU")
    page.get_by_text("Recording started.").first.wait_for()
    run(page, PROGRAM)
    palette(page, "Save GPU Report")
    page.get_by_text("Wrote").first.wait_for()
    (report,) = folder.glob(f"{name}-*.html")
    events = gpuviz.load(report).table("memory_events").to_pylist()

    assert {event["stack"] for event in events} == {0}
    assert "redacted" in report.read_text().lower()


def test_a_dashboard_comes_back_with_its_notebook_and_with_a_new_kernel(page, lab, name):
    run(page, SETUP)
    # JupyterLab saves its workspace a moment after it changed.
    with saved_on_server(page, "/api/workspaces/", *OPEN):
        palette(page, "GPU Dashboard")
        dashboard = page.locator(".gpuviz-dashboard-tab")
        dashboard.get_by_text("Stop", exact=True).wait_for()
        gpu_panel(page)
    page.goto(f"{lab}/lab/tree/{name}.ipynb")
    wait_until_restored(page)
    dashboard.get_by_text("Stop", exact=True).wait_for()
    card = page.locator("#gpuviz-panel .gpuviz-card").filter(has_text=name)
    card.get_by_text("Recording for").wait_for()
    run(page, PROGRAM)
    counter = page.locator(".jp-CodeCell .jp-InputPrompt").nth(PROGRAM).text_content()
    page.locator(".lm-TabBar-tab", has_text=f"{name}.ipynb").first.click()
    palette(page, "Restart Kernel…")
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    dashboard.get_by_text("Start", exact=True).wait_for()

    # Dashboards do not count as cells of the user.
    assert (counter or "").strip() == "[2]:"
