"""The page about a failed request in a real browser, opened from disk with the network off."""

import pytest

import gpuviz
from tests.browser.test_report import open_tab

pytestmark = pytest.mark.browser

MIB = 1 << 20


@pytest.fixture
def failed(tmp_path):
    """Return the recording of a program that ran out of memory."""
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        held = [gpu.empty(100 * MIB) for _ in range(9)]
        with pytest.raises(MemoryError):
            gpu.empty(200 * MIB)
    assert len(held) == 9
    return recorder


def test_the_page_opens_with_its_verdict_and_the_timeline(page, failed):
    page.goto(failed.out_of_memory_pages[0].as_uri())
    page.wait_for_selector("html[data-gpuviz=ready]", state="attached")

    (expected,) = failed.recording.out_of_memory()
    assert page.locator("#gpuviz-verdict").inner_text() == expected.summary
    assert page.locator("#gpuviz-notice").is_hidden()
    assert page.locator(".gpuviz-plot").count() > 1
    assert "failed.<locals>" not in page.title()
    assert "after event 19 of 19 (oom, 200 MiB" in page.locator(".gpuviz-moment").inner_text()
    assert page.get_by_role("tab", selected=True).inner_text() == "Request"
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    open_tab(page, "allocated")
    assert page.get_by_role("region", name="Lines that held memory").is_visible()
    assert (
        page.locator("summary:visible")
        .first.inner_text()
        .startswith("held = [gpu.empty(100 * MIB)")
    )
