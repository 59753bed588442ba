"""The schedule without some calls, and without what the host does for them."""

from typing import TYPE_CHECKING, Any

from gpuviz.advice.host.host_gaps import host_gaps
from gpuviz.advice.replay.schedule import ScheduleChange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.advice.arrays.device_blocks import DeviceBlocks


def without_calls(
    device: "DeviceBlocks", duration: "NDArray[Any]", calls: "NDArray[Any]"
) -> ScheduleChange:
    """Return the change by which some calls neither take time nor wait.

    Nor does the host take the time before them, if it is no longer than a launch needs.

    Args:
        device: The device's blocks.
        duration: The durations of all activities then, in ns.
        calls: A mask of ``api_calls``.
    """
    gaps = calls & host_gaps(device.recording, device.device).is_short
    return ScheduleChange(duration=duration, without_wait=calls, without_gap=gaps, instant=calls)
