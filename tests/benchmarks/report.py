"""Cost of reports of millions of events: writing, size, and time to the first picture."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from playwright.sync_api import sync_playwright

from gpuviz.data.manifest import Manifest
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import ACTIONS, schemas
from gpuviz.recording import Recording
from gpuviz.report.page import write_report
from tests.benchmarks._large_recording import coded, table
from tests.benchmarks.timeline import opened
from tests.browser.conftest import CHROMIUM_ARGUMENTS, chromium_program

ROUNDS = 3
FRAMES = 12
STACKS = 400
SLOTS = 2048
ADDRESS = 0x7F00_0000_0000
WRITTEN_S, LARGEST_BYTES = 5.0, 20_000_000
FIRST_SMALL_S, FIRST_PICTURE_S, WHOLE_S = 0.3, 1.0, 2.0
LARGEST_SMALL_BYTES = 2_000_000
HUGE_S, HUGE_FITTING_S, HUGE_MEMORY = 8.0, 12.0, 2 * (1 << 30)
# In a separate process, so that its peak memory is that of loading and reporting alone.
HUGE = """
import resource, sys, time
import gpuviz
recording = gpuviz.load(sys.argv[1])
begun = time.perf_counter()
recording.report(sys.argv[2], overwrite=True, max_size=int(sys.argv[3]) or None)
print(time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
"""
MIB = 1 << 20

Row = tuple[str, str, str, bool]


def one_step(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the slot and the action of each event of a step; a free has two events."""
    slots = generator.permutation(SLOTS)[: SLOTS // 4]
    begin = np.arange(len(slots))
    freed = begin + generator.integers(1, 60, len(slots)) + 0.3
    order = np.argsort(np.concatenate([begin, freed]))
    is_free = order >= len(slots)
    rows = np.repeat(np.arange(len(order)), np.where(is_free, 2, 1))
    is_second = np.concatenate([[False], rows[1:] == rows[:-1]])
    freeing = np.where(is_second, ACTIONS.index("free_completed"), ACTIONS.index("free_requested"))
    actions = np.where(is_free[rows], freeing, ACTIONS.index("alloc"))
    return slots[order % len(slots)][rows], actions


def memory_events(count: int, generator: np.random.Generator) -> pa.Table:
    """Return a segment, and then equal steps that allocate and free its slots.

    As in an iterative program, all steps have the same order of allocations, sizes and call stacks;
    only times vary.
    """
    slots, actions = one_step(generator)
    slot, action = np.resize(slots, count), np.resize(actions, count)
    size = 512 * (1 + (slot * 37) % 255)
    gaps = generator.exponential(2_000, count).astype(np.int64)
    gaps[action == ACTIONS.index("free_completed")] = 90
    columns = {
        "time": np.cumsum(gaps),
        "address": ADDRESS + slot * (1 << 17),
        "size": size,
        "requested_size": size - (slot * 7) % 500,
        "action": action,
        "stack": 1 + (slot * 13) % STACKS,
    }
    first = {"action": ACTIONS.index("segment_alloc"), "size": SLOTS << 17, "address": ADDRESS}
    whole: dict[str, object] = {
        name: np.concatenate([[first.get(name, 0)], values]) for name, values in columns.items()
    }
    ones = np.ones(count + 1)
    whole["action"] = coded(np.asarray(whole["action"]), ACTIONS)
    return table(
        "memory_events", whole | dict.fromkeys(("stream", "pool", "thread"), ones), count + 1
    )


def recorded(count: int) -> Recording:
    generator = np.random.default_rng(3)
    known = schemas()
    events = memory_events(count, generator)
    rows = {
        "devices": [{"id": 0, "name": "GPU", "total_memory": 80 << 30, "kind": "simulated"}],
        "streams": [stream_row(1, 0, 0)],
        "pools": [{"id": 1, "owner": 0, "segment_type": "large"}],
        "frames": [
            {
                "id": number,
                "name": f"function_{number % 83}",
                "filename": f"/home/user/project/module_{number % 17}.py",
                "line": number,
                "cell": 0,
                "source": f"array_{number} = work(array_{number % 7}, axis={number % 3})",
            }
            for number in range(1, STACKS + 1)
        ],
        "stacks": [
            {"id": n, "frames": [n, *generator.integers(1, STACKS, FRAMES - 1).tolist()]}
            for n in range(1, STACKS + 1)
        ],
        "threads": [{"id": 1, "name": "MainThread"}],
    }
    tables = {name: pa.Table.from_pylist(each, schema=known[name]) for name, each in rows.items()}
    end = events["time"][-1].as_py()
    return Recording(
        tables | {"memory_events": events},
        Manifest(simulated=True, duration_ns=end, initial_events=1),
    )


def pictures_s(path: Path) -> tuple[list[float], list[float]]:
    """Return the times from navigation to the first picture and to the whole, in s."""
    program = chromium_program()
    firsts, wholes = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGUMENTS)
        for _ in range(ROUNDS):
            page = opened(browser, path)
            shown = page.evaluate("window.shownMs")
            firsts.append(shown["reading"] / 1000)
            wholes.append(shown["ready"] / 1000)
            page.close()
        browser.close()
    return firsts, wholes


def written(folder: Path) -> tuple[Path, list[float]]:
    """Return a report of a million events, and the durations of writing it several times."""
    seconds = []
    path = folder / "large.html"
    for _ in range(ROUNDS):
        # A new recording has no cached numbers.
        recording = recorded(1_000_000)
        begin = time.perf_counter()
        write_report(recording, path, overwrite=True)
        seconds.append(time.perf_counter() - begin)
    return path, seconds


def made_to_fit(folder: Path, largest: int) -> list[float]:
    """Return the durations of writing a report of a million events with a maximum size."""
    seconds = []
    for _ in range(ROUNDS):
        recording = recorded(1_000_000)
        begin = time.perf_counter()
        write_report(recording, folder / "fitting.html", overwrite=True, max_size=largest)
        seconds.append(time.perf_counter() - begin)
    return seconds


def huge(folder: Path) -> list[Row]:
    """Measure a report of 10 million events, whole and with half of its size."""
    path, page = folder / "huge.gpuviz", folder / "huge.html"
    recorded(10_000_000).save(path)
    limits, measured = [0], []
    for limit in limits:
        command = [sys.executable, "-c", HUGE, str(path), str(page), str(limit)]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        measured.append([float(word) for word in ran.stdout.split()])
        if limit == 0:
            limits.append(page.stat().st_size // 2)
    (whole_s, whole_bytes), (fitting_s, fitting_bytes) = measured
    largest = max(whole_bytes, fitting_bytes)
    what = "report of 10 million events"
    return [
        bound_s(f"{what}: written", HUGE_S, [whole_s]),
        bound_s(f"{what}: written with half of its size", HUGE_FITTING_S, [fitting_s]),
        (
            f"{what}: memory of the process",
            f"{HUGE_MEMORY / 1e9:.1f} GB",
            f"{largest / 1e9:.2f} GB",
            largest <= HUGE_MEMORY,
        ),
    ]


def bound_s(what: str, largest: float, measured: list[float]) -> Row:
    least, middle = min(measured), statistics.median(measured)
    reached = f"{least:.2f} s (median {middle:.2f} s)"
    return (what, f"{largest:g} s", reached, least <= largest)


def bound_bytes(what: str, largest: int, path: Path) -> Row:
    size = path.stat().st_size
    return (what, f"{largest / 1e6:.0f} MB", f"{size / 1e6:.2f} MB", size <= largest)


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = write_report(recorded(1_000), folder / "small.html")
        large, seconds = written(folder)
        fitting = made_to_fit(folder, large.stat().st_size // 2)
        first_small, _ = pictures_s(small)
        first, whole = pictures_s(large)
        of_ten = huge(folder)
        what = "report of 1 million events"
        return [
            bound_s(f"{what}: written", WRITTEN_S, seconds),
            bound_bytes(f"{what}: size", LARGEST_BYTES, large),
            bound_s(f"{what}: written with half of its size", WRITTEN_S, fitting),
            bound_s(f"{what}: first picture", FIRST_PICTURE_S, first),
            bound_s(f"{what}: whole", WHOLE_S, whole),
            bound_s("report of 1,000 events: first picture", FIRST_SMALL_S, first_small),
            bound_bytes("report of 1,000 events: size", LARGEST_SMALL_BYTES, small),
            *of_ten,
        ]
