"""Signals that end the command line, also if somebody swallows the exceptions that they raise.

Some libraries swallow an exception that a signal handler raises during their imports, and Python
itself does in a callback of the garbage collector.
"""

import signal
import sys
from typing import Any

# A shell's exit code for a program ended by a signal: 128 plus the number.
BY_SIGNAL = 128
# After this time, an exception that was swallowed is raised again.
RAISE_AGAIN_S = 0.25
# The exceptions that `_end` has raised, the latest last.
_raised: list[BaseException] = []


def handle_signals() -> None:
    """Let SIGTERM and SIGINT raise an exception in what runs, which ends it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        # The child process of a shell's `&` ignores Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    sys.unraisablehook = _show_swallowed


def forget_signals() -> None:
    """Stop raising swallowed exceptions again."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def raise_swallowed() -> None:
    """Raise what a signal has raised, if it was swallowed."""
    if _raised:
        raise _raised[-1]


def _end(number: int, _frame: object) -> None:
    """Raise an exception, so that no partial file is left, and again if it was swallowed."""
    signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, RAISE_AGAIN_S)
    if number == signal.SIGALRM and signalled(sys.exception()) is not None:
        return  # it is being handled
    if number != signal.SIGALRM:
        is_interrupt = number == signal.SIGINT
        _raised.append(KeyboardInterrupt() if is_interrupt else SystemExit(BY_SIGNAL + number))
    raise _raised[-1]


def signalled(error: BaseException | None) -> BaseException | None:
    """Return what a signal raised before an error, or as the error, if it did."""
    while error is not None and error not in _raised:
        error = error.__context__
    return error


def _show_swallowed(unraisable: Any) -> None:
    if signalled(unraisable.exc_value) is None:
        sys.__unraisablehook__(unraisable)
