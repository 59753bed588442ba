"""Analyses of the recording that is in progress or ran last in this process."""

import pyarrow as pa

from gpuviz.analysis.leaks import leaks as growing
from gpuviz.data.marks import formatted
from gpuviz.errors import RecorderError
from gpuviz.ownership.holders import holders
from gpuviz.recorder.recorder import Recorder


def leaks(device: int | None = None) -> pa.Table:
    """Return the lines whose live memory grows, in the recording in progress or else the last one.

    See `Recording.leaks`. While it is in progress, `gpuviz.holders` says what keeps the memory of
    each line alive (``kept_by``), such as the list that keeps losses with their graphs.

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
    return leaks_of(recorder, device)


def leaks_of(recorder: Recorder, device: int | None = None) -> pa.Table:
    """Return the lines whose live memory grows in the recording of a recorder; see `leaks`."""
    # Later, other arrays may have the addresses.
    names = _holders() if recorder.is_recording else None
    return formatted(growing(recorder.recording, device, names))


def _holders() -> dict[tuple[int, int], str]:
    """Return what keeps each block alive that is in use, by device and address."""
    names: dict[tuple[int, int], str] = {}
    for block in holders(0).blocks:
        place = block.device, block.address
        # Several simulated GPUs have the same addresses.
        names[place] = "" if place in names else block.kept_by
    return names
