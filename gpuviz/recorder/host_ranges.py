"""All sources of what the host did: ranges, collectives, which refer to them, and collections."""

import gc
from typing import Any

from gpuviz import _core
from gpuviz.frameworks.ipython import CellRanges
from gpuviz.recorder import ranges, stream_names
from gpuviz.recorder.injection import nccl_collectives, nvtx_ranges
from gpuviz.recorder.stream_ranges import StreamEvents, StreamRange, StreamRanges
from gpuviz.recorder.tracer import Tracer


class HostRanges:
    """Sends the ranges and collectives of this process to one session, between `begin` and `end`.

    Ranges on streams are measured only if the tracer does not record the streams.
    """

    def __init__(self, session: _core.Session, tracer: Tracer) -> None:
        self._session = session
        self._tracer = tracer
        self._on_streams = StreamRanges(session, _cupy_events)
        self._cells = CellRanges(session)
        self._nvtx = nvtx_ranges(session)
        self._collectives = nccl_collectives(session)

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user, in sentences."""
        return (*self._nvtx.notes, *self._collectives.notes, *self._on_streams.notes)

    def begin(self) -> None:
        """Start recording ranges and collectives."""
        ranges.record_into(self._session, self._begin_on_stream)
        stream_names.names.begin(self._session)
        self._nvtx.begin()
        self._collectives.begin()

    def begin_collections(self) -> None:
        """Start recording garbage collections, once gpuviz itself makes no more objects here."""
        if self._session.samples_host:
            gc.callbacks.append(self._session.collection)

    def begin_cells(self) -> None:
        """Start recording cells with the one that runs; once the session has its clock."""
        self._cells.begin()

    def poll(self) -> None:
        """Send the ranges on streams that the GPU has finished to the session."""
        self._on_streams.poll()

    def end(self) -> None:
        """Stop recording; open ranges end here."""
        if self._session.collection in gc.callbacks:
            gc.callbacks.remove(self._session.collection)
        self._collectives.end()
        self._nvtx.end()
        self._cells.end()
        stream_names.names.end()
        ranges.record_into(None, None)
        self._on_streams.finish()
        _core.end_ranges(self._session)

    def abandon_after_fork(self) -> None:
        """Deactivate in the child of a fork."""
        if self._session.collection in gc.callbacks:
            gc.callbacks.remove(self._session.collection)
        _core.abandon_nvtx_after_fork()
        _core.abandon_nccl_after_fork()
        self._cells.end()
        stream_names.names.abandon_after_fork()
        ranges.record_into(None, None)
        self._on_streams.abandon_after_fork()

    def _begin_on_stream(self, name: bytes, stream: Any) -> StreamRange | None:
        return None if self._tracer.is_active else self._on_streams.begin(name, stream)


def _cupy_events() -> StreamEvents:
    from gpuviz.frameworks.cupy_events import CupyEvents

    return CupyEvents()
