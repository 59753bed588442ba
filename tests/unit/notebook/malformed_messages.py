"""Messages of a page in which names and values are false, and a kernel that gets them."""

import json
import os
from pathlib import Path

import comm

from gpuviz.notebook.control import Control
from gpuviz.notebook.panel import Panel
from gpuviz.notebook.timeline import Timeline
from tests.unit.notebook.fake_browser import FakeBrowser, FakeComm
from tests.unit.report.recordings import make_recording

PANEL = (
    {"kind": "show", "viewer": "page"},
    {"kind": "hide", "viewer": "page"},
    {"kind": "start", "id": "1", "path": "a.gpuviz", "observe": True, "streams": True},
    {"kind": "stop", "id": "2"},
    {"kind": "clear", "id": "3"},
    {"kind": "snapshot", "id": "4", "path": "b.gpuviz"},
    {"kind": "report", "id": "5", "path": "b.html", "redact": True},
    {"kind": "leaks", "id": "6"},
    {"kind": "release", "id": "7", "offer": "0"},
)
TIMELINE = (
    {"kind": "show", "viewer": "page", "since": -1},
    {"kind": "show", "viewer": "page", "since": 3},
    {"kind": "hide", "viewer": "page"},
)
VALUES = [
    None,
    True,
    False,
    -1,
    0,
    1,
    1 << 31,
    1 << 63,
    -(1 << 70),
    1.5,
    1e308,
    float("nan"),
    "",
    "x",
]
VALUES += [
    "x" * 300,
    "a\0b",
    "\ud800",
    "<script>alert(1)</script>",
    "..",
    "/",
    [],
    {},
    [[]],
    {"": None},
]


class PanelComm:
    """The kernel's side of a page's comm."""

    comm_id = "page"

    def __init__(self):
        self.sent = []
        self.receive = None

    def on_msg(self, receive):
        self.receive = receive

    def on_close(self, _):
        pass

    def send(self, content):
        self.sent.append(json.dumps(content, ensure_ascii=False).encode())


class FinishedControl(Control):
    """A control with a finished recording, which starts nothing."""

    recording = make_recording()
    recorder = None

    def start(self, path=None, **_options):
        assert path is None or isinstance(path, str)
        raise ValueError(f"cannot start {path!r}")

    def save(self, path, **options):
        return super().save(_here(path), **options)

    def report(self, path, **options):
        return super().report(_here(path), **options)


def _here(path):
    if not Path(path).resolve().is_relative_to(Path.cwd()):
        raise ValueError("a test must not write there")
    return path


def changed(message, source):
    """Return a message with a few names and values that are false."""
    if source.random() < 0.05:
        return source.choice(VALUES)
    changed = dict(message)
    for _ in range(source.choice([1, 1, 2, 3])):
        key = source.choice([*message, "path", "id", "viewer", "more"])
        if source.random() < 0.2:
            changed.pop(key, None)
        else:
            value = source.choice(VALUES)
            changed[key] = source.choice([value, value, value, [value] * 40, {"kind": value}])
    return changed


def conversation(messages):
    """Return a function that writes a conversation of such messages into a folder."""

    def write(folder, source):
        path = folder / "messages.json"
        said = [changed(source.choice(messages), source) for _ in range(6)]
        path.write_text(json.dumps({"to": messages is PANEL, "messages": said}))
        return path

    return write


KINDS = {"panel": conversation(PANEL), "timeline": conversation(TIMELINE)}


def outcome(path):
    """Return whether a conversation was answered, or an error."""
    found = json.loads(path.read_text())
    os.chdir(path.parent)
    try:
        (answer_panel if found["to"] else answer_timeline)(found["messages"])
    except Exception as error:  # noqa: BLE001 - what it may be is the question
        return error
    return True


def answer_panel(messages):
    panel, page = Panel(FinishedControl()), PanelComm()
    panel.open(page, {})
    for message in messages:
        page.sent.clear()
        page.receive({"content": {"data": message}})
        kind = message.get("kind") if isinstance(message, dict) else None
        if kind not in ("show", "hide"):
            answers = [each for each in map(json.loads, page.sent) if each["kind"] == "done"]
            assert len(answers) == 1
            assert answers[0]["text"]


def answer_timeline(messages):
    comm.create_comm = FakeComm
    browser = FakeBrowser(Timeline(make_recording()))
    for message in messages:
        kind = message.get("kind") if isinstance(message, dict) else None
        sent = len(browser.widget.comm.sent)
        data = {"method": "custom", "content": message}
        browser.widget.comm.handle_msg({"content": {"data": data}, "buffers": []})
        answers = [content["kind"] for content, _ in browser.widget.comm.sent[sent:]]
        assert kind in ("show", "hide") or answers == ["refused"]
    browser.widget.close()
