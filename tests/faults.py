"""Exceptions raised at any line of gpuviz, on one thread.

Not at the lines of ``with`` and ``try``, where only a trace function can raise, and an exception
would leave a lock held: a trace function runs between the end of a block and the call of
``__exit__``, and Python's compiler gives the line of ``try`` in a block no handler.
"""

import linecache
import sys
import threading
from contextlib import contextmanager

# The loop that runs the calls of a thread; without it, callers run their calls themselves.
_LOOP = "/gpuviz/recorder/worker.py"


class Fault:
    """Raises an exception at the n-th line that a thread runs while the fault is armed.

    Args:
        kind: The class of the exception.
        folder: A part of the path of the files whose lines count.
        thread: The name of the thread.

    Attributes:
        place: File, line and function where it was raised last; None if it was not.
    """

    def __init__(self, kind=KeyboardInterrupt, folder="/gpuviz/", thread="MainThread"):
        self._kind = kind
        self._folder = folder
        self._thread = thread
        self._left = 0
        self._is_armed = False
        self.place = None

    def _trace(self, frame, _event, _argument):
        name = frame.f_code.co_filename
        return self._at if self._folder in name and not name.endswith(_LOOP) else None

    def _at(self, frame, event, _argument):
        is_here = self._is_armed and threading.current_thread().name == self._thread
        if event == "line" and is_here and not _is_out_of_reach(frame):
            self._left -= 1
            if self._left == 0:
                self.place = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
                raise self._kind(f"injected at {self.place}")
        return self._at

    @contextmanager
    def armed(self, line):
        """Raise the exception at this line of the block, and pass on all others."""
        before = sys.gettrace()
        self._left, self.place = line, None
        sys.settrace(self._trace)
        self._is_armed = True
        try:
            yield
        except BaseException:  # the exception, or what came of it
            if self.place is None:
                raise
        finally:
            self._is_armed = False
            sys.settrace(before)

    def follow(self):
        """Follow the calling thread; Python forgets that after each exception."""
        sys.settrace(self._trace)

    @property
    def lines_run(self):
        """The number of lines of the last block at whose line 0 it was armed."""
        return -self._left

    def lines(self, step=1):
        """Yield the numbers of lines to interrupt, until one is not reached."""
        line = 1
        while line == 1 or self.place is not None:
            yield line
            line += step


def _is_out_of_reach(frame):
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return line.lstrip().startswith(("with ", "try:"))
