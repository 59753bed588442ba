"""Cost of the workbench with eight processes of a GPU and eight streams each, 10 million events."""

import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import sync_playwright

from gpuviz.merging.merge import merge
from gpuviz.recording import Recording
from gpuviz.report.page import write_report
from tests.benchmarks._large_recording import recorded
from tests.benchmarks.timeline import Row, opened, redraws_ms
from tests.browser.conftest import CHROMIUM_ARGUMENTS, chromium_program

PROCESSES = 8
EVENTS = 10_000_000
FIRST_S, REDRAW_MS = 3.0, 50.0


def merged(events: int = EVENTS) -> Recording:
    """Return the recording of eight ranks, half of whose events are activities."""
    each = events // PROCESSES // 2
    one = recorded(each, each // 8 * 8)
    parts = []
    for number in range(PROCESSES):
        launch = {"rank": number, "ranks": PROCESSES}
        facts = {"process_id": number + 1, "boot_id": "one", "host": "node", "launch": launch}
        times = {"start_monotonic_ns": 10**9 + number * 12_345, "start_unix_ns": 10**18}
        parts.append(Recording(one.tables, replace(one.manifest, **facts, **times)))
    return merge(parts)


def rows() -> list[Row]:
    """Measure everything; return the rows of the table."""
    program = chromium_program()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = write_report(merged(), Path(folder, "merged.html"))
        size = path.stat().st_size >> 20
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGUMENTS)
        page = opened(browser, path)
        shown = page.evaluate("window.shownMs")
        first, whole = shown["reading"] / 1000, shown["ready"] / 1000
        page.wait_for_timeout(1000)
        times = [sum(frames) for frames in redraws_ms(page)]
        browser.close()
    median, worst = statistics.median(times), max(times)
    what = f"8 GPUs, 64 streams, 10 million events ({size} MiB report)"
    return [
        (f"{what}: first picture", f"{FIRST_S:.0f} s", f"{first:.1f} s", first <= FIRST_S),
        (f"{what}: all data", "no bound", f"{whole:.1f} s", True),
        (f"{what}: redraw, median", f"{REDRAW_MS:.0f} ms", f"{median:.1f} ms", median <= REDRAW_MS),
        (f"{what}: redraw, worst", "no bound", f"{worst:.1f} ms", True),
    ]
