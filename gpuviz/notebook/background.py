"""Daemon threads that end before the interpreter does.

Up to Python 3.13, an exiting interpreter unwinds the stack of a daemon thread that requests the
GIL. A destructor of C++ on that stack, such as one of pyarrow, then aborts the process.
"""

import atexit
import contextvars
import ctypes
import threading
from collections.abc import Callable

# How long the interpreter's exit waits for a thread that was asked to end, in seconds; twice,
# because the thread gets an exception in between.
PATIENCE_S = 1.0


def start_thread(name: str, run: Callable[[], None], ask: Callable[[], None]) -> threading.Thread:
    """Start a daemon thread in the caller's context, and return it.

    Args:
        name: Name of the thread.
        run: What the thread does.
        ask: Lets ``run`` return soon, without waiting for it; called when the interpreter exits.
    """
    # ipykernel 7 needs the context of a cell, or of a request, to send a message.
    context = contextvars.copy_context()

    def body() -> None:
        try:
            context.run(run)
        finally:
            atexit.unregister(end)

    def end() -> None:
        # The child of a fork lacks the thread, which may have held a lock that ``ask`` requests.
        if thread.is_alive():
            ask()
            thread.join(PATIENCE_S)
        if thread.is_alive():
            _raise_in(thread, SystemExit)
            thread.join(PATIENCE_S)

    thread = threading.Thread(target=body, name=name, daemon=True)
    # The last handler is the first to run: views end before a recording that is still active.
    atexit.register(end)
    try:
        thread.start()
    except BaseException:
        atexit.unregister(end)
        raise
    return thread


def _raise_in(thread: threading.Thread, kind: type[BaseException]) -> None:
    """Raise an exception in a running thread, at its next step in Python."""
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(kind)
        )
