"""The devices that a verb is about."""

from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.errors import GpuvizError

if TYPE_CHECKING:
    from gpuviz.recording import Recording


def chosen_devices(recording: "Recording", file: Path, device: int | None) -> tuple[int, ...]:
    """Return one device of a recording, or all of them if ``device`` is None.

    Raises:
        GpuvizError: The recording has no such device, or no memory events.
    """
    if not recording.devices:
        raise GpuvizError(f"{file} has no memory events.")
    if device is not None and device not in recording.devices:
        known = ", ".join(map(str, recording.devices))
        raise GpuvizError(f"{file} has no device {device}; its devices are {known}.")
    return recording.devices if device is None else (device,)
