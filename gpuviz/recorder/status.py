"""Counts and numbers of a recorder at one time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecorderStatus:
    """Counts, sizes and costs of a recorder.

    Attributes:
        recording: Whether the recorder is active.
        streams: Whether GPU activities are, or were, recorded; `notes` give the reason if not.
        events: Memory events recorded.
        activities: GPU activities recorded: kernels, copies, memsets, graph launches.
        dropped: Events dropped because a queue was full, or that could not be stored.
        dropped_activities: Rows of activities and of CUDA calls that were dropped.
        dropped_oldest: Events discarded to stay within ``max_events``.
        bytes_in_memory: Bytes held by queues, columns and call stacks.
        bytes_on_disk: Bytes written so far; 0 without a path.
        own_cost_ns: CPU time of the recorder's threads, plus an estimate of the time spent in
            the program: the number of events times the cost of one, measured at the start.
        notes: Messages for the user, in sentences.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatistics:
    """Memory and activity of one device at one time, in bytes and ns.

    Attributes:
        device: Ordinal.
        allocated: Bytes allocated.
        allocated_peak: The maximum of allocated bytes since the start of the recording.
        reserved: Bytes of the known segments.
        free: Bytes of all free blocks in them.
        inactive_split: Bytes of free blocks in partly used segments; see `Fragmentation`.
        largest_free: Bytes of the largest free block.
        unused: Free bytes of the device, from the latest sample; None if unknown.
        activities: GPU activities, without ranges on streams.
        start_ns: Start of the first activity.
        end_ns: End of the last activity.
        busy_ns: Time in which at least one ran.
        kernel_ns: Time in which at least one kernel ran.
        copy_ns: Time in which at least one copy from or to the host ran.
        kernel_copy_ns: Time in which both did.
        uncounted_ns: Upper bound of the error of the times above. Activities that arrive after the
            busy times around them have been summed up are not counted; nearly always 0.
        unrecorded_ns: Time between the first and the last activity in which streams were not
            recorded.
        lately_busy: Share of the last second in which activities that arrived in it ran; None if
            none was ever recorded, or if streams were not recorded in all of it.
    """

    device: int
    allocated: int
    allocated_peak: int
    reserved: int
    free: int
    inactive_split: int
    largest_free: int
    unused: int | None
    activities: int
    start_ns: int
    end_ns: int
    busy_ns: int
    kernel_ns: int
    copy_ns: int
    kernel_copy_ns: int
    uncounted_ns: int
    unrecorded_ns: int
    lately_busy: float | None

    @property
    def cached_whole(self) -> int:
        """Free bytes that ``empty_cache`` can return to the device."""
        return self.free - self.inactive_split

    @property
    def fragmentation(self) -> float:
        """Share of the free bytes outside the largest free block."""
        return 1 - self.largest_free / self.free if self.free else 0.0

    @property
    def allocatable(self) -> int | None:
        """The largest allocation that would succeed now, in bytes; None if unknown."""
        if self.unused is None:
            return None
        return max(self.largest_free, self.unused + self.cached_whole)

    @property
    def window_ns(self) -> int:
        """Recorded time from the start of the first activity to the end of the last."""
        return self.end_ns - self.start_ns - self.unrecorded_ns

    @property
    def busy(self) -> float | None:
        """Share of that time in which an activity ran; None if none was recorded."""
        if not self.activities:
            return None
        return min(self.busy_ns / self.window_ns, 1.0) if self.window_ns > 0 else 0.0

    @property
    def hidden_copies(self) -> float:
        """Share of the time of host copies in which a kernel ran as well."""
        return self.kernel_copy_ns / self.copy_ns if self.copy_ns else 0.0


@dataclass(frozen=True, slots=True)
class RecorderStatistics:
    """All numbers of a recorder at one time; every view shows the same object.

    Attributes:
        time_ns: That time, on the time axis of the recording.
        events: Memory events up to that time, without initial events.
        status: Sizes, costs and counts; counts may be slightly ahead.
        devices: The devices in use, in ascending order.
    """

    time_ns: int
    events: int
    status: RecorderStatus
    devices: tuple[DeviceStatistics, ...]

    @property
    def dropped(self) -> int:
        """Dropped events and rows of activities."""
        return self.status.dropped + self.status.dropped_activities

    @property
    def activities(self) -> int:
        """GPU activities up to that time, without ranges on streams."""
        return sum(device.activities for device in self.devices)

    @property
    def own_cost(self) -> float:
        """The recorder's own cost as a share of the time."""
        return self.status.own_cost_ns / max(self.time_ns, 1)
