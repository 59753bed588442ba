"""Objects left by a timeline that is closed, broken or finished."""

import sys
import threading
import types

import pytest

from gpuviz.notebook import cells
from gpuviz.notebook.timeline import Timeline
from tests.unit.notebook.followed_program import assert_has_all, drain, listeners, run_program


def test_nobody_listens_after_the_widget_is_closed_or_the_recorder_stopped(
    source, new_recorder, new_browser
):
    threads = threading.active_count()
    recorder = new_recorder()
    recorder.start()
    closed, other = new_browser(recorder), new_browser(recorder)
    closed.show()
    other.show()
    both = listeners(recorder)
    closed.widget.close()
    one = listeners(recorder)
    sent = len(closed.widget.comm.sent) if closed.widget.comm else 0
    run_program(source, 50)
    recorder.stop()

    assert (both, one, listeners(recorder)) == (2, 1, 0)
    assert closed.widget.comm is None or len(closed.widget.comm.sent) == sent
    assert threading.active_count() == threads


def test_a_page_that_asks_again_is_heard_once(new_recorder, new_browser):
    recorder = new_recorder()
    recorder.start()
    browser = new_browser(recorder)
    for _ in range(3):
        browser.show()

    assert listeners(recorder) == 1


def test_a_page_that_cannot_be_reached_stops_neither_recorder_nor_others(
    source, new_recorder, new_browser
):
    recorder = new_recorder()
    recorder.start()
    broken, browser = new_browser(recorder), new_browser(recorder)
    broken.show()
    browser.show()
    broken.widget.send = None
    run_program(source, 50)
    recording = recorder.stop()
    browser.receive()

    assert_has_all(browser, recording)


def test_where_threads_reach_no_page_it_is_brought_up_to_date_when_a_cell_ends(
    source, new_recorder, new_browser, ipython, monkeypatch
):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    monkeypatch.setattr(cells, "_shell", lambda: ipython)
    recorder = new_recorder()
    recorder.start()
    browser = new_browser(recorder)
    browser.show()
    browser.receive()
    run_program(source, 100)
    drain(recorder)
    browser.lose()
    ipython.events.trigger("post_run_cell", None)
    browser.receive()
    behind = browser.gaps
    browser.show()
    recording = recorder.stop()
    browser.receive()
    browser.widget.close()

    assert behind == 1
    assert_has_all(browser, recording)
    assert browser.widget._refresh not in ipython.events.callbacks["post_run_cell"]


def test_nothing_of_the_recording_is_in_the_state_of_the_widget(source, new_recorder, new_browser):
    recorder = new_recorder()
    with recorder:
        browser = new_browser(recorder)
        browser.show()
        before = browser.widget.get_state()
        run_program(source, 100)

    assert browser.widget.get_state() == before


def test_what_cannot_be_shown_is_named():
    with pytest.raises(TypeError, match="expected a Recorder or a Recording, got str"):
        Timeline("run.gpuviz")


def test_the_script_of_the_widget_is_small(new_recorder, new_browser):
    widget = new_browser(new_recorder()).widget

    [_, code] = widget._esm.split("*/", 1)  # after the licence
    assert 10_000 < len(code.encode()) <= 194_000


def test_a_cell_that_is_run_again_closes_what_a_page_has_set_up_and_nothing_else(
    new_recorder, new_browser, monkeypatch
):
    recorder = new_recorder()
    runs = iter(("first", "second", "third"))
    monkeypatch.setattr("gpuviz.notebook.timeline.running_cell", lambda: ("a cell", next(runs)))
    first, second = new_browser(recorder), new_browser(recorder)
    in_a_hurry = (first.widget.comm is None, second.widget.comm is None)
    first.show()
    second.show()
    third = new_browser(recorder)

    assert in_a_hurry == (False, False)
    assert [each.widget.comm is None for each in (first, second, third)] == [True, True, False]
