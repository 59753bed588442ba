"""Values of a recording that are computed on first use and kept with it."""

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

T = TypeVar("T")


class Once(Generic[T]):
    """A function of a recording whose value is computed once for each recording.

    Args:
        compute: The function; its first argument is the recording.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        update_wrapper(self, compute)

    def __call__(self, recording: "RecordingData") -> T:
        """Return the value for a recording."""
        if self not in recording.computed:
            recording.computed[self] = self._compute(recording)
        value: T = recording.computed[self]
        return value

    def is_known(self, recording: "RecordingData") -> bool:
        """Return whether the value has been computed, or kept."""
        return self in recording.computed

    def keep(self, recording: "RecordingData", value: T) -> None:
        """Take a value that is known already."""
        recording.computed[self] = value
