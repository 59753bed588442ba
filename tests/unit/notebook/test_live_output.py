"""An output whose HTML is replaced, also from other threads, and not in terminals."""

import threading
from types import SimpleNamespace

import pytest
from IPython.core.displaypub import DisplayPublisher

from gpuviz.notebook import live_output
from gpuviz.notebook.live_output import LiveOutput


@pytest.fixture
def shown(monkeypatch):
    shown = []

    def note(data, *, raw, display_id):
        assert raw
        shown.append((data["text/html"], data["text/plain"], display_id))

    monkeypatch.setattr(live_output, "display", note)
    monkeypatch.setattr(live_output, "update_display", note)
    return shown


def output_of(values):
    return LiveOutput(lambda: f"<b>{values[-1]}</b>", lambda: values[-1])


def test_an_update_from_another_thread_replaces_the_output(shown, monkeypatch):
    monkeypatch.setattr(live_output, "get_ipython", lambda: SimpleNamespace(display_pub=None))
    values = ["first"]
    output = output_of(values)
    output.show()

    values.append("second")
    thread = threading.Thread(target=output.update)
    thread.start()
    thread.join()

    assert [entry[:2] for entry in shown] == [
        ("<b>first</b>", "first"),
        ("<b>second</b>", "second"),
    ]
    assert shown[0][2] == shown[1][2]


@pytest.mark.parametrize("shell", [None, SimpleNamespace(display_pub=DisplayPublisher())])
def test_a_terminal_is_not_filled_with_updates(shown, monkeypatch, shell):
    monkeypatch.setattr(live_output, "get_ipython", lambda: shell)
    output = output_of(["text"])
    output.show()

    output.update()

    assert len(shown) == 1


def test_an_update_before_the_output_is_shown_comes_after_it(shown, monkeypatch):
    monkeypatch.setattr(live_output, "get_ipython", lambda: SimpleNamespace(display_pub=None))
    values = ["first"]
    output = output_of(values)

    output.update()
    assert shown == []
    output.show()
    output.show()

    assert [text for _, text, _ in shown] == ["first", "first", "first"]
