"""Analyses of the recording that is in progress or ran last in this process."""

from typing import TYPE_CHECKING

from gpuviz.errors import RecorderError
from gpuviz.recorder.recorder import Recorder

if TYPE_CHECKING:
    import pyarrow as pa


def leaks(device: int | None = None) -> "pa.Table":
    """Return the lines whose live memory grows, in the recording in progress or else the last one.

    See `Recording.leaks`.

    Args:
        device: Ordinal; all devices if None.

    Raises:
        RecorderError: Nothing has been recorded, or the last recorder is no longer referenced.
        ValueError: The recording has no such device.
    """
    recorder = Recorder.latest()
    if recorder is None:
        raise RecorderError(
            "There is no recording in this process; keep the one that gpuviz.record returns, and "
            "call its recording.leaks()"
        )
    return recorder.recording.leaks(device)
