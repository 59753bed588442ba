"""The GPUs of the Jupyter server's machine in JupyterLab's panel."""

import json
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.browser.lab import (
    LoadedLab,
    gpu_panel,
    holding,
    leave,
    open_in_lab,
    open_lab,
    prompt,
    run,
    run_cell,
    running_lab,
    until,
    watched_page,
    write_notebook,
)
from tests.integration.server.fake_devices import FIRST_PID, GIB, FakeDevices, two_devices

pytestmark = pytest.mark.browser

ASKED = "gpuviz/api/devices"
ASK_AGAIN_MS = 5000
CELLS = [
    "import os; from pathlib import Path; Path('pid').write_text(str(os.getpid()))",
    "%load_ext gpuviz",
]


@pytest.fixture(scope="module")
def module(folder: Path) -> FakeDevices:
    modules = folder / "modules"
    modules.mkdir()
    return FakeDevices(modules)


@pytest.fixture(scope="module")
def lab(module: FakeDevices, folder: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(module.folder))
        with running_lab(folder, base="/user/ada") as url:
            yield url


@pytest.fixture
def devices(module: FakeDevices) -> Iterator[FakeDevices]:
    yield module
    module.tell(devices=two_devices(), failure="")


@pytest.fixture(scope="module")
def all_asked() -> list[str]:
    """Return a list to which each request of a page for the devices is added."""
    return []


def prepare(page: Page, asked: list[str]) -> None:
    """Let the clock of a page be advanced, and add its requests for the devices to a list."""
    page.clock.install()
    page.on("request", lambda request: asked.append(request.url) if ASKED in request.url else None)


@pytest.fixture(scope="module")
def loaded_lab(chromium: Browser, lab: str, all_asked: list[str]) -> Iterator[LoadedLab]:
    loaded = LoadedLab(chromium, lab, prepare=lambda page: prepare(page, all_asked))
    yield loaded
    loaded.discard()


@pytest.fixture
def page(lab_page: Page) -> Page:
    return lab_page


@pytest.fixture
def asked(all_asked: list[str]) -> list[str]:
    """Return the list of a test's requests for the devices."""
    all_asked.clear()
    return all_asked


def ask_again_until(page: Page, holds: Callable[[], bool]) -> None:
    """Let the page ask until its answer says so: the server's may be a second old."""

    def asked() -> bool:
        page.clock.fast_forward(2 * ASK_AGAIN_MS)
        return holds()

    until(page, asked)


def show_panel(page: Page) -> Locator:
    gpu_panel(page)
    return page.locator("#gpuviz-panel")


def processes(device: Locator) -> list[str]:
    return [" ".join(text.split()) for text in device.locator("li").all_inner_texts()]


def test_nothing_is_asked_before_the_panel_is_shown(loaded_lab, asked):
    loaded_lab.discard()
    page = loaded_lab.page()
    page.locator(".jp-DirListing-item").first.wait_for()
    page.clock.fast_forward(10 * ASK_AGAIN_MS)
    before = asked.copy()
    show_panel(page).locator(".gpuviz-device").first.wait_for()
    loaded_lab.clear()

    assert before == []
    assert len(asked) > 0


def test_each_gpu_is_shown_by_process_while_no_kernel_runs(page, lab, asked):
    panel = show_panel(page)
    shown = panel.locator(".gpuviz-device")
    shown.nth(1).wait_for()
    shown.nth(0).get_by_text("53.0 GiB of").wait_for()
    meter = shown.nth(0).locator("meter")

    assert panel.get_by_text("No running kernels.").is_visible()
    assert shown.locator("h3").all_inner_texts() == ["NVIDIA H100 80GB HBM3", "NVIDIA L4"]
    assert meter.get_attribute("aria-label") == "53.0 GiB of 80.0 GiB in use"
    assert meter.evaluate("meter => meter.value / meter.max") == pytest.approx(53 / 80)
    assert processes(shown.nth(0)) == [
        f"process {FIRST_PID + 1} 40.0 GiB",
        f"process {FIRST_PID} 12.0 GiB",
    ]
    assert processes(shown.nth(1)) == [f"process {FIRST_PID + 2} unknown"]
    assert panel.get_by_text("Jupyter server").count() == 0
    assert {url.partition("?")[0] for url in asked} == {f"{lab}/{ASKED}"}


def test_the_server_is_asked_again_and_only_while_the_panel_is_shown(page, asked, devices):
    panel = show_panel(page)
    first = panel.locator(".gpuviz-device").first
    first.get_by_text("53.0 GiB of").wait_for()
    changed = two_devices()
    changed[0]["used"] = 60 * GIB
    devices.tell(devices=changed)
    page.clock.fast_forward(ASK_AGAIN_MS)
    first.get_by_text("60.0 GiB of").wait_for()
    page.locator(".jp-SideBar [data-id='filebrowser']").click()
    panel.wait_for(state="hidden")
    until_hidden = len(asked)
    page.clock.fast_forward(10 * ASK_AGAIN_MS)
    while_hidden = len(asked)
    changed[0]["used"] = 61 * GIB
    devices.tell(devices=changed)
    show_panel(page)
    first.get_by_text("61.0 GiB of").wait_for()

    assert until_hidden >= 2
    assert while_hidden == until_hidden


def test_a_process_is_named_by_its_notebook_though_no_kernel_has_gpuviz(page, folder, devices):
    write_notebook(folder, "train.ipynb", CELLS)
    open_in_lab(page, "train.ipynb")
    run(page, 0)
    pid = int((folder / "pid").read_text())
    told = two_devices()
    told[0]["processes"] = [{"pid": pid, "used": 7 * GIB}, {"pid": os.getpid(), "used": GIB}]
    devices.tell(devices=told)
    panel = show_panel(page)
    first = panel.locator(".gpuviz-device").first
    first.get_by_text("7.00 GiB").wait_for()
    of_server = processes(first)
    panel.get_by_text("gpuviz is not loaded").wait_for()
    run_cell(page, 1)
    panel.get_by_text("Not recording").wait_for()
    changed = [*told[:1], told[1] | {"used": 11 * GIB}]
    devices.tell(devices=changed)
    panel.get_by_text("11.0 GiB of").wait_for()

    assert of_server == [f"train.ipynb ({pid}) 7.00 GiB", f"process {os.getpid()} 1.00 GiB"]
    assert processes(first) == of_server
    assert panel.locator(".gpuviz-device").count() == 2


def test_the_server_tells_while_a_kernel_cannot(page, folder, devices):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    write_notebook(folder, "held.ipynb", [CELLS[1], holding(pipe)])
    open_in_lab(page, "held.ipynb")
    panel = show_panel(page)
    run_cell(page, 0)
    panel.get_by_text("Not recording").wait_for()
    first = panel.locator(".gpuviz-device").first
    first.get_by_text("53.0 GiB of").wait_for()
    run_cell(page, 1)
    until(page, pipe.with_suffix(".begun").exists)
    try:
        changed = two_devices()
        changed[0]["used"] = 60 * GIB
        devices.tell(devices=changed)
        page.clock.fast_forward(ASK_AGAIN_MS)
        first.get_by_text("60.0 GiB of").wait_for()
        held = prompt(page, 1)
    finally:
        pipe.write_text("")

    assert held == "[*]:"


def test_machines_are_named_where_the_server_and_a_kernel_are_on_two(page, folder, devices):
    far = {"machine": "hub-7", "devices": [two_devices()[1] | {"uuid": "GPU-far", "name": "Far"}]}
    page.route(f"**/{ASKED}*", lambda route: route.fulfill(json=far))
    write_notebook(folder, "gateway.ipynb", CELLS)
    open_in_lab(page, "gateway.ipynb")
    run_cell(page, 1)
    panel = show_panel(page)
    panel.locator(".gpuviz-device").nth(2).wait_for()
    where = panel.locator(".gpuviz-device__where").all_inner_texts()
    names = panel.locator(".gpuviz-device h3").all_inner_texts()
    page.unroute_all()

    assert names == [
        "Far",
        *[each["name"] for each in devices.devices],
    ]
    assert where == ["on hub-7, the Jupyter server", *[f"on {platform.node()}"] * 2]


def test_what_the_server_cannot_tell_any_more_is_not_shown(page, devices):
    panel = show_panel(page)
    shown = panel.locator(".gpuviz-device")
    shown.nth(1).wait_for()
    devices.tell(failure="out of order")
    ask_again_until(page, lambda: shown.count() == 0)
    devices.tell(failure="")
    ask_again_until(page, lambda: shown.count() == 2)


def test_a_machine_without_a_driver_has_no_gpu(page, devices):
    devices.tell(failure="no driver")
    panel = show_panel(page)
    panel.get_by_text("No NVIDIA GPU detected").wait_for()

    assert panel.locator(".gpuviz-device").count() == 0


def test_without_the_server_part_the_panel_is_as_it_was_and_asks_nothing(
    chromium, module, asked, tmp_path, monkeypatch
):
    off = tmp_path / "etc" / "jupyter_server_config.d"
    off.mkdir(parents=True)
    config = {"ServerApp": {"jpserver_extensions": {"gpuviz.server": False}}}
    (off / "gpuviz.json").write_text(json.dumps(config))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(off.parent))
    monkeypatch.setenv("PYTHONPATH", str(module.folder))
    write_notebook(tmp_path, "alone.ipynb", CELLS)
    with running_lab(tmp_path) as url, watched_page(chromium, at_end=leave) as page:
        prepare(page, asked)
        open_lab(page, url)
        panel = show_panel(page)
        panel.get_by_text("No running kernels.").wait_for()
        page.clock.fast_forward(2 * ASK_AGAIN_MS)
        at_first = panel.locator(".gpuviz-device").count()
        open_in_lab(page, "alone.ipynb")
        run_cell(page, 1)
        panel.locator(".gpuviz-device").nth(1).wait_for()
        of_kernel = panel.inner_text()

    assert at_first == 0
    assert asked == []
    assert "53.0 GiB of 80.0 GiB in use" in of_kernel
    assert platform.node() not in of_kernel
