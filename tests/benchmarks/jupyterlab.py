"""Cost of the extension at JupyterLab's start, and the time to open a recording."""

import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, Response, sync_playwright

from tests.benchmarks._large_recording import recorded
from tests.benchmarks.timeline import COUNT
from tests.browser.conftest import CHROMIUM_ARGUMENTS, chromium_program
from tests.browser.lab import running_lab

MOST_SCRIPT_KB, MOST_START_MS, FIRST_PICTURE_S = 50.0, 20.0, 3.0
OURS = "/labextensions/gpuviz/", "/extensions/gpuviz/"
SAMPLE_US = 100

Row = tuple[str, str, str, bool]


def is_ours(url: str) -> bool:
    return any(part in url for part in OURS)


def started(page: Page, url: str, profiler: CDPSession) -> tuple[float, float]:
    """Return the kB of script loaded at start, and their run time in ms."""
    sizes: list[int] = []

    def note(response: Response) -> None:
        if is_ours(response.url) and response.url.split("?")[0].endswith(".js"):
            sizes.append(len(response.body()))

    page.on("response", note)
    profiler.send("Profiler.enable")
    profiler.send("Profiler.setSamplingInterval", {"interval": SAMPLE_US})
    profiler.send("Profiler.start")
    page.goto(f"{url}/lab?reset")
    page.locator(".jp-DirListing-item").first.wait_for(timeout=60_000)
    page.wait_for_timeout(2000)
    profile = profiler.send("Profiler.stop")["profile"]
    page.remove_listener("response", note)
    ours = {each["id"] for each in profile["nodes"] if is_ours(each["callFrame"]["url"])}
    samples = zip(profile["samples"], profile["timeDeltas"], strict=True)
    return sum(sizes) / 1000, sum(delta for node, delta in samples if node in ours) / 1000


def first_picture_s(page: Page, name: str) -> float:
    """Return the time from the double click until the charts are drawn, in s."""
    item = page.locator(f".jp-DirListing-item[title^='Name: {name}']")
    item.click()
    began = time.monotonic()
    item.dblclick()
    page.locator(".gpuviz-recording canvas").first.wait_for(timeout=60_000)
    return time.monotonic() - began


def measured(browser: Browser, folder: Path) -> list[Row]:
    recorded(COUNT // 2, COUNT // 2).save(folder / "million.gpuviz")
    with running_lab(folder) as url:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        kilobytes, ms = started(page, url, page.context.new_cdp_session(page))
        seconds = first_picture_s(page, "million.gpuviz")
        page.close()
    return [
        (
            "JupyterLab: the extension's script before first use",
            f"{MOST_SCRIPT_KB:.0f} kB",
            f"{kilobytes:.1f} kB",
            kilobytes <= MOST_SCRIPT_KB,
        ),
        (
            "JupyterLab: its time at start",
            f"{MOST_START_MS:.0f} ms",
            f"{ms:.1f} ms",
            ms <= MOST_START_MS,
        ),
        (
            "JupyterLab: a recording of 1 million events, first picture",
            f"{FIRST_PICTURE_S:.0f} s",
            f"{seconds:.1f} s",
            seconds <= FIRST_PICTURE_S,
        ),
    ]


def rows() -> list[Row]:
    program = chromium_program()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGUMENTS)
        found = measured(browser, Path(folder))
        browser.close()
    return found
