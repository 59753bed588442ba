"""Hearing NVTX ranges: of every library whose first NVTX call comes while a recorder listens.

Each library looks for its tool at its first call and never again, so one whose first range came
before the first recording cannot be heard, unless NVTX_INJECTION64_PATH named `gpuviz._core` then.
"""

import os

from gpuviz import _core

# Where NVTX looks for the tool that it loads at a library's first call.
VARIABLE = "NVTX_INJECTION64_PATH"


_OTHER_TOOL = "NVTX ranges are not recorded: another tool gets them ({variable}={path})"


class NvtxRanges:
    """Sends NVTX ranges to one session, between `begin` and `end`.

    Attributes:
        notes: What the user should know, in sentences.
    """

    def __init__(self, session: _core.Session) -> None:
        self._session = session
        self._is_set = False
        self.notes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Be the tool of libraries that call NVTX for the first time, if there is no other one."""
        self._is_set = VARIABLE not in os.environ
        path = os.environ.setdefault(VARIABLE, _core.__file__)
        if path != _core.__file__:
            self.notes = (_OTHER_TOOL.format(variable=VARIABLE, path=path),)
        _core.record_nvtx(self._session)

    def end(self) -> None:
        """Record no more, and be the tool of no further library."""
        if self._is_set:
            os.environ.pop(VARIABLE, None)
        _core.ignore_nvtx()
