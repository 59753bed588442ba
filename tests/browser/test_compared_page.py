"""The page of two recordings: aligned axes, one selection, and tables of what differs."""

import re

import pytest

import gpuviz

pytestmark = pytest.mark.browser
STEPS = 12
# The lengths of a step, so that times after are 2.5 times those before.
BEFORE_S, AFTER_S = 2e-3, 5e-3
FACTOR = AFTER_S / BEFORE_S


def steps(gpu, duration, size=64 << 20):
    images = gpu.empty(size)
    for _ in range(STEPS):
        with gpuviz.range("step"):
            gpu.launch("blur", reads=[images], writes=[images], duration=duration)
            gpu.synchronize()


def alone(gpu):
    gpu.launch("sharpen", duration=1e-3)
    gpu.synchronize()


def buffers(gpu, *sizes):
    grown = gpu.empty(sizes[0] << 20)
    shrunk = gpu.empty(sizes[1] << 20)
    hardly = gpu.empty(sizes[2] << 20)
    gpu.launch("use", reads=[grown, shrunk, hardly], duration=1e-3)
    gpu.synchronize()


def recorded(program, *arguments):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu, *arguments)
    return recorder.recording


@pytest.fixture
def opened(page, tmp_path):
    """Return a function that opens the page of two recordings."""

    def open_page(before, after):
        path = gpuviz.diff(before, after).report(tmp_path / "diff.html")
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-gpuviz=ready]", state="attached")

    return open_page


def shown_ms(page):
    """Return the windows of both recordings in ms; None for one that is shown as a whole."""
    found = []
    for text in page.locator(".gpuviz-controls__text").all_inner_texts():
        times = re.match(r"([\d.]+) ms to ([\d.]+) ms of", text)
        found.append(times and tuple(map(float, times.groups())))
    return found


def length(window):
    return pytest.approx(window[1] - window[0], abs=0.02)


def middle(window):
    return sum(window) / 2


def plot(page, name):
    return page.locator(f"[data-pane={name}] .gpuviz-plot")


def row(page, tab, text):
    """Return the exact values of the row of a table with a text."""
    page.get_by_role("tab", name=tab, exact=True).click()
    cells = page.locator(f"[data-panel={tab.lower()}] tr", has_text=text).locator("td")
    return [cell.get_attribute("data-sort") for cell in cells.all()]


def test_both_have_one_scale_and_show_the_same_steps_while_they_are_linked(page, opened):
    opened(recorded(steps, BEFORE_S), recorded(steps, AFTER_S))
    linked = page.get_by_label("Show the same part of both")
    assert shown_ms(page) == [None, None]

    plot(page, "memory").focus()
    page.keyboard.type("w" * 6 + "a" * 12)
    before, after = shown_ms(page)
    assert after[1] - after[0] == length(before)
    assert middle(after) == pytest.approx(FACTOR * middle(before), rel=0.02)

    plot(page, "memoryafter").focus()
    page.keyboard.type("a")
    before, after = shown_ms(page)
    assert after[1] - after[0] == length(before)
    assert middle(after) == pytest.approx(FACTOR * middle(before), rel=0.02)

    linked.uncheck()
    plot(page, "memoryafter").focus()
    page.keyboard.type("d")
    alone_before, alone_after = shown_ms(page)
    assert alone_before == before
    assert alone_after[0] > after[0]

    # The one that moved last leads.
    linked.check()
    before, after = shown_ms(page)
    assert after == alone_after
    assert middle(after) == pytest.approx(FACTOR * middle(before), rel=0.02)


def test_what_is_below_the_pointer_stays_the_same_step_in_both(page, opened):
    opened(recorded(steps, BEFORE_S), recorded(steps, AFTER_S))
    chart = plot(page, "memoryafter")
    chart.focus()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 112 + 0.3 * (box["width"] - 128), box["y"] + 30)

    page.keyboard.down("Control")
    for _ in range(12):
        page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_function(
        "[...document.querySelectorAll('.gpuviz-controls__text')]"
        ".every(each => !each.textContent.startsWith('all'))"
    )
    at_ms = [start + 0.3 * (end - start) for start, end in shown_ms(page)]

    assert at_ms[1] == pytest.approx(FACTOR * at_ms[0], rel=0.02)


def test_the_axis_of_the_shorter_recording_goes_on_after_its_end(page, opened):
    before, after = recorded(steps, BEFORE_S), recorded(steps, AFTER_S)
    opened(before, after)
    # The share of the columns of an overview in which something is drawn.
    drawn = page.locator(".gpuviz-overview canvas:first-of-type").evaluate_all(
        """all => all.map(canvas => {
            const { width, height } = canvas;
            const scale = devicePixelRatio;
            const [left, right] = [112 * scale, width - 16 * scale];
            const y = height - 8 * scale;
            const { data } = canvas.getContext("2d").getImageData(left, y, right - left, 1);
            let busy = 0;
            for (let at = 0; at < data.length; at += 4) {
                busy += data[at + 2] > data[at + 1] + 40 ? 1 : 0;
            }
            return busy / (right - left);
        })"""
    )

    assert drawn[1] > 0.9
    assert drawn[0] == pytest.approx(drawn[1] * before.duration_ns / after.duration_ns, abs=0.03)


def test_the_largest_change_comes_first_whether_more_or_less(page, opened):
    opened(recorded(buffers, 8, 64, 1), recorded(buffers, 16, 2, 2))

    page.get_by_role("tab", name="Lines", exact=True).click()
    rows = page.locator("[data-panel=lines] tbody tr")
    changes = [row.locator("td").nth(2).inner_text() for row in rows.all()]

    assert changes[:3] == ["-62.0 MiB", "+8.00 MiB", "+1.00 MiB"]


def test_the_tables_have_the_sums_of_a_span_of_both(page, opened):
    before, after = recorded(steps, BEFORE_S), recorded(steps, AFTER_S, 96 << 20)
    opened(before, after)
    ranges = before.table("ranges").to_pylist()
    begin, end = ranges[2]["time"], ranges[6]["end"]

    page.evaluate(f"location.hash = 'span={begin}-{end}'")
    page.locator(".gpuviz-measured__title", has_text="After: ").wait_for()

    _, total, change, launches, more, *_ = row(page, "Kernels", "blur")
    assert (int(launches), int(more)) == (5, 0)
    assert int(total) == 5 * round(AFTER_S * 1e9)
    assert int(change) == 5 * round((AFTER_S - BEFORE_S) * 1e9)
    page.get_by_label("only the window").uncheck()
    _, total, change, launches, *_ = row(page, "Kernels", "blur")
    assert (int(launches), int(total)) == (STEPS, STEPS * round(AFTER_S * 1e9))
    _, size, grown, *_ = row(page, "Lines", "images = gpu.empty(size)")
    assert (int(size), int(grown)) == (96 << 20, 32 << 20)


def test_only_one_of_both_has_something_selected(page, opened):
    opened(recorded(steps, BEFORE_S), recorded(alone))
    assert "aligned by their beginnings" in page.locator("main").inner_text()
    assert page.locator("[data-panel=changes]").get_by_text("sharpen").count() > 0

    for name, side in (("blur", "Before"), ("sharpen", "After")):
        page.get_by_role("tab", name="Kernels", exact=True).click()
        page.locator("[data-panel=kernels]").get_by_role("button", name=name, exact=True).click()
        shown = page.locator("[data-panel=selection] > div:visible")
        assert shown.count() == 1
        assert shown.inner_text().startswith(side)
        assert name in shown.inner_text()
