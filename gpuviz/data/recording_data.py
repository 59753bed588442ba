"""`RecordingData`: the tables and the manifest of a recording, and what follows from them alone."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

from gpuviz.data.call_stacks import CallStacks
from gpuviz.data.columns import distinct, plain
from gpuviz.data.manifest import Manifest
from gpuviz.data.memory_columns import memory_columns
from gpuviz.data.notes import notes
from gpuviz.data.once import Once
from gpuviz.data.possible_values import check_values
from gpuviz.data.stored_tables import Stored
from gpuviz.data.tables import Tables
from gpuviz.data.validation import check_references, conform

if TYPE_CHECKING:
    from gpuviz._core import MemoryColumns

Moment = int | Literal["peak", "end"] | None
"""A time in ns, ``peak`` (the maximum of allocated bytes), or ``end`` (like None)."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class RecordingData:
    """The tables and the manifest of a recording; `gpuviz.Recording` adds analyses of them.

    Times are nanoseconds since the recording's start, sizes are bytes.

    Attributes:
        tables: The tables of ``gpuviz.data.tables``; immutable.
        manifest: Facts about the recording as a whole.
        stored: Derived tables and conclusions as its file has them, not yet checked.
        computed: Values that `gpuviz.data.once.Once` keeps, by the function that computes them.
        path: The file or folder that it was loaded from; empty for other recordings.
    """

    tables: Tables
    manifest: Manifest
    stored: Stored = field(init=False)
    computed: dict[Once[Any, Any], Any] = field(init=False)
    path: str = field(init=False)

    def __init__(
        self,
        tables: Tables,
        manifest: Manifest,
        stored: Stored | None = None,
    ) -> None:
        tables = conform(tables)
        check_references(tables)
        check_values(tables)
        self._take(tables, manifest, {} if stored is None else stored, {})

    def _take(
        self,
        tables: Tables,
        manifest: Manifest,
        stored: Stored,
        computed: dict[Once[Any, Any], Any],
        path: str = "",
    ) -> None:
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "manifest", manifest)
        object.__setattr__(self, "stored", stored)
        object.__setattr__(self, "computed", computed)
        object.__setattr__(self, "path", path)

    @classmethod
    def of_checked(cls, tables: Tables, manifest: Manifest) -> Self:
        """Return a recording of tables that are known to be as `conform` makes them."""
        made = cls.__new__(cls)
        made._take(tables, manifest, {}, {})  # noqa: SLF001
        return made

    def take_path(self, path: str) -> None:
        """Note where this recording was loaded from."""
        object.__setattr__(self, "path", path)

    @classmethod
    def of(cls, other: "RecordingData") -> Self:
        """Return the same recording as an object of this class, sharing what was computed."""
        made = cls.__new__(cls)
        made._take(other.tables, other.manifest, other.stored, other.computed, other.path)  # noqa: SLF001
        return made

    def with_manifest(self, manifest: Manifest) -> Self:
        """Return this recording with another manifest, keeping what was computed."""
        other = type(self).__new__(type(self))
        other._take(self.tables, manifest, self.stored, dict(self.computed), self.path)  # noqa: SLF001
        return other

    def with_note(self, note: str) -> Self:
        """Return this recording with an additional note, keeping what was computed."""
        return self.with_manifest(replace(self.manifest, notes=(*self.manifest.notes, note)))

    @cached_property
    def call_stacks(self) -> CallStacks:
        """The call stacks by id."""
        return CallStacks(self.tables)

    @cached_property
    def memory_columns(self) -> "MemoryColumns":
        """The memory events for the native core."""
        return memory_columns(self.tables["memory_events"])

    @cached_property
    def duration_ns(self) -> int:
        """Duration of the recording in ns, including activities that end later; a window's end."""
        columns = (
            ("memory_events", "time"),
            ("host_memory_events", "time"),
            ("activities", "end"),
            ("api_calls", "end"),
        )
        ends = (plain(self.tables[table][column]).max(initial=0) for table, column in columns)
        duration = max(self.manifest.duration_ns, *map(int, ends))
        return duration if self.bounds is None else min(duration, self.bounds[1])

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Start and end of the window that this is of a longer recording; None if it is whole."""
        start, end = self.manifest.window_start_ns, self.manifest.window_end_ns
        return (start, end) if end else None

    @property
    def time_range(self) -> tuple[int, int]:
        """The times that the recording covers, in ns: those of its window, else all."""
        return self.bounds or (0, self.duration_ns)

    @property
    def covered_ns(self) -> int:
        """Length of `time_range`, in ns."""
        start, end = self.time_range
        return end - start

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The ordinals of the devices in the recording, in ascending order."""
        columns = (("devices", "id"), ("memory_events", "device"), ("activities", "device"))
        seen = (distinct(plain(self.tables[table][column])).tolist() for table, column in columns)
        return tuple(sorted(set[int]().union(*seen)))

    @property
    def dropped(self) -> int:
        """Number of missing events and activities: dropped, or discarded as the oldest."""
        manifest = self.manifest
        activities = manifest.dropped_activities + manifest.dropped_oldest_activities
        return manifest.dropped + manifest.dropped_oldest + activities

    @property
    def is_complete(self) -> bool:
        """Whether the recording was stopped properly and no event is missing."""
        return self.manifest.complete and self.dropped == 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what the recording lacks, in sentences."""
        return notes(self.manifest)

    def device_or_first(self, device: int | None) -> int:
        """Return ``device``, or the first device if None.

        Raises:
            ValueError: The recording has no such device.
        """
        if device is None:
            return self.devices[0] if self.devices else 0
        if device not in self.devices:
            there_are = ", ".join(map(str, self.devices)) or "none"
            raise ValueError(f"the recording has no device {device}; its devices are {there_are}")
        return device
