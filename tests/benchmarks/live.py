"""Latency of events in a live dashboard while a cell is busy, and the overhead on both sides."""

import json
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import CDPSession, Page, sync_playwright

from tests.browser.conftest import CHROMIUM_ARGUMENTS, chromium_program
from tests.browser.lab import open_notebook, run_cell, running_lab, wait_until_run, write_notebook

MEDIAN_MS, WORST_MS, COST, PAGE = 300.0, 1000.0, 0.01, 0.25
FRAMES_PER_S = 30.0

PREPARE = """
import json, time, gpuviz
gpu = gpuviz.SimulatedGPU(memory=4 << 30)
recorder = gpuviz.record(device=gpu)
recorder.start()
gpuviz.dashboard(recorder)
"""
# Never waits or sleeps, so the pump's thread gets the GIL only by requesting it.
BUSY = """
def busy(seconds):
    kept, log, begun = [], [], time.perf_counter()
    while time.perf_counter() - begun < seconds:
        kept.append(gpu.empty(1 << 16))
        gpu.launch("step", duration=1e-5, writes=kept[-1:])
        log.append((time.time() * 1000, recorder.status().events))
        sum(range(200_000))
    return log
log = busy(15)
print("LOG" + json.dumps(log) + "END")
"""
COST_OF_PUMP = """
def share(seconds):
    before, begun = recorder._live.pump.cpu_ns, time.perf_counter_ns()
    busy(seconds)
    return (recorder._live.pump.cpu_ns - before) / (time.perf_counter_ns() - begun)
watched = share(8)
recorder._views.feed._listeners.clear()
print("COST" + json.dumps([watched, share(8)]) + "END")
"""
FILL = """
kept = [gpu.empty(512) for _ in range(64)]
for number in range(333_000):
    kept[number % 64] = gpu.empty(512 * (1 + number % 255))
"""
# Zooms in, then moves by a key in each frame, back and forth; the frames in a second.
PAN = """async () => {
  const target = document.querySelector("[role=application]");
  target.focus();
  const press = (key) => target.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const frame = () => new Promise(requestAnimationFrame);
  for (let step = 0; step < 12; step += 1) { press("w"); await frame(); }
  const begun = performance.now();
  let frames = 0;
  while (performance.now() - begun < 6000) {
    press(Math.floor(frames / 40) % 2 ? "d" : "a");
    await frame();
    frames += 1;
  }
  return frames / ((performance.now() - begun) / 1000);
}"""
# Logs when a number of events was drawn: in the frame after the one that received it.
WATCH = """
window.drawn = [];
const note = () => {
  const events = Number(document.querySelector(".gpuviz-live__counts")?.dataset.events ?? "0");
  if (events > (window.drawn.at(-1)?.[1] ?? 0)) {
    const entry = [0, events];
    window.drawn.push(entry);
    requestAnimationFrame(() => requestAnimationFrame(() => { entry[0] = Date.now(); }));
  }
};
const drawn = { subtree: true, childList: true, attributeFilter: ["data-events"] };
new MutationObserver(note).observe(document.body, drawn);
"""

Row = tuple[str, str, str, bool]


def printed(page: Page, mark: str) -> list[object]:
    output = page.locator(".jp-OutputArea-output").filter(has_text=mark).last.inner_text()
    return json.loads(output.split(mark)[1].split("END")[0])


def latencies_ms(log: list[tuple[float, int]], drawn: list[tuple[float, int]]) -> list[float]:
    """Return the time from each event until a picture with it was drawn."""
    found = []
    index = 0
    for happened, number in log:
        while index < len(drawn) and drawn[index][1] < number:
            index += 1
        if index < len(drawn) and drawn[index][0] > 0:
            found.append(drawn[index][0] - happened)
    return found


def main_thread_s(devtools: CDPSession) -> float:
    """Return the total task time of a page's main thread, in s."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "TaskDuration")


def measure() -> tuple[list[float], float, float, float, float]:
    program = chromium_program()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_notebook(Path(folder), "live.ipynb", [PREPARE, BUSY, COST_OF_PUMP, FILL, BUSY])
        with running_lab(Path(folder)) as url:
            browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGUMENTS)
            page = browser.new_page(viewport={"width": 1540, "height": 1000})
            open_notebook(page, url, "live.ipynb")
            run_cell(page, 0)
            page.locator(".gpuviz-live__counts").get_by_text("activities").wait_for()
            page.evaluate(WATCH)
            devtools = page.context.new_cdp_session(page)
            devtools.send("Performance.enable")
            run_cell(page, 1)
            page.wait_for_timeout(2000)
            before, begun = main_thread_s(devtools), time.perf_counter()
            page.wait_for_timeout(10_000)
            busy = (main_thread_s(devtools) - before) / (time.perf_counter() - begun)
            wait_until_run(page, 1)
            page.wait_for_timeout(1000)
            latencies = latencies_ms(printed(page, "LOG"), page.evaluate("window.drawn"))
            run_cell(page, 2)
            wait_until_run(page, 2)
            watched, unwatched = printed(page, "COST")
            run_cell(page, 3)
            wait_until_run(page, 3)
            run_cell(page, 4)
            page.wait_for_timeout(3000)
            frames = page.evaluate(PAN)
            browser.close()
    return latencies, busy, watched, unwatched, frames


def rows() -> list[Row]:
    latencies, busy, watched, unwatched, frames = measure()
    median, worst = statistics.median(latencies), max(latencies)
    cost = watched - unwatched
    what = "live dashboard, cell busy"
    late = f"{what}: event to pixel"
    return [
        (f"{late}, median", f"{MEDIAN_MS:.0f} ms", f"{median:.0f} ms", median <= MEDIAN_MS),
        (f"{late}, worst", f"{WORST_MS:.0f} ms", f"{worst:.0f} ms", worst <= WORST_MS),
        (f"{what}: CPU beyond recording", f"{COST:.1%}", f"{cost:.2%}", cost <= COST),
        (f"{what}: main thread of the page", f"{PAGE:.0%}", f"{busy:.0%}", busy <= PAGE),
        (
            f"{what}, a million events: frames a second while panning",
            f"{FRAMES_PER_S:.0f}",
            f"{frames:.0f}",
            frames >= FRAMES_PER_S,
        ),
    ]
