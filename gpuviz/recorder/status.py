"""Status of a recorder."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecorderStatus:
    """What a recorder has done so far.

    Attributes:
        recording: Whether it records now.
        streams: Whether GPU activities are, or were, recorded too; `notes` tell why not.
        events: Memory events recorded.
        activities: GPU activities recorded: kernels, copies, memsets, graph launches.
        dropped: Events lost to a full queue, or that could not be stored.
        dropped_activities: Rows of activities and of CUDA calls that were lost.
        dropped_oldest: Events given up to stay within ``max_events``.
        bytes_in_memory: Bytes held by queues, columns and call stacks.
        bytes_on_disk: Bytes written so far; 0 without a path.
        own_cost_ns: CPU time of the recorder's two threads, and an estimate of what recording took
            within the program: the events times the cost of one, measured when recording started.
        notes: What the user should know, in sentences.
    """

    recording: bool
    streams: bool
    events: int
    activities: int
    dropped: int
    dropped_activities: int
    dropped_oldest: int
    bytes_in_memory: int
    bytes_on_disk: int
    own_cost_ns: int
    notes: tuple[str, ...]
