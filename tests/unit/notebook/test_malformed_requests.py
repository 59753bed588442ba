"""Malformed messages of a page: the page always gets an answer."""

import json

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from gpuviz.notebook.panel import Panel
from tests.examples import examples
from tests.unit.notebook.malformed_messages import FinishedControl, PanelComm
from tests.unit.report.recordings import make_recording

EXAMPLES = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
# As JSON in a message: lone surrogates too.
TEXTS = st.text(st.characters(), max_size=8) | st.just("\ud800")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KINDS = ["start", "stop", "clear", "snapshot", "report", "leaks", "release"]
REQUESTS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(KINDS) | JSON,
        "id": JSON,
        "viewer": JSON,
        "path": JSON | st.just("x" * 300) | st.just("a\0b"),
        "offer": JSON,
        "redact": JSON,
        "observe": JSON,
    },
)


@pytest.fixture
def panel(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "a.ipynb"))
    panel = Panel(FinishedControl())
    comm = PanelComm()
    panel.open(comm, {})
    return comm


@EXAMPLES
@given(request=REQUESTS.filter(lambda each: _kind(each) not in {"show", "hide"}))
def test_a_panel_answers_every_request(panel, request):
    panel.sent.clear()

    panel.receive({"content": {"data": request}})

    answer = json.loads(panel.sent[0])
    assert answer["kind"] == "done"
    assert answer["text"]
    if isinstance(request, dict) and isinstance(request.get("id"), str):
        assert answer["id"] == request["id"].encode(errors="backslashreplace").decode()


def _kind(request):
    kind = request.get("kind") if isinstance(request, dict) else None
    return kind if isinstance(kind, str) else None


@pytest.mark.parametrize("path", [None, "", 5, ["a"], {"a": 1}])
@pytest.mark.parametrize("kind", ["snapshot", "report"])
def test_a_path_that_is_none_is_named(panel, kind, path):
    panel.receive({"content": {"data": {"kind": kind, "id": "7", "path": path}}})

    answer = json.loads(panel.sent[0])
    assert answer["failed"]
    assert answer["text"].startswith('expected "path" to be the name of a file, got ')


@pytest.mark.parametrize("kind", ["snapshot", "report"])
@pytest.mark.parametrize("path", ["x" * 300, "a\0b", "\ud800", "."])
def test_a_path_that_cannot_be_written_is_answered(panel, kind, path):
    panel.receive({"content": {"data": {"kind": kind, "id": "7", "path": path}}})

    assert json.loads(panel.sent[0])["failed"] is True


def test_a_message_without_data_is_answered(panel):
    panel.receive({"content": {}})

    assert "knows no request None" in json.loads(panel.sent[0])["text"]


@EXAMPLES
@given(since=JSON, viewer=JSON)
def test_a_timeline_sends_everything_to_whom_it_does_not_understand(new_browser, since, viewer):
    browser = new_browser(make_recording())
    browser.say(kind="show", since=since, viewer=viewer)
    is_number = type(since) is int

    assert browser.widget.comm.sent or (is_number and since >= 0)


@EXAMPLES
@given(content=JSON)
def test_a_timeline_answers_what_is_no_request(new_browser, content):
    browser = new_browser(make_recording())
    data = {"method": "custom", "content": content}
    browser.widget.comm.handle_msg({"content": {"data": data}, "buffers": []})

    [(answer, _)] = browser.widget.comm.sent
    assert answer["kind"] == "refused"
    json.dumps(answer, ensure_ascii=False).encode()
