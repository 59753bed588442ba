"""All sources of host ranges of a session."""

from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.frameworks.ipython import CellRanges
from gpuviz.recorder import ranges, stream_names
from gpuviz.recorder.nvtx import NvtxRanges
from gpuviz.recorder.stream_ranges import StreamEvents, StreamRange, StreamRanges

if TYPE_CHECKING:
    from gpuviz.recorder.tracer import Tracer


class HostRanges:
    """Sends the ranges of this process to one session, between `begin` and `end`.

    Ranges on streams are measured unless the tracer sees what the streams do.
    """

    def __init__(self, session: _core.Session, tracer: "Tracer") -> None:
        self._session = session
        self._tracer = tracer
        self._on_streams = StreamRanges(session, _cupy_events)
        self._cells = CellRanges(session)
        self._nvtx = NvtxRanges(session)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know, in sentences."""
        return (*self._nvtx.notes, *self._on_streams.notes)

    def begin(self) -> None:
        """Record ranges from now on."""
        ranges.record_into(self._session, self._begin_on_stream)
        stream_names.names.begin(self._session)
        self._cells.begin()
        self._nvtx.begin()

    def poll(self) -> None:
        """Give the session the ranges on streams that the GPU has finished."""
        self._on_streams.poll()

    def end(self) -> None:
        """Record no more; ranges that are still open end with the session."""
        self._nvtx.end()
        self._cells.end()
        stream_names.names.end()
        ranges.record_into(None, None)
        self._on_streams.finish()

    def abandon_after_fork(self) -> None:
        """Record no more, in the child of a fork."""
        _core.abandon_nvtx_after_fork()
        self._cells.end()
        stream_names.names.abandon_after_fork()
        ranges.record_into(None, None)

    def _begin_on_stream(self, name: bytes, stream: Any) -> StreamRange | None:
        return None if self._tracer.is_active else self._on_streams.begin(name, stream)


def _cupy_events() -> StreamEvents:
    from gpuviz.frameworks.cupy_events import CupyEvents

    return CupyEvents()
