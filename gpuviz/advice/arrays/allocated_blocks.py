"""The blocks of a device on a scale of places, and the peak that they reach."""

from functools import cached_property

import numpy as np

from gpuviz._core import EventPlaces
from gpuviz.advice.arrays.needed_touches import needed_touches
from gpuviz.advice.replay.peak_replay import PeakReplay
from gpuviz.analysis.peak import Peak, peak
from gpuviz.analysis.statements import Statements
from gpuviz.analysis.touches import Touches
from gpuviz.data.columns import distinct, plain
from gpuviz.data.recording_data import RecordingData


class AllocatedBlocks:
    """The blocks of a device, and the places where they are allocated and freed.

    A scale of *places* orders the device's memory events and the begins and ends of the lines that
    first and last used each block.

    Args:
        recording: The recording.
        device: Ordinal.
        used: Which work used the recording's blocks.

    Attributes:
        needed: The uses without those that only fill a block: see `needed_touches`.
        events: The device's rows of ``memory_events``.
        statements: The runs of lines that the recording's events and calls belong to.
        places: The scale.
        number: For each block of the device, its index in ``used.blocks``.
        begin: The place of each allocation.
        end: The place of each free.
        size: Bytes, rounded by the allocator.
        requested: Bytes that the program asked for.
        stack: Ids of ``stacks``.
        is_initial: Whether each block was allocated before the recording, which then lacks its
            earlier uses.
        peak: The recorded peak of the device.
        peak_place: The place of the event that reached it.
        replay: The peak after changes.
    """

    def __init__(self, recording: RecordingData, device: int, used: Touches) -> None:
        self.recording, self.device, self.used = recording, device, used
        self.needed = needed_touches(recording, used)
        table, blocks = recording.tables["memory_events"], used.blocks
        self.events = np.flatnonzero(plain(table["device"]) == device)
        self.number = np.flatnonzero(blocks.device == device)
        self.size = blocks.size[self.number]
        self.requested = blocks.requested[self.number]
        self.stack = blocks.stack[self.number]
        self.is_initial = blocks.alloc[self.number] < recording.manifest.initial_events
        self.statements = Statements(recording)
        firsts = np.append(used.first[self.number], self.needed.first[self.number])
        self.places = EventPlaces(
            plain(table["time"])[self.events],
            distinct(self.statements.of_calls(firsts)[0]),
            distinct(self.statements.of_calls(used.last[self.number])[1]),
        )
        events = np.asarray(self.places.of_events())
        self.begin = events[np.searchsorted(self.events, blocks.alloc[self.number])]
        self.end = events[np.searchsorted(self.events, blocks.free[self.number])]
        self.peak: Peak = peak(recording, device)
        self.replay = PeakReplay(self.places.count, self.begin, self.end, self.size)
        self.peak_place = self.replay.peak_place

    def before_lines(self, calls: np.ndarray) -> np.ndarray:
        """Return the places before the lines of some calls, rows of ``api_calls``."""
        places: np.ndarray = np.asarray(self.places.before(self.statements.of_calls(calls)[0]))
        return places

    def after_lines(self, calls: np.ndarray) -> np.ndarray:
        """Return the places after the lines of some calls, rows of ``api_calls``."""
        return self.after_times(self.statements.of_calls(calls)[1])

    def after_times(self, times: np.ndarray) -> np.ndarray:
        """Return the places after some times, in ns since the recording's start."""
        places: np.ndarray = np.asarray(self.places.after(times))
        return places

    def after_calls(self, calls: np.ndarray) -> np.ndarray:
        """Return the places after some calls, rows of ``api_calls``."""
        return self.after_times(plain(self.recording.tables["api_calls"]["end"])[calls])

    def line_runs(self, calls: np.ndarray) -> np.ndarray:
        """Return when the runs of lines that some calls belong to began; see `Statements`."""
        return self.statements.of_calls(calls)[0]

    @cached_property
    def call_times(self) -> np.ndarray:
        """When each row of ``api_calls`` began, in ns."""
        return plain(self.recording.tables["api_calls"]["time"])

    @cached_property
    def place(self) -> np.ndarray:
        """For each block of ``used.blocks``, its index in the device's blocks; -1 of others."""
        place = np.full(len(self.used.blocks), -1)
        place[self.number] = np.arange(len(self.number))
        return place

    @property
    def is_consistent(self) -> bool:
        """Whether the lifetimes reproduce the recorded peak, which lost events may prevent."""
        return self.replay.peak_bytes == self.peak.bytes

    @cached_property
    def of_peak(self) -> np.ndarray:
        """The block whose allocation reached the peak, if it is known."""
        return np.flatnonzero(self.begin == self.peak_place)

    @cached_property
    def at_peak(self) -> np.ndarray:
        """Whether each block was allocated at the peak."""
        there: np.ndarray = (self.begin <= self.peak_place) & (self.end > self.peak_place)
        return there

    @cached_property
    def made_until(self) -> np.ndarray:
        """When the run of the line that allocated each block ends, in ns; see `Statements`."""
        return self.statements.ends_of_events(self.used.blocks.alloc[self.number])

    @cached_property
    def is_returned(self) -> np.ndarray:
        """Whether each block is still allocated when the run of its line ends."""
        ends = self.used.blocks.end[self.number]
        returned: np.ndarray = (ends < 0) | (ends > self.made_until)
        return returned
