"""Options of a recorder."""

from dataclasses import dataclass
from pathlib import Path

from gpuviz.recorder.prevention import Prevention

DEFAULT_MAX_EVENTS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """What `gpuviz.record` was asked for, without the choice of the allocator and the tracer.

    Attributes:
        path: The file that is recorded to; None in memory.
        overwrite: Whether a file at that path is replaced.
        stacks: Whether to record call stacks.
        max_events: How many events and activities are kept in memory.
        launch_blocks: Whether to record to which blocks of memory launches received pointers.
        host_samples: Whether to sample what threads that launch do between their CUDA calls.
        prevention: What the allocator does about the early reuse of memory.
        hazards: Whether to look for hazards when the recording ends.
        forbid_default_stream: Whether to list what ran on the legacy default stream.

    Raises:
        ValueError: Not even one event may be kept.
    """

    path: Path | None
    overwrite: bool
    stacks: bool
    max_events: int
    launch_blocks: bool
    host_samples: bool
    prevention: Prevention
    hazards: bool
    forbid_default_stream: bool

    def __post_init__(self) -> None:
        check_max_events(self.max_events)

    @property
    def needs_verdict(self) -> bool:
        """Whether the recording is searched for something when it ends."""
        return self.hazards or self.forbid_default_stream


def check_max_events(max_events: int) -> None:
    """Raise a ValueError unless at least one event may be kept."""
    if max_events < 1:
        raise ValueError(f"max_events must be at least 1, got {max_events}")
