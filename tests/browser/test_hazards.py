"""The arrow between two operations that nothing orders, in a report."""

import pytest
from playwright.sync_api import Page

import gpuviz
from gpuviz.recording import Recording
from tests.browser.test_report import open_report, point

pytestmark = pytest.mark.browser

LANES = 4
NAMES = ("first stream", "second stream")
TITLE = "RAW, probable: read without waiting for the write (64.0 MiB, 1 pair, showed in this run)."


@pytest.fixture
def raced() -> Recording:
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        streams = [gpu.Stream(non_blocking=True) for _ in NAMES]
        for stream, name in zip(streams, NAMES, strict=True):
            gpuviz.name_stream(stream, name)
        array = gpu.empty(64 << 20)
        for stream, used in zip(streams, ({"writes": [array]}, {"reads": [array]}), strict=True):
            gpu.work_on_host(2e-4)
            with stream:
                gpu.launch(stream_kernel(used), duration=1e-3, share=0.1, **used)
        gpu.synchronize()
    return recorder.recording


def stream_kernel(used: dict[str, list[object]]) -> str:
    return "fill" if "writes" in used else "use"


def middle_of_the_arrow(page: Page, recording: Recording) -> tuple[float, float]:
    """Return the place between the lanes where the arrow crosses from one to the other."""
    rows = recording.table("activities").to_pylist()
    middle_ns = sum(row["time"] + row["end"] for row in rows) / 4
    x, _ = point(page, LANES, middle_ns / recording.duration_ns, 0.5)
    plot = page.locator(".gpuviz-plot").nth(LANES).bounding_box()
    lanes = [page.locator(f"[data-lane='{name}']") for name in NAMES]
    middles = [float(lane.get_attribute("data-middle-px") or 0) for lane in lanes]
    return x, plot["y"] + sum(middles) / 2


def test_an_arrow_names_its_hazard_and_leads_to_it(page, raced, tmp_path):
    (hazard,) = raced.hazards()
    open_report(page, raced, tmp_path)
    x, y = middle_of_the_arrow(page, raced)
    legend = page.locator(".gpuviz-legend", has_text="same memory, no order")

    page.mouse.move(x, y)
    page.locator(".gpuviz-tooltip").wait_for()
    assert page.locator(".gpuviz-tooltip").inner_text() == TITLE
    page.mouse.click(x, y)

    panel = page.locator("[data-panel='hazards']")
    panel.wait_for()
    assert legend.count() == 1
    assert hazard.fix in panel.inner_text()
    assert panel.locator("[data-item='1']").is_visible()


def test_beside_the_arrow_there_is_none(page, raced, tmp_path):
    open_report(page, raced, tmp_path)
    x, y = middle_of_the_arrow(page, raced)

    page.mouse.move(x - 60, y)

    assert TITLE not in page.locator(".gpuviz-tooltip").inner_text()
    page.mouse.click(x - 60, y)
    assert page.get_by_role("tab", name="Hazards").get_attribute("aria-selected") == "false"
