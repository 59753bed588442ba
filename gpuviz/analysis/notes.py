"""Notes on what a recording lacks."""

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.recording.manifest import Manifest
    from gpuviz.recording.recording import Recording


def notes(manifest: "Manifest") -> tuple[str, ...]:
    """Return sentences on the origin of a recording, and on what it lacks."""
    sentences = [manifest.label] if manifest.label else []
    if manifest.simulated and not manifest.label:
        sentences.append("Recorded on a simulated device.")
    if manifest.dropped:
        sentences.append(f"{manifest.dropped} events were dropped because buffers were full.")
    if manifest.dropped_oldest:
        sentences.append(f"The {manifest.dropped_oldest} oldest events were discarded.")
    if manifest.dropped_activities:
        sentences.append(
            f"{manifest.dropped_activities} rows of activities and calls were dropped."
        )
    if manifest.dropped_oldest_activities:
        oldest = manifest.dropped_oldest_activities
        sentences.append(f"The {oldest} oldest rows of activities and calls were discarded.")
    if not manifest.complete and not manifest.notes:
        sentences.append("The recording was not stopped properly; its end is missing.")
    return (*sentences, *manifest.notes)


def noted(recording: "Recording", note: str) -> "Recording":
    """Return a recording with an additional note, keeping its computed tables."""
    manifest = replace(recording.manifest, notes=(*recording.manifest.notes, note))
    return replaced(recording, manifest)


def replaced(recording: "Recording", manifest: "Manifest") -> "Recording":
    """Return a recording with another manifest, keeping its computed tables."""
    other = object.__new__(type(recording))
    vars(other).update(vars(recording), manifest=manifest)
    return other
