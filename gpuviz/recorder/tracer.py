"""Interface of tracers of GPU activities."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpuviz import _core


@dataclass(frozen=True, slots=True)
class TracerOptions:
    """What is recorded of streams.

    Attributes:
        launch_sites: Whether each launch, copy and synchronization gets a row in ``api_calls``.
        stacks: Whether those rows have the Python call stack.
        api_calls: Whether every CUDA driver call gets a row.
        graph_nodes: Whether a CUDA graph shows its kernels one by one, or each launch as a whole.
    """

    launch_sites: bool = True
    stacks: bool = True
    api_calls: bool = False
    graph_nodes: bool = True


class Tracer(Protocol):
    """Records activities into one session; used once, any thread may ask."""

    def begin(self, session: "_core.Session") -> None:
        """Record from now on, if that is possible; never raises for lack of a tool."""

    def end(self) -> None:
        """Return when all that the GPU has completed is recorded."""

    def flush(self) -> None:
        """Let what is complete reach the session now."""

    @property
    def is_active(self) -> bool:
        """Whether activities are, or were, recorded."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know, in sentences."""

    def abandon(self) -> None:
        """In the child of a fork: record nothing, wait for nothing."""


class NoTracer:
    """Records nothing, because nothing but memory is asked for."""

    is_active = False
    notes: tuple[str, ...] = ()

    def begin(self, session: "_core.Session") -> None:
        """Record nothing."""

    def end(self) -> None:
        """There is nothing to wait for."""

    def flush(self) -> None:
        """There is nothing to flush."""

    def abandon(self) -> None:
        """There is nothing to forget."""
