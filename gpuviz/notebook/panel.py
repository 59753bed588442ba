"""Kernel side of JupyterLab's GPU panel."""

import contextvars
import os
import platform
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

from gpuviz.data.escaping import as_unicode
from gpuviz.errors import GpuvizError
from gpuviz.notebook.background import start_thread
from gpuviz.notebook.cells import between_cells
from gpuviz.notebook.comms import TARGET, answer_while_a_cell_runs
from gpuviz.notebook.control import Control, shared_control
from gpuviz.notebook.kept_alive import MOST_BUTTONS
from gpuviz.notebook.numbers import numbers_message
from gpuviz.ownership.held_memory import (
    MOST_SHOWN,
    HeldMemory,
    Release,
    held_memory_cells,
    held_memory_headline,
)
from gpuviz.ownership.holders import holders, release
from gpuviz.quantities import format_bytes
from gpuviz.recorder.nvml import device_totals
from gpuviz.recorder.recorder import Recorder

INTERVAL_S = 1.0
# During a recording, new statistics wake the panel earlier.
LONGEST_INTERVAL_S = 3.0
# A viewer that does not repeat its request for this long is forgotten.
VIEWER_S = 60.0
_OF_THE_PROGRAM = ("leaks", "release")
# Of the lists of several pages; the oldest are forgotten.
_MOST_OFFERS = 20 * MOST_BUTTONS


@cache
def shared_panel() -> "Panel":
    """Return the one panel of this process."""
    return Panel(shared_control())


def offer_panel() -> str:
    """Register the comm target `TARGET`, and return the version of gpuviz."""
    from comm import get_comm_manager

    get_comm_manager().register_target(TARGET, shared_panel().open)
    return version("gpuviz")


class Panel:
    """Sends the recorder's state to visible viewers about once a second, and handles requests.

    Each page sends requests through its own comm. All pages receive every message on any comm, so
    each is sent once. A request is a message ``{"kind": name, "viewer": id, ...}``:

    - ``show``: the viewer is visible; repeated within `VIEWER_S`. ``hide``: it no longer is.
    - ``start`` (options ``path``, ``observe``, ``streams``, ``stacks``), ``stop``, ``clear``.
    - ``snapshot`` and ``report`` (options ``path``, ``redact``): write a file, which must not
      exist. A relative path is relative to the notebook.
    - ``leaks``: what keeps memory alive. ``release`` (option ``offer``, of an earlier reply): let
      go of it, if it is what was listed. Both wait for the end of a running cell; their reply has
      the key ``held``, see `_held`.

    Requests of the last three groups have an ``id``; the reply is ``{"kind": "done", "id": ...,
    "text": ..., "failed": ...}``, also to malformed requests. The
    state is sent as ``{"kind": "state", ...}``, see `state`. Every message sent has ``"gpuviz":
    "panel"``.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._comms: dict[str, Any] = {}
        self._viewers: dict[str, float] = {}
        self._lock = threading.RLock()
        self._pulse: threading.Thread | None = None
        self._woken = threading.Event()
        self._followed: Recorder | None = None
        self._unfollow: Callable[[], None] = lambda: None
        self._offers: dict[str, Release] = {}
        self._keys = count()

    def open(self, comm: Any, _message: object) -> None:
        """Accept a comm that a page has opened."""
        with self._lock:
            self._comms[comm.comm_id] = comm
        comm.on_msg(self._receive)
        comm.on_close(lambda _message: self._comms.pop(comm.comm_id, None))
        answer_while_a_cell_runs(comm)

    def close(self) -> None:
        """Close all comms and stop the thread."""
        with self._lock:
            comms, self._comms = self._comms, {}
            self._follow(None)
        self._ask_to_end()
        for comm in comms.values():
            comm.close()

    def state(self) -> dict[str, Any]:
        """Return the current state.

        Keys: ``recording``, whether one is in progress; ``machine``, the host name; ``totals``, see
        `device_totals`; the keys of `numbers_message`, or before the first recorder only
        ``devices``, which is then empty.
        """
        recorder = self._control.recorder
        return {
            "kind": "state",
            "recording": recorder is not None and recorder.is_recording,
            "machine": platform.node(),
            "totals": device_totals(),
            **({"devices": []} if recorder is None else numbers_message(recorder.statistics)),
        }

    def _follow(self, recorder: Recorder | None) -> None:
        if recorder is not self._followed:
            self._unfollow()
            self._followed = recorder
            self._unfollow = (
                (lambda: None) if recorder is None else recorder.follow_statistics(self._woken.set)
            )

    def _receive(self, message: Mapping[str, Any]) -> None:
        data = message["content"].get("data")
        request: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        kind = request.get("kind")
        viewer = str(request.get("viewer", ""))
        if kind == "show":
            self._show(viewer)
        elif kind == "hide":
            with self._lock:
                self._viewers.pop(viewer, None)
        else:
            answer = partial(self._answer, kind, request)
            if kind in _OF_THE_PROGRAM:
                # Objects are not looked at, and not let go, on another thread than the program's.
                between_cells(partial(contextvars.copy_context().run, answer))
            else:
                answer()

    def _answer(self, kind: object, request: Mapping[str, Any]) -> None:
        identity = request.get("id")
        known = as_unicode(identity) if isinstance(identity, str) else None
        self._send({"kind": "done", **self._done(kind, request), "id": known})
        self._tell()

    def _done(self, kind: object, request: Mapping[str, Any]) -> dict[str, Any]:
        actions: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "start": _saying(self._start),
            "stop": _saying(self._stop),
            "clear": _saying(self._clear),
            "snapshot": _saying(self._snapshot),
            "report": _saying(self._report),
            "leaks": self._leaks,
            "release": self._release,
        }
        action = actions.get(kind) if isinstance(kind, str) else None
        if action is None:
            text = f"This version of gpuviz knows no request {kind!r:.80}"
            return {"text": as_unicode(text), "failed": True}
        try:
            return {**action(request), "failed": False}
        except (GpuvizError, OSError, ValueError) as error:
            return {"text": as_unicode(str(error)), "failed": True}
        except Exception as error:  # noqa: BLE001 - a page without an answer would wait forever
            return {"text": as_unicode(f"{type(error).__name__}: {error}"), "failed": True}

    def _show(self, viewer: str) -> None:
        with self._lock:
            is_new = viewer not in self._viewers
            self._viewers[viewer] = time.monotonic() + VIEWER_S
            if self._pulse is None or not self._pulse.is_alive():
                self._woken.clear()
                self._pulse = start_thread("gpuviz-panel", self._beat, self._ask_to_end)
            elif is_new:
                self._tell()

    def _beat(self) -> None:
        while self._is_watched():
            recorder = self._control.recorder
            with self._lock:
                self._follow(recorder)
            state = self.state()
            # Reading the statistics for this state has set the event.
            self._woken.clear()
            with self._lock:
                if self._viewers:
                    self._send(state)
            recording = recorder is not None and recorder.is_recording
            self._woken.wait(LONGEST_INTERVAL_S if recording else INTERVAL_S)
        with self._lock:
            self._follow(None)

    def _ask_to_end(self) -> None:
        with self._lock:
            self._viewers.clear()
        self._woken.set()

    def _is_watched(self) -> bool:
        with self._lock:
            now = time.monotonic()
            self._viewers = {each: until for each, until in self._viewers.items() if until > now}
            if not self._viewers:
                self._pulse = None
            return bool(self._viewers)

    def _tell(self) -> None:
        with self._lock:
            if self._viewers:
                self._send(self.state())

    def _send(self, content: dict[str, Any]) -> None:
        comm = next(iter(self._comms.values()), None)
        if comm is not None:
            comm.send({**content, "gpuviz": "panel"})

    def _start(self, request: Mapping[str, Any]) -> str:
        self._control.start(
            _path_in(request) if request.get("path") else None,
            device=self._control.device,
            allocator="observe" if request.get("observe") else "caching",
            streams=bool(request.get("streams", True)),
            stacks=bool(request.get("stacks", True)),
        )
        return "Recording started."

    def _stop(self, _request: Mapping[str, Any]) -> str:
        self._control.stop()
        return "Recording stopped."

    def _clear(self, _request: Mapping[str, Any]) -> str:
        self._control.clear()
        return "Recording discarded."

    def _snapshot(self, request: Mapping[str, Any]) -> str:
        return f"Wrote {self._control.save(beside_the_notebook(_path_in(request)))}"

    def _report(self, request: Mapping[str, Any]) -> str:
        path = beside_the_notebook(_path_in(request))
        return f"Wrote {self._control.report(path, redact=bool(request.get('redact')))}"

    def _leaks(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        held = holders()
        return {"text": as_unicode(held_memory_headline(held)), "held": self._held(held)}

    def _release(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            text = f"Freed {format_bytes(release(self._offer_in(request)))}."
        except ValueError as error:
            text = f"{error}."
        return {"text": as_unicode(text), "held": self._held(holders())}

    def _offer_in(self, request: Mapping[str, Any]) -> Release:
        key = request.get("offer")
        offered = self._offers.get(key) if isinstance(key, str) else None
        if offered is None:
            raise ValueError("This list was out of date, and nothing was released")
        return offered

    def _held(self, held: HeldMemory) -> dict[str, Any]:
        """Return what keeps memory alive, and what can be let go, as texts.

        Keys: ``rows`` (size, number of blocks, who keeps them, note), at most `MOST_SHOWN`;
        ``more``, the number of other rows; ``releases`` (offer, title, bytes).
        """
        rows = [[as_unicode(text) for text in row] for row in held_memory_cells(held)]
        releases = [
            [self._offer(each), as_unicode(each.title), format_bytes(each.nbytes)]
            for each in held.releases[:MOST_BUTTONS]
        ]
        more = max(len(rows) - MOST_SHOWN, 0)
        return {"rows": rows[:MOST_SHOWN], "more": more, "releases": releases}

    def _offer(self, offered: Release) -> str:
        """Remember what a button offers, and return the key by which a page asks for it."""
        key = str(next(self._keys))
        self._offers[key] = offered
        if len(self._offers) > _MOST_OFFERS:
            del self._offers[next(iter(self._offers))]
        return key


def _saying(
    action: Callable[[Mapping[str, Any]], str],
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return an action whose reply has the sentence that this one returns."""
    return lambda request: {"text": as_unicode(action(request))}


def _path_in(request: Mapping[str, Any]) -> str:
    path = request.get("path")
    if not isinstance(path, str) or not path:
        raise ValueError(f'expected "path" to be the name of a file, got {path!r:.80}')
    return path


def beside_the_notebook(name: str) -> str:
    """Return a path relative to the notebook's folder, whatever the working directory is.

    The server sets ``JPY_SESSION_NAME`` for kernels on its own machine; otherwise the path is
    relative to the working directory.
    """
    folder = Path(os.environ.get("JPY_SESSION_NAME", "")).parent
    return str(folder / name) if folder.is_dir() else name
