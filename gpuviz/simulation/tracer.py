"""GPU activities of a simulated GPU."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpuviz.recorder.tracer import TracerOptions

if TYPE_CHECKING:
    from gpuviz import _core


# What recording a call costs, for budgets: about what it does on a GPU.
_NS_PER_CALL = 1_000


class SimulatedTracer:
    """Records the activities of a `SimulatedGPU`; see `recorder.tracer.Tracer`."""

    costs: Mapping[str, tuple[int, int]] = MappingProxyType({})
    notes: tuple[str, ...] = ()

    def __init__(self, native: "_core.SimulatedGpu", options: TracerOptions) -> None:
        self._native = native
        self._options = options
        self._session: _core.Session | None = None
        self.is_active = False

    def begin(self, session: "_core.Session") -> None:
        """Start recording."""
        self._session = session  # must live until detach()
        self._native.attach(
            session,
            launch_sites=self._options.launch_sites,
            api_calls=self._options.api_calls,
            graph_nodes=self._options.graph_nodes,
        )
        self.is_active = True

    def end(self) -> None:
        """Wait for all queued work, and stop recording."""
        try:
            self._native.detach()
        finally:
            self._session = None

    def pause(self) -> int:
        """Record no call from now on; return from when on, in ns since the session's start."""
        self._native.pause()
        return self._elapsed_ns

    def resume(self) -> int:
        """Record again; return from when on, in ns since the session's start."""
        self._native.resume()
        return self._elapsed_ns

    @property
    def cost_ns(self) -> int:
        """What recording would have cost on a GPU."""
        return self._native.recorded_calls * _NS_PER_CALL

    @property
    def _elapsed_ns(self) -> int:
        return 0 if self._session is None else self._native.now_ns - self._session.start_ns

    def flush(self) -> None:
        """Do nothing: draining the session returns all completed activities."""

    def abandon(self) -> None:
        """End the recording in the child of a fork."""
        self._native.abandon_recording()
