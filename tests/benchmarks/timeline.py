"""Cost of a timeline of a million blocks and a million activities in Chromium."""

import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from gpuviz.report.page import write_report
from tests.benchmarks._large_recording import recorded
from tests.browser.conftest import CHROMIUM_ARGUMENTS, chromium_program

COUNT = 1_000_000
LARGE = 5_000_000
ZOOM_STEPS = 40
MEDIAN_MS, LONGEST_MS, FRAME_MS = 12.0, 50.0, 16.7
FIRST_S, ALL_S, MEMORY_MIB = 2.0, 15.0, 1300.0
# Memory events of a recording, and how long one wheel step may take the main thread.
WHEEL_MS = {267: 8.0, 39_000: 16.0}
WHEEL_STEPS = 30
POLLING_MS = 5
# Each frame logs its duration, and the page logs when something is shown.
WATCH = """
window.frameMs = [];
window.waitingFrames = new Set();
const request = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => {
  const frame = request((time) => {
    const begin = performance.now();
    window.waitingFrames.delete(frame);
    draw(time);
    window.frameMs.push(performance.now() - begin);
  });
  window.waitingFrames.add(frame);
  return frame;
};
const cancel = window.cancelAnimationFrame.bind(window);
window.cancelAnimationFrame = (frame) => {
  window.waitingFrames.delete(frame);
  cancel(frame);
};
window.blockMs = [];
new PerformanceObserver((list) => {
  window.blockMs.push(...list.getEntries().map((entry) => entry.duration));
}).observe({ type: "longtask", buffered: true });
window.shownMs = {};
new MutationObserver(() => {
  const state = document.documentElement.dataset.gpuviz;
  if (state !== undefined && !(state in window.shownMs)) {
    window.shownMs[state] = 0;
    request(() => request(() => { window.shownMs[state] = performance.now(); }));
  }
}).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-gpuviz"] });
"""
DRAWN = "() => window.frameMs.length > 0 && window.waitingFrames.size === 0"
HOVER = """
([x, y]) => {
  const plot = document.elementFromPoint(x, y).closest(".gpuviz-plot");
  const begin = performance.now();
  plot.dispatchEvent(new PointerEvent("pointermove", {
    clientX: x, clientY: y, bubbles: true, pointerId: 1,
  }));
  document.querySelector(".gpuviz-tooltip").getBoundingClientRect();
  return [performance.now() - begin, !document.querySelector(".gpuviz-tooltip").hidden];
}
"""

Row = tuple[str, str, str, bool]


def opened(browser: Browser, path: Path) -> Page:
    """Open a report, and return its page once everything is shown."""
    page = browser.new_page(viewport={"width": 1540, "height": 1000})
    page.add_init_script(WATCH)
    page.goto(path.as_uri(), timeout=120_000, wait_until="commit")
    page.wait_for_function("() => window.shownMs.ready > 0", timeout=120_000)
    return page


def redraws_ms(page: Page) -> list[list[float]]:
    """Return how long the frames of each redraw take while zooming in and out, in ms."""
    redraws = []
    for key in ("w" * ZOOM_STEPS) + ("s" * ZOOM_STEPS):
        page.evaluate("window.frameMs.length = 0")
        page.keyboard.press(key)
        page.wait_for_function(DRAWN, polling=POLLING_MS, timeout=5000)
        redraws.append(page.evaluate("window.frameMs"))
    return redraws


def first_hover_ms(page: Page) -> float:
    """Return the time from pointing at the map until the first tooltip is shown, in ms."""
    charts = page.locator(".gpuviz-plot").nth(2)
    charts.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    box = charts.bounding_box()
    assert box is not None
    place = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    taken, is_shown = page.evaluate(HOVER, place)
    assert is_shown
    return float(taken)


def memory_mib(browser: Browser) -> float:
    """Return the peak memory of a tab's process, from the kernel."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    held = [
        int(line.split()[1]) / 1024
        for process in processes
        if process["type"] == "renderer"
        for line in Path(f"/proc/{process['id']}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return max(held)


def wheel_step_ms(page: Page) -> float:
    """Return the median of the main thread's work for a wheel step, drawing included, in ms."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked_ms() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    def step_ms(delta: int) -> float:
        before = worked_ms()
        if delta:
            page.mouse.wheel(0, delta)
        page.wait_for_timeout(100)
        return worked_ms() - before

    box = page.locator(".gpuviz-plot").nth(2).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.keyboard.down("Control")
    in_and_out = [-60] * (WHEEL_STEPS // 2) + [60] * (WHEEL_STEPS // 2)
    stepped = statistics.median(map(step_ms, in_and_out))
    page.keyboard.up("Control")
    # What measuring itself costs.
    return stepped - statistics.median(step_ms(0) for _ in range(WHEEL_STEPS))


def wheeling(browser: Browser, folder: Path) -> list[Row]:
    found = []
    for events, bound in WHEEL_MS.items():
        page = opened(browser, write_report(recorded(events, 0), folder / f"{events}.html"))
        page.wait_for_timeout(1000)
        taken = wheel_step_ms(page)
        page.close()
        what = f"one wheel step, {events:,} memory events"
        found.append((what, f"{bound:.0f} ms", f"{taken:.1f} ms", taken <= bound))
    return found


def redrawing(browser: Browser, folder: Path) -> list[Row]:
    path = write_report(recorded(2 * COUNT, COUNT), folder / "large.html")
    page = opened(browser, path)
    page.wait_for_timeout(1000)
    hover = first_hover_ms(page)
    redraws = redraws_ms(page)
    page.close()
    times = [sum(frames) for frames in redraws]
    median, longest = statistics.median(times), max(map(max, redraws))
    what = "1 million blocks + 1 million activities"
    return [
        (f"{what}: redraw, median", f"{MEDIAN_MS:.0f} ms", f"{median:.1f} ms", median <= MEDIAN_MS),
        (f"{what}: redraw, worst in all its frames", "-", f"{max(times):.1f} ms", True),
        (
            f"{what}: redraw, longest frame",
            f"{LONGEST_MS:.0f} ms",
            f"{longest:.1f} ms",
            longest <= LONGEST_MS,
        ),
        (f"{what}: first tooltip", "one frame", f"{hover:.1f} ms", hover <= FRAME_MS),
    ]


def opening(browser: Browser, folder: Path) -> list[Row]:
    path = write_report(recorded(LARGE, LARGE), folder / "larger.html")
    page = opened(browser, path)
    shown = page.evaluate("window.shownMs")
    block = max([0, *page.evaluate("window.blockMs")])
    first, whole = shown["reading"] / 1000, shown["ready"] / 1000
    memory = memory_mib(browser)
    page.close()
    what = f"10 million events ({path.stat().st_size >> 20} MiB report)"
    return [
        (f"{what}: first picture", f"{FIRST_S:.0f} s", f"{first:.1f} s", first <= FIRST_S),
        (f"{what}: all data", f"{ALL_S:.0f} s", f"{whole:.1f} s", whole <= ALL_S),
        (
            f"{what}: most memory of the tab's process",
            f"{MEMORY_MIB:.0f} MiB",
            f"{memory:.0f} MiB",
            memory <= MEMORY_MIB,
        ),
        (f"{what}: longest block while reading", "-", f"{block:.0f} ms", True),
    ]


def rows() -> list[Row]:
    program = chromium_program()
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for measure in (wheeling, redrawing, opening):
            browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGUMENTS)
            found += measure(browser, Path(folder))
            browser.close()
    return found
