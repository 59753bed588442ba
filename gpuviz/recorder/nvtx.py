"""NVTX ranges of every library whose first NVTX call happens during a recording.

Each library looks for its NVTX tool only at its first call. A library that called NVTX before the
first recording is not recorded, unless NVTX_INJECTION64_PATH named `gpuviz._core` at that time.
"""

import os

from gpuviz import _core

# Where NVTX looks for a tool at a library's first call.
VARIABLE = "NVTX_INJECTION64_PATH"


_OTHER_TOOL = "NVTX ranges are not recorded: another tool gets them ({variable}={path})"


class NvtxRanges:
    """Sends NVTX ranges to one session, between `begin` and `end`.

    Attributes:
        notes: Messages for the user, in sentences.
    """

    def __init__(self, session: _core.Session) -> None:
        self._session = session
        self._is_set = False
        self.notes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Register as the NVTX tool of libraries that call it first, unless another tool has."""
        self._is_set = VARIABLE not in os.environ
        path = os.environ.setdefault(VARIABLE, _core.__file__)
        if path != _core.__file__:
            self.notes = (_OTHER_TOOL.format(variable=VARIABLE, path=path),)
        _core.record_nvtx(self._session)

    def end(self) -> None:
        """Stop recording, and unregister as the tool of further libraries."""
        if self._is_set:
            os.environ.pop(VARIABLE, None)
        _core.ignore_nvtx()
