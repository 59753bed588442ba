"""The page of two recordings: their timelines show the same part of the program."""

import pytest

import gpuviz

pytestmark = pytest.mark.browser
STEPS = 12
FRAMES = 2


def steps(gpu, duration):
    images = gpu.empty(64 << 20)
    for _ in range(STEPS):
        with gpuviz.range("step"):
            gpu.launch("blur", reads=[images], writes=[images], duration=duration)
            gpu.synchronize()


def alone(gpu):
    gpu.launch("blur", duration=1e-3)
    gpu.synchronize()


def recorded(program, *arguments):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu, *arguments)
    return recorder.recording


@pytest.fixture
def opened(page, tmp_path):
    """Return a function that opens the page of two recordings; its frames, before and after."""

    def open_page(before, after):
        path = gpuviz.diff(before, after).report(tmp_path / "diff.html")
        page.goto(path.as_uri())
        frames = [frame for frame in page.frames if frame.parent_frame is not None]
        assert len(frames) == FRAMES
        for frame in frames:
            frame.wait_for_selector("html[data-gpuviz-tables=ready]", state="attached")
        return frames

    return open_page


def shown_ms(frame):
    """Return the window of a report in ms, as its toolbar says it."""
    text = frame.locator(".gpuviz-controls__text").first.inner_text()
    if text.startswith("all"):
        return None
    begin, _, end = text.partition(" of ")[0].partition(" to ")
    return tuple(float(each.removesuffix(" ms")) for each in (begin, end))


def zoom(frame, keys="wwwww"):
    frame.locator(".gpuviz-plot").nth(1).click()
    frame.page.keyboard.type(keys)


def wait_until_shown(page, frame, is_shown):
    for _ in range(50):
        found = shown_ms(frame)
        if is_shown(found):
            return found
        page.wait_for_timeout(100)
    raise AssertionError(shown_ms(frame))


def test_zooming_one_shows_the_same_steps_in_the_other(page, opened):
    before, after = opened(recorded(steps, 2e-3), recorded(steps, 5e-3))

    for leader, follower, factor in ((before, after, 2.5), (after, before, 0.4)):
        zoom(leader)
        first, last = wait_until_shown(page, leader, lambda shown: shown is not None)
        begin, end = wait_until_shown(
            page,
            follower,
            lambda shown: shown == pytest.approx((factor * first, factor * last), rel=0.02),  # noqa: B023
        )
        assert end > begin


def test_the_timelines_can_be_moved_one_by_one(page, opened):
    before, after = opened(recorded(steps, 2e-3), recorded(steps, 5e-3))
    page.get_by_label("Show the same part of both").uncheck()

    zoom(before)

    wait_until_shown(page, before, lambda shown: shown is not None)
    page.wait_for_timeout(300)
    assert shown_ms(after) is None
    page.get_by_label("Show the same part of both").check()
    wait_until_shown(page, after, lambda shown: shown is not None)


def test_the_timeline_that_moved_last_leads_when_they_are_linked_again(page, opened):
    before, after = opened(recorded(steps, 2e-3), recorded(steps, 5e-3))
    zoom(after)
    shown = wait_until_shown(page, after, lambda shown: shown is not None)

    page.get_by_label("Show the same part of both").uncheck()
    page.get_by_label("Show the same part of both").check()

    page.wait_for_timeout(300)
    assert shown_ms(after) == shown
    assert shown_ms(before) is not None


def test_programs_with_nothing_in_common_are_aligned_by_their_beginnings(page, opened):
    opened(recorded(steps, 2e-3), recorded(alone))

    assert "aligned by their beginnings" in page.locator("#timelines").inner_text()


def test_nothing_is_loaded_and_no_rule_of_the_page_is_broken(page, opened):
    messages, requests = [], []
    page.on("console", lambda message: messages.append(message.text))
    page.on("request", lambda request: requests.append(request.url))

    opened(recorded(steps, 2e-3), recorded(steps, 5e-3))

    assert messages == []
    assert [url for url in requests if not url.startswith(("file:", "about:"))] == []
