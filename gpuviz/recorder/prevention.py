"""Options of the caching allocator that prevent the early reuse of memory, or make it visible."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from gpuviz import _core

RecordStream = Literal["off", "report", "auto"]


@dataclass(frozen=True, slots=True)
class Prevention:
    """The options of `gpuviz.record` of these names."""

    record_stream: RecordStream = "off"
    poison: bool = False
    quarantine: int = 0

    @property
    def needs_launches(self) -> bool:
        """Whether launches and their arguments must be visible."""
        return self.record_stream != "off" or self.poison

    def check(self, given: Mapping[str, bool]) -> None:
        """Check the options.

        Args:
            given: Whether each option that may be needed is given, by its text.

        Raises:
            ValueError: An option has an unknown value, or lacks what it needs.
        """
        if self.record_stream not in {"off", "report", "auto"}:
            raise ValueError(
                f"record_stream must be 'off', 'report' or 'auto', got {self.record_stream!r}"
            )
        if not isinstance(self.quarantine, int) or self.quarantine < 0:
            raise ValueError(f"quarantine must be a number of bytes, got {self.quarantine!r}")
        missing = [text for text, is_given in given.items() if not is_given]
        if self.needs_launches and missing:
            raise ValueError(f"{self.described} needs {' and '.join(missing)}")
        if self.quarantine and "allocator='caching'" in missing:
            raise ValueError("quarantine needs allocator='caching'")

    @property
    def described(self) -> str:
        """The option that needs launches."""
        if self.record_stream != "off":
            return f"record_stream={self.record_stream!r}"
        return "poison=True"


NO_PREVENTION = Prevention()


class PreventedReuse:
    """What the allocators of one recording do about reuse, by device."""

    def __init__(self, options: Prevention) -> None:
        self._options = options
        self._allocators: dict[int, _core.CachingAllocator] = {}
        self._found: dict[str, dict[str, Any]] = {"delayed_frees": {}, "writes_after_free": {}}
        self._unchecked = 0

    def begin(
        self, device: int, allocator: "_core.CachingAllocator", track: Callable[[str, bool], None]
    ) -> None:
        """Set the options of an allocator; ``track(record_stream, poison)`` follows its streams."""
        if self._options.needs_launches:
            track(self._options.record_stream, self._options.poison)
        if self._options.quarantine:
            allocator.set_quarantine(self._options.quarantine)
        self._allocators[device] = allocator

    def end(self) -> tuple[str, ...]:
        """Reset the allocators, and return messages for the user, in sentences."""
        for device, allocator in self._allocators.items():
            if self._options.quarantine:
                allocator.set_quarantine(0)
            if self._options.needs_launches:
                allocator.stop_tracking_uses()
            self._read(device, allocator)
        self._allocators = {}
        writes = sum(map(len, self._found["writes_after_free"].values()))
        notes = []
        if writes:
            notes.append(
                f"{format_counted(writes, 'freed block was', 'freed blocks were')} written to; see "
                "recording.writes_after_free()."
            )
        if self._unchecked:
            notes.append(
                f"poison could not fill or check {self._unchecked} freed blocks: their streams "
                "were capturing, or had not been used in the recording."
            )
        return tuple(notes)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the manifest up to now."""
        for device, allocator in self._allocators.items():
            self._read(device, allocator)
        return {name: dict(rows) for name, rows in self._found.items()}

    def _read(self, device: int, allocator: "_core.CachingAllocator") -> None:
        if self._options.record_stream != "off":
            self._found["delayed_frees"][str(device)] = allocator.delayed_frees()
        if self._options.poison:
            self._found["writes_after_free"][str(device)] = allocator.writes_after_free()
            self._unchecked = allocator.unchecked_frees
