"""Interface of tracers of GPU activities."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpuviz import _core


@dataclass(frozen=True, slots=True)
class TracerOptions:
    """Options for recording streams.

    Attributes:
        launch_sites: Whether each launch, copy and synchronization gets a row in ``api_calls``.
        stacks: Whether these rows have the Python call stack.
        api_calls: Whether every CUDA driver call gets a row.
        graph_nodes: Whether the kernels of a CUDA graph are recorded one by one, instead of each
            launch of the graph as a whole.
        needs_arguments: Whether somebody follows which memory streams use: to record nothing if the
            arguments of launches are not visible.
    """

    launch_sites: bool = True
    stacks: bool = True
    api_calls: bool = False
    graph_nodes: bool = True
    needs_arguments: bool = False


class Tracer(Protocol):
    """Records activities into one session; used once; thread-safe."""

    def begin(self, session: "_core.Session") -> None:
        """Start recording, if possible; a missing tool raises no exception."""

    def end(self) -> None:
        """Stop recording, after everything that the GPU has completed is recorded."""

    def flush(self) -> None:
        """Send completed activities to the session now."""

    @property
    def is_active(self) -> bool:
        """Whether activities are, or were, recorded."""

    @property
    def costs(self) -> Mapping[str, tuple[int, int]]:
        """What recording costs a call, as `gpuviz.data.manifest.Manifest.costs`, after the end."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user, in sentences."""

    def abandon(self) -> None:
        """Deactivate in the child of a fork, without waiting."""


class PausingTracer(Tracer, Protocol):
    """A tracer that can stop for a while; times are ns since the start of the session."""

    def pause(self) -> int:
        """Record no call from now on; return from when on."""

    def resume(self) -> int | None:
        """Record again; return from when on, or None if that is not possible now."""

    @property
    def cost_ns(self) -> int:
        """What recording has cost the program so far, in ns, at most."""


class NoTracer:
    """Records no activities, for recordings of memory only."""

    is_active = False
    costs: Mapping[str, tuple[int, int]] = MappingProxyType({})
    notes: tuple[str, ...] = ()

    def begin(self, session: "_core.Session") -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def abandon(self) -> None:
        """Do nothing."""
