"""A stand-in for a browser that receives a widget's messages, without a notebook."""

import comm.base_comm
import pyarrow as pa
import pyarrow.compute


class FakeComm(comm.base_comm.BaseComm):
    """Stores messages; the receiver decides which are lost."""

    def __init__(self, *arguments, **options):
        self.sent = []
        super().__init__(*arguments, **options)

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        del metadata, keys
        if msg_type == "comm_msg" and data["method"] == "custom":
            self.sent.append((data["content"], list(buffers or [])))


class FakeBrowser:
    """A page that shows a widget, and processes messages by number."""

    def __init__(self, widget, viewer="page"):
        self.widget = widget
        self.viewer = viewer
        self.number = -1
        self.numbers = []
        self.tables = {}
        self.recording = None
        self.initial_events = 0
        self.gaps = 0
        self.taken = 0
        self._arriving = None

    def say(self, **content):
        data = {"method": "custom", "content": {"viewer": self.viewer, **content}}
        self.widget.comm.handle_msg({"content": {"data": data}, "buffers": []})

    def show(self):
        self.say(kind="show", since=self.number)

    def hide(self):
        self.say(kind="hide")

    def lose(self):
        """Discard all messages since the last call."""
        self.taken = len(self.widget.comm.sent)

    def receive(self):
        """Process the messages since the last call."""
        sent = self.widget.comm.sent[self.taken :]
        self.taken += len(sent)
        for content, buffers in sent:
            if content["kind"] == "at":
                self.gaps += content["number"] > self.number
                continue
            self.recording = content["recording"]
            if content["parts"]:
                self._take_part(content, buffers)
            elif content["number"] == self.number + 1:
                self._append(self.tables, content, buffers)
                self.number = content["number"]
                self.numbers.append(self.number)
            elif content["number"] > self.number:
                self.gaps += 1

    def rows(self, table):
        parts = self.tables.get(table)
        return pa.concat_tables(parts).unify_dictionaries().to_pylist() if parts else []

    def _take_part(self, content, buffers):
        if content["number"] <= self.number:
            return
        if content["part"] == 0:
            self._arriving = {}
        self._append(self._arriving, content, buffers)
        if content["part"] + 1 == content["parts"]:
            self.tables = self._arriving
            self.number = content["number"]
            self.initial_events = content["initialEvents"]

    def _append(self, tables, content, buffers):
        assert len(content["tables"]) == len(buffers)
        for header, rows in zip(content["tables"], buffers, strict=True):
            name = header
            if isinstance(header, dict):
                name = header["name"]
                _forget_from(tables, name, header["replace_from_ns"])
            tables.setdefault(name, []).append(pa.ipc.open_stream(rows).read_all())


def _forget_from(tables, name, from_ns):
    column = "recorded_time" if name == "stream_waits" else "time"
    tables[name] = [
        part.filter(pa.compute.less(part[column], from_ns)) for part in tables.get(name, [])
    ]
