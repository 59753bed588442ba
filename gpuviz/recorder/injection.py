"""NVTX ranges and NCCL's collectives, from libraries that load a tool named in the environment.

NVTX looks for it at the first NVTX call of each library, and NCCL when the first communicator of
the process is created. What was there before the recording is recorded if the variable named
`gpuviz._core` at that time.
"""

import os
from collections.abc import Callable
from functools import partial

from gpuviz import _core

NVTX_TOOL = "NVTX_INJECTION64_PATH"
NCCL_PLUGIN = "NCCL_PROFILER_PLUGIN"


class Injection:
    """Names `gpuviz._core` as the tool of other libraries, between `begin` and `end`.

    Args:
        variable: The environment variable. If it already names another tool, it stays.
        unrecorded: What is not recorded then.
        record: Starts recording.
        ignore: Stops recording.

    Attributes:
        notes: Messages for the user, in sentences.
    """

    def __init__(
        self,
        variable: str,
        unrecorded: str,
        record: Callable[[], None],
        ignore: Callable[[], None],
    ) -> None:
        self._variable = variable
        self._unrecorded = unrecorded
        self._record, self._ignore = record, ignore
        self._is_set = False
        self.notes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Set the variable, unless it is set, and start recording."""
        self._is_set = self._variable not in os.environ
        path = os.environ.setdefault(self._variable, _core.__file__)
        if path != _core.__file__:
            tool = f"{self._variable}={path}"
            self.notes = (f"{self._unrecorded} are not recorded: another tool gets them ({tool})",)
        self._record()

    def end(self) -> None:
        """Remove the variable, if `begin` set it, and stop recording."""
        if self._is_set:
            os.environ.pop(self._variable, None)
        self._ignore()


def nvtx_ranges(session: _core.Session) -> Injection:
    """Return what sends NVTX ranges to a session."""
    return Injection(
        NVTX_TOOL, "NVTX ranges", partial(_core.record_nvtx, session), _core.ignore_nvtx
    )


def nccl_collectives(session: _core.Session) -> Injection:
    """Return what sends NCCL's collectives to a session."""
    return Injection(
        NCCL_PLUGIN, "NCCL's collectives", partial(_core.record_nccl, session), _core.ignore_nccl
    )
