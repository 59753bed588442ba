"""Collectives of NCCL, if the first communicator of the process is created during a recording.

NCCL looks for its profiler plugin only then. A process with an earlier communicator is recorded if
NCCL_PROFILER_PLUGIN named `gpuviz._core` at that time.
"""

from gpuviz import _core
from gpuviz.recorder.injection import Injection

# Where NCCL looks for a plugin.
VARIABLE = "NCCL_PROFILER_PLUGIN"


class NcclCollectives:
    """Sends collectives to one session, between `begin` and `end`."""

    def __init__(self, session: _core.Session) -> None:
        self._session = session
        self._injection = Injection(VARIABLE, "NCCL's collectives")

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user, in sentences."""
        return self._injection.notes

    def begin(self) -> None:
        """Register as NCCL's profiler plugin, unless there is another."""
        self._injection.begin()
        _core.record_nccl(self._session)

    def end(self) -> None:
        """Stop recording, and unregister."""
        self._injection.end()
        _core.ignore_nccl()
