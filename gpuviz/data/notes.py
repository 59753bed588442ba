"""Notes on what a recording lacks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.data.manifest import Manifest


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
