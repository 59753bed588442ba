"""When most memory was allocated."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.recording import Recording


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment at which most bytes were allocated.

    Attributes:
        time_ns: The first such moment, in ns since the recording's start.
        bytes: Bytes allocated at that moment.
        reserved_bytes: Bytes reserved at that moment, in segments that are known.
        device: Ordinal; None for all devices together.
    """

    time_ns: int
    bytes: int
    reserved_bytes: int
    device: int | None


def peak(recording: "Recording", device: int | None = None) -> Peak:
    """Return when most bytes were allocated on a device, or on all devices together.

    Raises:
        ValueError: The recording has no such device.
    """
    import numpy as np

    table = recording.memory_levels
    devices = table["device"].to_numpy()
    if device is not None:
        table = table.filter(devices == recording.device_or_first(device))
        devices = table["device"].to_numpy()
    if not table.num_rows:
        return Peak(0, 0, 0, device)
    allocated = _sum_over_devices(table["allocated"].to_numpy(), devices)
    reserved = _sum_over_devices(table["reserved"].to_numpy(), devices)
    row = int(np.argmax(allocated))
    return Peak(table["time"][row].as_py(), int(allocated[row]), int(reserved[row]), device)


def _sum_over_devices(values: "NDArray[Any]", devices: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    changes = np.zeros_like(values)
    for each in np.unique(devices):
        rows = devices == each
        changes[rows] = np.diff(values[rows], prepend=0)
    return np.cumsum(changes)
