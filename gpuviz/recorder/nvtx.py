"""NVTX ranges of every library whose first NVTX call happens during a recording.

Each library looks for its NVTX tool only at its first call. A library that called NVTX before the
first recording is not recorded, unless NVTX_INJECTION64_PATH named `gpuviz._core` at that time.
"""

from gpuviz import _core
from gpuviz.recorder.injection import Injection

# Where NVTX looks for a tool at a library's first call.
VARIABLE = "NVTX_INJECTION64_PATH"


class NvtxRanges:
    """Sends NVTX ranges to one session, between `begin` and `end`."""

    def __init__(self, session: _core.Session) -> None:
        self._session = session
        self._injection = Injection(VARIABLE, "NVTX ranges")

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user, in sentences."""
        return self._injection.notes

    def begin(self) -> None:
        """Register as the NVTX tool of libraries that call it first, unless another tool has."""
        self._injection.begin()
        _core.record_nvtx(self._session)

    def end(self) -> None:
        """Stop recording, and unregister as the tool of further libraries."""
        self._injection.end()
        _core.ignore_nvtx()
