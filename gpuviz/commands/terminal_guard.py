"""Restores the terminal even if the program is killed."""

import os
from contextlib import suppress

# The intermediate parent exits immediately, so that the program has no child of ours to wait for.
_WAIT = 'exec 3<&0; { read -r word <&3 || printf %s "$0"; } &'


class TerminalGuard:
    """Writes a text to a terminal when this process ends without `dismiss`, in whatever way.

    A shell in its own session waits for the end, so that it survives a signal to the program's
    process group. Without a shell the terminal is not guarded.

    Args:
        terminal: File descriptor of the terminal.
        text: The text.
    """

    def __init__(self, terminal: int, text: str) -> None:
        self._alive = -1
        os.register_at_fork(after_in_child=self._close)
        watched, self._alive = os.pipe()
        with suppress(OSError):
            os.waitpid(_shell(text, watched, terminal), 0)
        os.close(watched)

    def dismiss(self) -> None:
        """Cancel the text."""
        with suppress(OSError):
            os.write(self._alive, b"\n")
        self._close()

    def _close(self) -> None:
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1


def _shell(text: str, stdin: int, stdout: int) -> int:
    """Start the shell and return its process id.

    `subprocess` would wait for pipes inherited by a concurrent fork in another thread.
    """
    files = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    command = ["sh", "-c", _WAIT, text]
    return os.posix_spawn("/bin/sh", command, os.environ, file_actions=files, setsid=True)
