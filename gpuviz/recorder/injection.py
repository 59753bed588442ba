"""Environment variables by which other libraries load `gpuviz._core` as their tool."""

import os

from gpuviz import _core


class Injection:
    """Names `gpuviz._core` in an environment variable, between `begin` and `end`.

    Args:
        variable: The variable. If it already names another tool, it stays.
        unrecorded: What is not recorded then.

    Attributes:
        notes: Messages for the user, in sentences.
    """

    def __init__(self, variable: str, unrecorded: str) -> None:
        self._variable = variable
        self._unrecorded = unrecorded
        self._is_set = False
        self.notes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Set the variable, unless it is set."""
        self._is_set = self._variable not in os.environ
        path = os.environ.setdefault(self._variable, _core.__file__)
        if path != _core.__file__:
            tool = f"{self._variable}={path}"
            self.notes = (f"{self._unrecorded} are not recorded: another tool gets them ({tool})",)

    def end(self) -> None:
        """Remove the variable, if `begin` set it."""
        if self._is_set:
            os.environ.pop(self._variable, None)
