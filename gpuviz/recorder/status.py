"""Counts and numbers of a recorder at one time."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatistics:
    """Memory and activity of one device at one time, in bytes and ns.

    Attributes:
        device: Ordinal.
        allocated: Bytes allocated.
        allocated_peak: The most bytes allocated at one time since the recording began.
        reserved: Bytes of the known segments.
        free: Bytes of all free blocks in them.
        inactive_split: Bytes of free blocks in partly used segments; see `Fragmentation`.
        largest_free: Bytes of the largest free block.
        unused: Bytes of the device that no process uses, by the latest sample; None if unknown.
        activities: GPU activities, without ranges on streams.
        start_ns: When the first of them began.
        end_ns: When the last of them ended.
        busy_ns: Time in which at least one ran.
        kernel_ns: Time in which at least one kernel ran.
        copy_ns: Time in which at least one copy ran.
        kernel_copy_ns: Time in which both did.
        uncounted_ns: None of the times above is off by more: an activity became known so late that
            the busy times around its begin had been summed up. Nearly always 0.
        lately_busy: Share of the last second for which the activities that became known in it ran;
            None if none was ever recorded.
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
        """The most bytes that one allocation could get now; None if unknown."""
        if self.unused is None:
            return None
        return max(self.largest_free, self.unused + self.cached_whole)

    @property
    def window_ns(self) -> int:
        """Time from the begin of the first activity to the end of the last."""
        return self.end_ns - self.start_ns

    @property
    def busy(self) -> float | None:
        """Share of that time in which at least one ran; None if none was recorded."""
        if not self.activities:
            return None
        return self.busy_ns / self.window_ns if self.window_ns else 0.0

    @property
    def hidden_copies(self) -> float:
        """Share of the copies' time in which a kernel ran as well."""
        return self.kernel_copy_ns / self.copy_ns if self.copy_ns else 0.0


@dataclass(frozen=True, slots=True)
class RecorderStatistics:
    """All numbers of a recorder at one time: every view shows those of the same object.

    Attributes:
        time_ns: That time, on the time axis of the recording.
        events: Memory events until then, without those that describe what existed before.
        status: Sizes and costs, and counts that may be a moment ahead.
        devices: The devices that were seen, ascending.
    """

    time_ns: int
    events: int
    status: RecorderStatus
    devices: tuple[DeviceStatistics, ...]

    @property
    def dropped(self) -> int:
        """Events and rows of activities that were lost."""
        return self.status.dropped + self.status.dropped_activities

    @property
    def activities(self) -> int:
        """GPU activities until then, without ranges on streams."""
        return sum(device.activities for device in self.devices)

    @property
    def own_cost(self) -> float:
        """The recorder's own cost as a share of the time."""
        return self.status.own_cost_ns / max(self.time_ns, 1)
