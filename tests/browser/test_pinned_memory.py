"""The track of pinned host memory in a report."""

import pytest

import gpuviz
from tests.browser.test_report_links import open_at

pytestmark = pytest.mark.browser

MIB = 1 << 20


def recorded(*, pinned):
    gpu = gpuviz.SimulatedGPU(1 << 30, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        array = gpu.empty(8 * MIB)
        kept = gpu.empty_pinned(3 * MIB) if pinned else None
        freed = gpu.empty_pinned(8 * MIB) if pinned else None
        gpu.launch("spin", writes=[array], duration=5e-3)
        gpu.copy_to_device(array, host=freed)
        del freed
        gpu.synchronize()
        del array, kept
    return recorder.recording


def test_a_recording_with_pinned_memory_has_its_track_with_the_levels_at_the_cursor(page, tmp_path):
    open_at(page, recorded(pinned=True), tmp_path, "#event=0")
    track = page.locator("[data-pane=pinned]")
    plot = track.locator("canvas").first.bounding_box()

    # In the kernel before the copy that the freed block waits for.
    page.mouse.move(plot["x"] + plot["width"] / 2, plot["y"] + plot["height"] / 2)

    texts = track.locator("[data-level]").all_inner_texts()
    assert texts == ["12.0 MiB", "4.00 MiB", "12.0 MiB", "11.0 MiB"]
    assert page.locator(".gpuviz-tooltip").inner_text().split("\n")[1:] == [
        "8.00 MiB freed, waiting for copies",
        "0 B cached",
        "1.00 MiB lost to rounding",
    ]


def test_the_moment_shown_has_the_pinned_memory(page, tmp_path):
    open_at(page, recorded(pinned=True), tmp_path)

    page.get_by_role("tab", name="At this moment").click()

    page.get_by_role("button", name="End", exact=True).click()
    moment = page.locator(".gpuviz-moment")
    assert moment.inner_text().endswith(
        "Pinned host memory: 4.00 MiB allocated of 12.0 MiB reserved."
    )


def test_a_span_has_the_peak_the_lowest_and_the_mean_of_pinned_memory(page, tmp_path):
    recording = recorded(pinned=True)
    middle = recording.duration_ns // 2

    open_at(page, recording, tmp_path, f"#span={middle}-{middle + 1000}")

    text = page.get_by_role("region", name="Measured").inner_text()
    assert "peak pinned\n4.00 MiB\nlowest\n4.00 MiB\nmean\n4.00 MiB\n" in text


def test_a_recording_without_pinned_memory_has_no_such_track(page, tmp_path):
    open_at(page, recorded(pinned=False), tmp_path)

    assert page.locator("[data-pane=memory]").is_visible()
    assert not page.locator("[data-pane=pinned]").is_visible()
    assert "Pinned" not in page.locator(".gpuviz-moment").inner_text()
