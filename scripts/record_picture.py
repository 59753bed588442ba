"""Records the moving picture of the README: a report in a browser, used by a mouse.

Usage: python -m scripts.record_picture. It opens the report of a shipped recording in Chromium
without a window, and writes docs/images/report.webp. Run it again when reports look different.
"""

import shutil
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Locator, Page, sync_playwright

import gpuviz

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "gpuviz" / "commands" / "recordings" / "image_pipeline.gpuviz"
PICTURE = ROOT / "docs" / "images" / "report.webp"
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
SIZE = {"width": 1200, "height": 900}
# Of a plot, left and right of the time axis.
LEFT_PX, RIGHT_PX = 112, 16
FRAME_MS = 90
LARGEST = 1_500_000
# Chromium without a window draws no pointer.
POINTER = """
const pointer = document.createElement("div");
pointer.style.cssText = "position:fixed;z-index:99999;pointer-events:none;width:0;height:0;"
  + "border-left:11px solid #000;border-bottom:11px solid transparent;"
  + "filter:drop-shadow(0 0 1px #fff) drop-shadow(0 0 1px #fff)";
document.body.append(pointer);
addEventListener("mousemove", (event) => {
  pointer.style.left = `${event.clientX}px`;
  pointer.style.top = `${event.clientY}px`;
}, true);
"""


class Film:
    """Frames of a page, and where its pointer is."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._at = (600.0, 420.0)
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []

    def show(self, duration_ms: int = FRAME_MS) -> None:
        """Add the page as it is now."""
        self._page.wait_for_timeout(60)
        shot = Image.open(BytesIO(self._page.screenshot()))
        self.frames.append(shot.convert("RGB"))
        self.durations.append(duration_ms)

    def move(self, to: Locator) -> None:
        """Move the pointer to the middle of an element."""
        self._move(to, 0.5, 0.5, inset=(0, 0))

    def move_in_plot(self, label: str, time_share: float, height_share: float) -> None:
        """Move the pointer to a point of a plot, whose label begins like this."""
        plot = self._page.locator(f".gpuviz-plot[aria-label^='{label}']")
        self._move(plot, time_share, height_share, inset=(LEFT_PX, RIGHT_PX))

    def _move(self, to: Locator, x_share: float, y_share: float, inset: tuple[int, int]) -> None:
        box = to.bounding_box()
        if box is None:
            raise SystemExit(f"The report shows no {to}.")
        x = box["x"] + inset[0] + x_share * (box["width"] - sum(inset))
        y = box["y"] + y_share * box["height"]
        x0, y0 = self._at
        frames = 6
        for step in range(1, frames + 1):
            share = step / frames
            share = share * share * (3 - 2 * share)
            self._page.mouse.move(x0 + (x - x0) * share, y0 + (y - y0) * share)
            self.show()
        self._at = (x, y)

    def zoom(self, frames: int, wheel: int) -> None:
        """Zoom around the pointer."""
        self._page.keyboard.down("Control")
        for _ in range(frames):
            self._page.mouse.wheel(0, wheel)
            self.show()
        self._page.keyboard.up("Control")

    def click(self) -> None:
        """Click where the pointer is."""
        self._page.mouse.click(*self._at)
        self.show(1600)


def perform(film: Film, page: Page) -> None:
    """Do what a reader does first: zoom in, look at a kernel and a block, follow a finding."""
    shown = page.locator(".gpuviz-controls__text")
    whole = shown.inner_text()
    film.show(1500)
    film.move_in_plot("Segment map", 0.647, 0.5)
    film.zoom(10, -20)
    if shown.inner_text() == whole:
        raise SystemExit("The wheel did not zoom.")
    film.move_in_plot("Streams", 0.45, 0.75)
    film.show(1600)
    if "cupyx_scipy" not in page.locator(".gpuviz-tooltip").inner_text():
        raise SystemExit("The pointer is on no kernel.")
    film.move_in_plot("Segment map", 0.51, 0.6)
    film.click()
    if "Block of" not in page.locator(".gpuviz-selected").first.inner_text():
        raise SystemExit("The click selected no block.")
    film.move(page.get_by_text("show", exact=True).first)
    film.click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="All", exact=True).click()
    film.show(600)


def record(browser: Browser, report: Path) -> Film:
    """Return the film of a report."""
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.goto(report.as_uri())
    page.wait_for_timeout(1500)
    page.evaluate(POINTER)
    film = Film(page)
    perform(film, page)
    return film


def main() -> None:
    """Write the picture."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise SystemExit("Chromium is missing: apt-get install -y chromium-headless-shell")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = gpuviz.load(RECORDING).report(Path(folder, "report.html"))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        film = record(browser, report)
        browser.close()
    first, *others = film.frames
    first.save(
        PICTURE,
        save_all=True,
        append_images=others,
        duration=film.durations,
        loop=0,
        quality=70,
        method=6,
        minimize_size=True,
    )
    size = PICTURE.stat().st_size
    print(f"{PICTURE.relative_to(ROOT)}: {len(film.frames)} frames, {size / 1000:.0f} kB")
    if size > LARGEST:
        raise SystemExit(f"It has more than {LARGEST / 1e6} MB.")


if __name__ == "__main__":
    main()
