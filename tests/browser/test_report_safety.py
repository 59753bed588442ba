"""Recordings that try to run scripts in a report, and all shipped recordings, offline."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from gpuviz.recording import load
from tests.browser.stream_recording import make_stream_recording
from tests.browser.test_report import open_page, open_tab
from tests.unit.report.recordings import make_recording

pytestmark = pytest.mark.browser

SHIPPED = sorted((Path(__file__).parents[2] / "gpuviz" / "commands" / "recordings").iterdir())
PAYLOADS = {
    "end of script": "</script><script>window.hacked=1</script>",
    "end of style": "</style><img src=x onerror=window.hacked=1>",
    "end of title": "</title><svg onload=window.hacked=1>",
    "attribute": '" autofocus onfocus=window.hacked=1 x="',
    "single quote": "' onmouseover='window.hacked=1",
    "event": "<details open ontoggle=window.hacked=1>",
    "frame": "<iframe srcdoc='<script>parent.hacked=1</script>'>",
    "address": "<a href=javascript:window.hacked=1>x</a>",
    "template": "{{script}}{{recording}}${window.hacked=1}",
    "comment": "--><script>window.hacked=1</script><!--",
    "allocations": "a\u2028window.hacked=1\u2029\r\n<b>",
    "meta": "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "base": "<base href='https://example.org/'>",
    "entity": "&lt;img src=x onerror=window.hacked=1&gt;&#60;b&#62;",
    "surrogate": "\U0001f4a3\u202eevil\u0000<x>",
    "closing": "]]></dd></dl></article></main></body></html><script>window.hacked=1</script>",
}


def look_everywhere(page: Page) -> None:
    """Open, point at and search everything that shows texts of a recording."""
    for tab in page.get_by_role("tab").locator("visible=true").all():
        tab.click()
        for summary in page.locator("summary:visible").all():
            summary.click()
    for plot in page.locator(".gpuviz-plot:visible").all():
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        for share in (0.3, 0.6):
            page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
            page.mouse.click(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
    follow_links(page)
    page.locator(".gpuviz-search__field").fill("a")
    page.locator(".gpuviz-search__count").wait_for()
    page.locator(".gpuviz-search__field").fill("")
    if page.locator("[role=tab][data-tab=call-stacks]").is_visible():
        open_tab(page, "call-stacks")
        for call in page.locator(".gpuviz-icicle__call").all()[:3]:
            call.hover()


def follow_links(page: Page) -> None:
    """Open the source of the first lines, and show the first kernels in the charts."""
    if page.locator("[role=tab][data-tab=lines]").is_visible():
        for line in open_tab(page, "lines").locator("tbody .gpuviz-link").all()[:2]:
            line.click()
            page.get_by_role("button", name="All lines").click()
    if page.locator("[role=tab][data-tab=kernels]").is_visible():
        for link in open_tab(page, "kernels").locator(".gpuviz-link").all()[:2]:
            link.click()
            open_tab(page, "kernels")


def assert_nothing_ran(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    tags = (
        "script:not([type='application/json']), img, iframe, svg:not(.gpuviz-bar), base, "
        "a[href], meta[http-equiv=refresh], [onerror], [onload]"
    )
    assert page.locator(tags).count() == 1  # the page's own script
    handlers = """[...document.querySelectorAll('*')].flatMap(
        each => each.getAttributeNames().filter(name => name.startsWith('on')))"""
    assert page.evaluate(handlers) == []


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_texts_of_memory_recordings_stay_texts(page, tmp_path, payload):
    recording = make_recording(
        text=payload,
        label=payload,
        notes=(payload,),
        platform=payload,
        settings=payload,
        allocator_name=payload,
        cupy=payload,
        driver=payload,
        created=payload,
    )

    open_page(page, recording.report(tmp_path / "run.html"))
    look_everywhere(page)

    assert_nothing_ran(page)
    assert page.locator("article h2").count() == 1


def test_texts_of_stream_recordings_stay_texts(page, tmp_path):
    open_page(
        page, make_stream_recording(" ".join(PAYLOADS.values())).report(tmp_path / "run.html")
    )
    look_everywhere(page)

    assert_nothing_ran(page)


def test_the_policy_refuses_script_even_if_it_came_in(chromium, tmp_path):
    context = chromium.new_context(offline=True)
    page = context.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    open_page(page, make_recording().report(tmp_path / "run.html"))

    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 1';
            document.body.append(script);
            document.body.insertAdjacentHTML('beforeend', '<b onclick="window.hacked = 1">b</b>');
            document.querySelector('b').click();
        }"""
    )
    hacked = page.evaluate("window.hacked")
    context.close()

    assert hacked is None
    assert ["Content Security Policy" in text for text in refused] == [True, True]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_recording_opens_offline_and_zooms_to_one_event(page, report_of, path):
    recording = load(path)
    open_page(page, report_of(path))

    open_tab(page, "moment").get_by_role("button", name="Peak", exact=True).click()
    numbers = open_tab(page, "summary").locator(".gpuviz-number__value").all_inner_texts()
    open_tab(page, "kernels").locator(".gpuviz-link").first.click()
    page.get_by_role("button", name="Zoom to it").click()

    allocated = page.locator("[data-level=allocated]").get_attribute("title")
    assert allocated == f"{recording.peak(0).bytes:,} B"
    assert f"{recording.memory_stats()['allocation.all.allocated']:,}" in numbers
    assert page.locator(".gpuviz-selected__title").inner_text() != ""
    assert page.locator(".gpuviz-controls__text").inner_text().endswith(" shown")
    assert page.locator("#gpuviz-notice").is_hidden()
    assert load(report_of(path)).table("activities").equals(recording.table("activities"))
