"""The timeline widget, live during a recording."""

import contextvars
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet, ref

import anywidget

from gpuviz.conclusions.store import for_views
from gpuviz.data.escaping import as_unicode
from gpuviz.notebook.cells import on_cell_end, running_cell
from gpuviz.notebook.comms import answer_while_a_cell_runs
from gpuviz.notebook.finished import Finished
from gpuviz.notebook.numbers import numbers_message
from gpuviz.recorder.feed import Feed, FeedMessage
from gpuviz.recorder.recorder import Recorder
from gpuviz.recorder.status import RecorderStatistics
from gpuviz.recording import Recording

_STATIC = Path(__file__).parent.parent / "static"
_open: "WeakSet[Timeline]" = WeakSet()
# Closing a widget while the page sets it up makes anywidget log an error in the browser console.
_SET_UP_S = 5


class Timeline(anywidget.AnyWidget):
    """Shows a recording, or a recorder live, even while a cell runs.

    The widget subscribes to the recorder only while it is visible, and stores no data: the browser
    keeps all batches and requests those it lacks. Running the widget's cell again closes it, after
    a few seconds if no page has set it up yet.

    Args:
        shown: A recorder, started or not, a finished recording, or nothing yet.

    Raises:
        TypeError: ``shown`` is something else.
    """

    # Text instead of paths: anywidget watches a path and keeps its widgets alive.
    _esm = (_STATIC / "widget.js").read_text(encoding="utf-8")
    _css = (_STATIC / "widget.css").read_text(encoding="utf-8")

    def __init__(self, shown: Recorder | Recording | None) -> None:
        self._unsubscribe: Callable[[], None] | None = None
        self._unfollow: Callable[[], None] = lambda: None
        self._viewers: set[str] = set()
        self._number = -1
        # Google Colab does not deliver messages sent by threads.
        self._is_live = "google.colab" not in sys.modules
        self._take(shown)
        self._made_by = running_cell()
        self._is_set_up_at = time.monotonic() + _SET_UP_S
        super().__init__()
        _close_earlier(self._made_by)
        _open.add(self)
        self.on_msg(self._answer)
        answer_while_a_cell_runs(self.comm)
        if not self._is_live:
            on_cell_end(self._refresh, True)

    def close(self) -> None:
        """Unsubscribe, and remove the widget from the notebook."""
        _open.discard(self)
        if not self._is_live:
            on_cell_end(self._refresh, False)
        self._viewers.clear()
        self._stop_listening()
        self.layout.close()
        super().close()

    def __del__(self) -> None:
        """Do not close, as the finalizer of `ipywidgets.Widget` does.

        ipywidgets keeps every open widget alive, so only the end of the interpreter deletes one.
        Its other threads no longer run then, and closing would wait for them forever.
        """

    def show(self, shown: Recorder | Recording | None) -> None:
        """Show something else on all pages."""
        self._stop_listening()
        self._take(shown)
        self.send({"kind": "other"})

    def _take(self, shown: Recorder | Recording | None) -> None:
        self._subscribe = None if shown is None else _subscribing(shown)
        self._statistics_of = Finished(shown) if isinstance(shown, Recording) else shown
        self._statistics: RecorderStatistics | None = None
        self._bounds = shown.bounds if isinstance(shown, Recording) else None

    @property
    def is_watched(self) -> bool:
        """Whether the widget is visible on any page."""
        return bool(self._viewers)

    def _answer(self, _widget: object, content: object, _buffers: Sequence[Any]) -> None:
        request = content if isinstance(content, dict) else {}
        kind, viewer = request.get("kind"), str(request.get("viewer", ""))
        if kind == "show":
            self._viewers.add(viewer)
            self._is_set_up_at = time.monotonic()
            since = request.get("since")
            # A snapshot of everything answers what cannot be understood.
            self._listen(since if type(since) is int else -1)
        elif kind == "hide":
            self._viewers.discard(viewer)
            if not self._viewers:
                self._stop_listening()
        elif not self._does(request):
            text = f"expected show or hide, got {kind!r:.80}"
            self.send({"kind": "refused", "text": as_unicode(text)})

    def _does(self, _request: dict[Any, Any]) -> bool:
        """Do what a page asks for otherwise; return whether that is known."""
        return False

    def _listen(self, since: int) -> None:
        self._unfollow()
        if self._subscribe is None:
            self.send({"kind": "nothing"})
            return
        if isinstance(self._statistics_of, Recorder):
            # Keeps the statistics current; the next message contains them.
            self._unfollow = self._statistics_of.follow_statistics(lambda: None)
        before = self._unsubscribe
        self._unsubscribe = self._subscribe(self._send_batches, since)
        if before is not None:
            before()

    def _stop_listening(self) -> None:
        self._unfollow()
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            unsubscribe()

    def _refresh(self, *_: object) -> None:
        # The page compares the number with its own and requests the missing batches.
        if self._unsubscribe is not None:
            self.send({"kind": "at", "number": self._number})

    def _send_batches(self, message: FeedMessage) -> None:
        self._number = message.number
        self.send(
            {
                "kind": "batches",
                "number": message.number,
                "part": message.part,
                "parts": message.parts,
                "recording": message.recording,
                "live": self._is_live,
                "durationNs": message.duration_ns,
                "initialEvents": message.initial_events,
                **({} if self._bounds is None else {"window": list(self._bounds)}),
                "tables": [_table_header(name, message) for name, _ in message.tables],
                **self._new_statistics(message),
            },
            buffers=[rows for _, rows in message.tables],
        )

    def _new_statistics(self, message: FeedMessage) -> dict[str, Any]:
        """Return the numbers if they changed since the last message, or if a page may be new."""
        source = self._statistics_of
        statistics = None if source is None else source.statistics
        if statistics is None or (statistics is self._statistics and not message.parts):
            return {}
        self._statistics = statistics
        return {"statistics": numbers_message(statistics)}


def _subscribing(
    shown: Recorder | Recording,
) -> Callable[[Callable[[FeedMessage], None], int], Callable[[], None]]:
    if isinstance(shown, Recorder):
        return shown.subscribe
    if not isinstance(shown, Recording):
        raise TypeError(f"expected a Recorder or a Recording, got {type(shown).__name__}")
    feed = Feed(
        lambda: (
            {**shown.tables, **shown.derived, **for_views(shown)},
            shown.manifest.initial_events,
        ),
        lambda: shown.duration_ns,
    )
    feed.close()
    return feed.subscribe


def _table_header(name: str, message: FeedMessage) -> str | dict[str, Any]:
    from_ns = message.replace_from_ns.get(name)
    return name if from_ns is None else {"name": name, "replace_from_ns": from_ns}


def _close_earlier(made_by: tuple[str, str]) -> None:
    # ipywidgets keeps every open widget alive, so a cell run often would accumulate them.
    cell, run = made_by
    for timeline in list(_open):
        other_cell, other_run = timeline._made_by  # noqa: SLF001
        if cell and cell == other_cell and run != other_run:
            _close_when_set_up(timeline)


def _close_when_set_up(timeline: Timeline) -> None:
    left_s = timeline._is_set_up_at - time.monotonic()  # noqa: SLF001
    if left_s <= 0:
        timeline.close()
        return
    # ipykernel 7 needs the context of a cell to send a message.
    context = contextvars.copy_context()
    later = threading.Timer(left_s, context.run, [_close, ref(timeline)])
    later.daemon = True
    later.start()


def _close(timeline: ref[Timeline]) -> None:
    alive = timeline()
    if alive is not None:
        alive.close()
