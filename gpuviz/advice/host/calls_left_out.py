"""The schedule without some calls, and without what the host does for them."""

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.host.host_gaps import host_gaps
from gpuviz.advice.replay.schedule import ScheduleChange


def without_calls(device: DeviceBlocks, duration: np.ndarray, calls: np.ndarray) -> ScheduleChange:
    """Return the change by which some calls neither take time nor wait.

    Nor does the host take the time before them, if it is no longer than a launch needs.

    Args:
        device: The device's blocks.
        duration: The durations of all activities then, in ns.
        calls: A mask of ``api_calls``.
    """
    gaps = calls & host_gaps(device.recording, device.device).is_short
    return ScheduleChange(duration=duration, without_wait=calls, without_gap=gaps, instant=calls)
