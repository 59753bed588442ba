"""What a timeline of a million blocks and a million activities costs in Chromium."""

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from playwright.sync_api import Page, sync_playwright

from gpuviz.manifest import Manifest
from gpuviz.recording import Recording
from gpuviz.report.page import write_report
from gpuviz.stream_handle import stream_row
from gpuviz.tables import ACTIONS, DICTIONARIES, schemas
from tests.browser.conftest import CHROMIUM_ARGUMENTS

COUNT = 1_000_000
STREAMS = 8
SLOTS = 4096
SLOT_BYTES = 1 << 17
ADDRESS = 0x7F00_0000_0000
LENGTH_NS = 60_000_000_000
ZOOM_STEPS = 40
OPENING_S = 15.0
MEDIAN_MS, WORST_MS = 16.0, 50.0
LEAST_MS = 1.0
# Drawing happens in frames; each notes how long it took.
TIMED_FRAMES = """
window.frameMs = [];
const request = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => request((time) => {
  const begin = performance.now();
  draw(time);
  window.frameMs.push(performance.now() - begin);
});
"""

Row = tuple[str, str, str, bool]


def coded(values: np.ndarray, names: tuple[str, ...]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int8)), pa.array(names))


def table(name: str, columns: dict[str, object], rows: int) -> pa.Table:
    """Return a table; columns that are not named hold 0."""
    schema = schemas()[name]
    nothing = np.zeros(rows, np.int64)
    return pa.table(
        [
            columns[field.name]
            if isinstance(columns.get(field.name), pa.Array)
            else coded(nothing, DICTIONARIES[name, field.name])
            if pa.types.is_dictionary(field.type)
            else pa.array(np.asarray(columns.get(field.name, nothing)), field.type)
            for field in schema
        ],
        schema=schema,
    )


def memory_events(generator: np.random.Generator) -> pa.Table:
    """Return a segment, and then slots of it that are taken and left in turn."""
    slot = generator.integers(0, SLOTS, 2 * COUNT)
    order = np.argsort(slot, kind="stable")
    ranks = np.empty(2 * COUNT, np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(slot, minlength=SLOTS))[:-1]])
    ranks[order] = np.arange(2 * COUNT) - starts[slot[order]]
    action = np.where(ranks % 2 == 0, ACTIONS.index("alloc"), ACTIONS.index("free_completed"))
    size = 512 * (1 + slot % 255)
    first = {"action": ACTIONS.index("segment_alloc"), "size": SLOTS * SLOT_BYTES}
    columns = {
        "time": np.sort(generator.integers(0, LENGTH_NS, 2 * COUNT)),
        "address": ADDRESS + slot * SLOT_BYTES,
        "size": size,
        "requested_size": size - 100,
        "action": action,
    }
    start = {"time": 0, "address": ADDRESS, "requested_size": 0} | first
    whole = {name: np.concatenate([[start[name]], values]) for name, values in columns.items()}
    count = 2 * COUNT + 1
    whole |= {"action": coded(whole["action"], ACTIONS), "stream": np.ones(count)}
    return table("memory_events", whole | {"pool": np.ones(count)}, count)


def activities(generator: np.random.Generator) -> pa.Table:
    """Return activities that follow each other on each of the streams."""
    begins = np.sort(generator.integers(0, LENGTH_NS, (STREAMS, COUNT // STREAMS)), axis=1)
    ends = np.concatenate([begins[:, 1:], np.full((STREAMS, 1), LENGTH_NS)], axis=1)
    ends = begins + ((ends - begins) * generator.random(begins.shape)).astype(np.int64)
    order = np.argsort(begins.ravel())
    columns = {
        "time": begins.ravel()[order],
        "end": ends.ravel()[order],
        "stream": np.repeat(np.arange(1, STREAMS + 1), COUNT // STREAMS)[order],
        "correlation": np.arange(1, COUNT + 1),
        "name": np.ones(COUNT),
        "kind": coded(generator.integers(0, 3, COUNT), DICTIONARIES["activities", "kind"]),
    }
    return table("activities", columns, COUNT)


def recorded() -> Recording:
    generator = np.random.default_rng(1)
    known = schemas()
    rows = {
        "devices": [{"id": 0, "name": "GPU", "total_memory": 80 << 30, "kind": "simulated"}],
        "streams": [stream_row(number, 0, number << 12) for number in range(1, STREAMS + 1)],
        "pools": [{"id": 1, "owner": 0, "segment_type": "large"}],
        "strings": [{"id": 1, "text": "kernel"}],
    }
    tables = {name: pa.Table.from_pylist(each, schema=known[name]) for name, each in rows.items()}
    tables |= {"memory_events": memory_events(generator), "activities": activities(generator)}
    return Recording(tables, Manifest(simulated=True, duration_ns=LENGTH_NS, initial_events=1))


def frames_ms(page: Page) -> list[float]:
    """Return how long each redraw of all charts takes while a reader zooms in and out."""
    page.evaluate("window.frameMs.length = 0")
    for key in ("w" * ZOOM_STEPS) + ("s" * ZOOM_STEPS):
        drawn = page.evaluate("window.frameMs.length")
        page.keyboard.press(key)
        page.wait_for_function("drawn => window.frameMs.length > drawn", arg=drawn, timeout=5000)
    # Waiting for a frame asks for frames of its own, in which nothing is drawn.
    return [taken for taken in page.evaluate("window.frameMs") if taken >= LEAST_MS]


def rows() -> list[Row]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = write_report(recorded(), Path(folder) / "large.html")
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGUMENTS)
        page = browser.new_page(viewport={"width": 1540, "height": 1000})
        page.add_init_script(TIMED_FRAMES)
        begin = time.perf_counter()
        page.goto(path.as_uri(), timeout=120_000)
        page.wait_for_selector("html[data-gpuviz=ready]", state="attached", timeout=120_000)
        opening_s = time.perf_counter() - begin
        page.wait_for_timeout(1000)
        times = frames_ms(page)
        browser.close()
    median, worst = statistics.median(times), max(times)
    what = "timeline of 1 million blocks + 1 million activities"
    return [
        (f"{what}: open", f"{OPENING_S:.0f} s", f"{opening_s:.1f} s", opening_s <= OPENING_S),
        (f"{what}: redraw, median", f"{MEDIAN_MS:.0f} ms", f"{median:.1f} ms", median <= MEDIAN_MS),
        (f"{what}: redraw, worst", f"{WORST_MS:.0f} ms", f"{worst:.1f} ms", worst <= WORST_MS),
    ]
