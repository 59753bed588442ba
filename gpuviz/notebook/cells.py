"""The notebook cell in progress."""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def running_cell() -> tuple[str, str]:
    """Return the id of the running cell, and an id of this run; empty if unknown.

    JupyterLab and Notebook 7 send the id of a cell, which is the same each time it runs.
    """
    kernel = getattr(_shell(), "kernel", None)
    if kernel is None:
        return "", ""
    request = kernel.get_parent() or {}
    cell = request.get("metadata", {}).get("cellId", "")
    return str(cell), str(request.get("header", {}).get("msg_id", ""))


def on_cell_end(callback: Callable[..., None], wanted: bool) -> None:
    """Start or stop calling ``callback`` after each cell."""
    events = getattr(_shell(), "events", None)
    if events is None:
        return
    if wanted:
        events.register("post_run_cell", callback)
    else:
        with suppress(ValueError):
            events.unregister("post_run_cell", callback)


def is_on_main_thread() -> bool:
    """Return whether the caller runs on the thread of cells, not on that of a subshell."""
    return threading.current_thread() is threading.main_thread()


def between_cells(action: Callable[[], object]) -> None:
    """Call ``action`` on the main thread: now, or when its cell has ended or awaits something.

    On another thread of a process without a kernel it is not called.
    """
    if is_on_main_thread():
        action()
        return
    loop = getattr(getattr(_shell(), "kernel", None), "io_loop", None)
    if loop is not None:
        loop.add_callback(action)


def _shell() -> Any:
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()
