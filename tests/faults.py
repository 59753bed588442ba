"""Exceptions raised at any line of gpuviz, on one thread."""

import sys
import threading
from contextlib import contextmanager


class Fault:
    """Raises an exception at the n-th line that a thread runs while the fault is armed.

    Attributes:
        place: File, line and function where it was raised; None if it was not.
    """

    def __init__(self, line, kind=KeyboardInterrupt, folder="/gpuviz/", thread="MainThread"):
        self._left = line
        self._kind = kind
        self._folder = folder
        self._thread = thread
        self._is_armed = False
        self.place = None

    def trace(self, frame, _event, _argument):
        return self._at if self._folder in frame.f_code.co_filename else None

    def _at(self, frame, event, _argument):
        if event == "line" and self._is_armed and threading.current_thread().name == self._thread:
            self._left -= 1
            if self._left == 0:
                self.place = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
                raise self._kind(f"injected at {self.place}")
        return self._at

    @contextmanager
    def armed(self):
        """Raise the exception within the block, which passes on all but this one."""
        before = sys.gettrace()
        sys.settrace(self.trace)
        self._is_armed = True
        try:
            yield
        except self._kind:
            if self.place is None:
                raise
        finally:
            self._is_armed = False
            sys.settrace(before)

    @contextmanager
    def on_new_threads(self):
        """Let threads that start within the block raise the exception too, while it is armed."""
        threading.settrace(self.trace)
        try:
            yield
        finally:
            threading.settrace(None)


def faults_at_every_line(step=1, **options):
    """Yield a fault at each line, until one is not reached."""
    line = 1
    while True:
        fault = Fault(line, **options)
        yield fault
        if fault.place is None:
            return
        line += step
