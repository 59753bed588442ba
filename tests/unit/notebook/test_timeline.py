"""The timeline widget and its feed, with a simulated page."""

import sys
import threading
import time

import pytest

import gpuviz
from gpuviz.recorder import feed, feed_streams, pump
from tests.patience import wait_until
from tests.unit.notebook.followed_program import assert_has_all, drain, listeners, run_program
from tests.unit.recording.test_training import RECORDED


def test_a_page_gets_what_was_recorded_before_and_all_that_follows(
    source, new_recorder, new_browser
):
    recorder = new_recorder()
    recorder.start()
    run_program(source, 100)
    browser = new_browser(recorder)
    browser.show()
    browser.receive()
    first = len(browser.rows("memory_events"))
    run_program(source, 100, seed=1)
    recording = recorder.stop()
    browser.receive()

    assert 0 < first < len(browser.rows("memory_events"))
    assert_has_all(browser, recording)
    assert browser.recording is False


@pytest.mark.parametrize("pages", [1, 5])
def test_pages_that_join_at_any_time_have_the_same_rows_without_gap_or_double(
    source, new_recorder, new_browser, pages
):
    recorder = new_recorder()
    recorder.start()
    program = threading.Thread(target=run_program, args=(source, 4000))
    program.start()
    browsers = []
    for _ in range(pages):
        time.sleep(0.05)
        browsers.append(new_browser(recorder))
        browsers[-1].show()
    program.join()
    recording = recorder.stop()
    for browser in browsers:
        browser.receive()

        assert browser.gaps == 0
        assert_has_all(browser, recording)


def test_what_happens_after_a_page_came_is_sent_without_waiting_for_the_slow_pace(
    source, new_recorder, new_browser, monkeypatch
):
    monkeypatch.setattr(pump, "INTERVAL_S", 30)
    monkeypatch.setattr(pump, "FIRST_INTERVAL_S", 30)
    recorder = new_recorder()
    recorder.start()
    time.sleep(0.1)
    browser = new_browser(recorder)
    browser.show()
    run_program(source, 30)
    deadline = time.monotonic() + 5
    while len(browser.rows("memory_events")) < 31 and time.monotonic() < deadline:
        browser.receive()
        time.sleep(0.01)

    assert len(browser.rows("memory_events")) >= 31


def test_batches_are_numbered_one_by_one(source, new_recorder, new_browser):
    recorder = new_recorder()
    recorder.start()
    browser = new_browser(recorder)
    browser.show()

    def has_received_five() -> bool:
        """Run the program once more; what several runs have recorded may arrive at once."""
        run_program(source, 3)
        drain(recorder)
        browser.receive()
        return len(browser.numbers) >= 5

    wait_until(has_received_five)

    # The page takes a batch only if its number is the next one.
    assert browser.gaps == 0


@pytest.mark.parametrize("kept_bytes", [feed.KEPT_BYTES, 0])
def test_what_got_lost_is_sent_again_when_asked_for(
    source, new_recorder, new_browser, monkeypatch, kept_bytes
):
    monkeypatch.setattr(feed, "KEPT_BYTES", kept_bytes)
    recorder = new_recorder()
    recorder.start()
    browser = new_browser(recorder)
    browser.show()
    browser.receive()
    run_program(source, 30)
    drain(recorder)
    browser.lose()
    run_program(source, 30, seed=1)
    drain(recorder)
    browser.receive()
    missing = browser.gaps
    browser.show()
    recording = recorder.stop()
    browser.receive()

    assert missing >= 1
    assert_has_all(browser, recording)


def test_only_what_is_missing_is_sent_again(new_recorder, new_browser):
    recorder = new_recorder()
    recorder.start()
    browser = new_browser(recorder)
    browser.show()
    browser.receive()
    drain(recorder)
    browser.lose()
    browser.show()
    again = browser.widget.comm.sent[browser.taken :]

    assert [content["parts"] for content, _ in again] == [0] * len(again)
    assert min(content["number"] for content, _ in again) == browser.number + 1


def test_a_large_recording_comes_in_parts(source, new_recorder, new_browser, monkeypatch):
    monkeypatch.setattr(feed_streams, "PART_BYTES", 2000)
    recorder = new_recorder()
    with recorder:
        run_program(source, 300)
    browser = new_browser(recorder)
    browser.show()
    sizes = [sum(len(rows) for rows in buffers[:-1]) for _, buffers in browser.widget.comm.sent]
    parts = [content["parts"] for content, _ in browser.widget.comm.sent]
    browser.receive()

    assert parts == [len(parts)] * len(parts)
    assert len(parts) > 5
    assert max(sizes) <= 2000
    assert_has_all(browser, recorder.recording)


def test_nothing_is_sent_to_a_hidden_page_and_it_catches_up_when_shown(
    source, new_recorder, new_browser
):
    recorder = new_recorder()
    recorder.start()
    browser = new_browser(recorder)
    browser.show()
    browser.hide()
    sent = len(browser.widget.comm.sent)
    run_program(source, 100)
    drain(recorder)
    while_hidden = len(browser.widget.comm.sent)
    heard = listeners(recorder)
    browser.show()
    recording = recorder.stop()
    browser.receive()

    assert while_hidden == sent
    assert heard == 0
    assert_has_all(browser, recording)


def test_one_of_two_pages_may_hide(source, new_recorder, new_browser):
    recorder = new_recorder()
    recorder.start()
    browser = new_browser(recorder)
    browser.show()
    other = new_browser(browser.widget, "other page")
    other.show()
    other.hide()
    run_program(source, 100)
    recording = recorder.stop()
    browser.receive()

    assert_has_all(browser, recording)


def test_a_widget_may_be_shown_before_the_recorder_starts(source, new_recorder, new_browser):
    source.allocate(5000)
    recorder = new_recorder()
    browser = new_browser(recorder)
    browser.show()
    browser.receive()
    before = browser.rows("memory_events")
    with recorder:
        run_program(source, 10)
    browser.receive()

    assert before == []
    assert browser.initial_events == recorder.recording.manifest.initial_events > 0
    assert_has_all(browser, recorder.recording)


def test_a_recorder_that_could_not_start_leaves_nothing_on_the_page(
    new_recorder, new_browser, tmp_path
):
    recorder = new_recorder(tmp_path / "there.gpuviz")
    recorder._live.source.begin = lambda _: sys.exit("the GPU is gone")
    browser = new_browser(recorder)
    browser.show()
    with pytest.raises(SystemExit, match="the GPU is gone"):
        recorder.start()
    browser.receive()

    assert browser.tables == {}


def test_a_recorder_that_writes_to_disk_is_followed_too(
    source, new_recorder, new_browser, tmp_path
):
    recorder = new_recorder(tmp_path / "run.gpuviz")
    recorder.start()
    run_program(source, 100)
    drain(recorder)
    browser = new_browser(recorder)
    browser.show()
    run_program(source, 100)
    recording = recorder.stop()
    browser.receive()

    assert_has_all(browser, recording)


def test_who_comes_after_old_events_were_dropped_gets_what_they_left(
    source, new_recorder, new_browser
):
    recorder = new_recorder(max_events=50)
    recorder.start()
    kept = source.allocate(5000)
    for seed in range(5):
        run_program(source, 40, seed)
        drain(recorder)
    browser = new_browser(recorder)
    browser.show()
    browser.receive()
    recording = recorder.recording
    source.free(kept)
    recorder.stop()

    assert browser.initial_events == recording.manifest.initial_events > 0
    assert browser.rows("memory_events") == recording.table("memory_events").to_pylist()


def test_a_finished_recording_is_shown_whole(source, new_recorder, new_browser):
    recorder = new_recorder()
    with recorder:
        run_program(source, 50)
    browser = new_browser(recorder.recording)
    browser.show()
    browser.receive()

    assert browser.recording is False
    assert_has_all(browser, recorder.recording)


def test_a_finished_training_is_shown_with_its_phases_and_categories(new_browser):
    recording = gpuviz.load(RECORDED)
    browser = new_browser(recording)
    browser.show()
    browser.receive()

    for name in ("phases", "categories"):
        assert browser.rows(name) == recording.table(name).to_pylist() != []
