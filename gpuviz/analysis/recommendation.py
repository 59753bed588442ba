"""Sentences on what the rows of `gpuviz.Recording.what_if` mean for a program."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpuviz.analysis.allocator_settings import known_settings, line_to_use
from gpuviz.analysis.torch_alone import by_torch_alone
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_bytes

_DEFAULT = "PyTorch's defaults"
# A setting is recommended only if it saves this share of the reserved bytes.
_LEAST_SHARE = 0.01


class Recommendation(NamedTuple):
    """The settings that need the least memory.

    Attributes:
        settings: The settings.
        effect: What they change, without the end of the sentence.
        line: What to write at the start of the program to use them.
    """

    settings: str
    effect: str
    line: str


def name_of(settings: str) -> str:
    """Return settings as a text to show."""
    return settings or _DEFAULT


def recommendation(
    recording: RecordingData, rows: Sequence[dict[str, Any]], *, moved: bool = False
) -> Recommendation | None:
    """Return which settings need the least memory; None if no others are worth it.

    Args:
        recording: The recording.
        rows: The rows of `gpuviz.Recording.what_if`.
        moved: Whether they assume another capacity of the device. Then only the replay of the
            program's own settings can be compared.
    """
    recording = by_torch_alone(recording)
    own = ",".join(known_settings(recording.manifest))
    others = [row for row in rows[1:] if row["settings"] != own and row["num_ooms"] == 0]
    before = next((row for row in rows[1:] if row["settings"] == own), None) if moved else rows[0]
    if before is None or before["peak_reserved"] is None or not others:
        return None
    best = min(others, key=lambda row: int(row["peak_reserved"]))
    least, name = best["peak_reserved"], name_of(best["settings"])
    bound = "" if best["peak_reserved_lower"] == least else "at most "
    if before["num_ooms"]:
        effect = f"With {name}, which reserves {bound}{format_bytes(least)}, no request fails"
    elif least <= before["peak_reserved"] * (1 - _LEAST_SHARE):
        instead = format_bytes(before["peak_reserved"])
        effect = f"{name} reserves {bound}{format_bytes(least)} instead of {instead}"
    else:
        return None
    return Recommendation(
        best["settings"], effect, line_to_use(recording.manifest, best["settings"])
    )
