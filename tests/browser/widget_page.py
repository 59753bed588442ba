"""A widget of this process in a page without a notebook, for instance in another's output frame."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

import comm
from comm.base_comm import BaseComm
from playwright.sync_api import Frame, Page

from gpuviz.notebook.timeline import Timeline

# Asks every 20 ms for what the widget has sent, as if the kernel sent it by itself.
SHOW = """async ([source, css, state]) => {
  const style = document.createElement("style");
  style.textContent = css;
  const el = document.createElement("div");
  document.head.append(style);
  (document.getElementById("output") ?? document.body).append(el);
  const handlers = [];
  const fire = (name, ...values) =>
    handlers.filter((each) => each.name === name).forEach(({ handler }) => handler(...values));
  const receive = (messages) => {
    for (const { content, state: changed, buffers } of messages) {
      if (changed !== undefined) {
        Object.assign(state, changed);
        Object.keys(changed).forEach((name) => fire(`change:${name}`));
      } else {
        fire("msg:custom", content, buffers.map((text) =>
          new DataView(Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0)).buffer)));
      }
    }
  };
  const model = {
    get: (name) => state[name],
    send: (content) => void tellWidget(content).then(receive),
    on: (name, handler) => handlers.push({ name, handler }),
    off: (name, handler) => handlers.splice(
      handlers.findIndex((each) => each.name === name && each.handler === handler), 1),
  };
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { initialize, render } = (await import(url)).default();
  initialize({ model });
  render({ model, el });
  setInterval(() => void tellWidget(null).then(receive), 20);
}"""


class KernelComm(BaseComm):
    """Keeps what a widget sends until the page takes it."""

    def __init__(self, *arguments: object, **options: object) -> None:
        self.sent: list[dict[str, object]] = []
        super().__init__(*arguments, **options)

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        del metadata, keys
        if msg_type != "comm_msg":
            return
        if data["method"] == "update":
            self.sent.append({"state": data["state"]})
        elif data["method"] == "custom":
            texts = [base64.b64encode(each).decode() for each in buffers or ()]
            self.sent.append({"content": data["content"], "buffers": texts})

    def take(self) -> list[dict[str, object]]:
        taken, self.sent = self.sent, []
        return taken


@contextmanager
def kernel(monkeypatch) -> Iterator[None]:
    """Let widgets that are made meanwhile speak with pages of `show_widget`."""
    with monkeypatch.context() as patched:
        patched.setattr(comm, "create_comm", KernelComm)
        yield


def show_widget(page: Page, widget: Timeline, frame: Frame | None = None) -> None:
    """Show a widget in a frame of a page, the page itself if None, below its element `output`."""

    def tell(content: object) -> list[dict[str, object]]:
        if content is not None:
            data = {"method": "custom", "content": content}
            widget.comm.handle_msg({"content": {"data": data}, "buffers": []})
        return [] if widget.comm is None else widget.comm.take()

    page.expose_function("tellWidget", tell)
    state = {name: getattr(widget, name) for name in widget.keys if not name.startswith("_")}
    state = {name: value for name, value in state.items() if name not in {"layout", "comm"}}
    (frame or page.main_frame).evaluate(SHOW, [widget._esm, widget._css, state])
