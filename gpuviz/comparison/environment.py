"""Settings and versions of two recordings that differ, and what cannot be compared."""

from collections.abc import Iterator

from gpuviz.analysis.unseen import is_whole
from gpuviz.data.escaping import as_unicode
from gpuviz.data.recording_data import RecordingData

_FACTS = {
    "Allocator": "allocator",
    "Allocator settings": "settings",
    "record_stream": "record_stream",
    "CUDA runtime": "runtime",
    "CUDA driver": "driver",
    "Python": "python",
    "Platform": "platform",
    "gpuviz": "gpuviz_version",
}


def changed_settings(before: RecordingData, after: RecordingData) -> Iterator[dict[str, str]]:
    """Yield the settings and versions that differ; unknown ones are empty."""
    for name, field in _FACTS.items():
        one, other = (as_unicode(getattr(each.manifest, field)) for each in (before, after))
        if one != other:
            yield {"name": name, "before": one, "after": other}
    versions = [each.manifest.library_versions for each in (before, after)]
    for name in dict.fromkeys(name for known in versions for name in known):
        one, other = (known.get(name, "") for known in versions)
        if one != other:
            yield {"name": name, "before": one, "after": other}
    one, other = _program(before), _program(after)
    if one != other:
        yield {"name": "Program", "before": one, "after": other}
    ours, theirs = _devices(before), _devices(after)
    for device in sorted(ours.keys() & theirs.keys()):
        if ours[device] != theirs[device]:
            name = f"Device {device}"
            yield {"name": name, "before": ours[device], "after": theirs[device]}


def limits_of_comparison(before: RecordingData, after: RecordingData) -> list[str]:
    """Return what of the recordings cannot be compared, or only with care, as sentences."""
    sides = {"before": before, "after": after}
    differences = list(_differences(before, after))
    devices = [
        f"Device {', '.join(map(str, only))} is only in the recording {side}; it is not compared."
        for side, only in (
            ("before", sorted(set(before.devices) - set(after.devices))),
            ("after", sorted(set(after.devices) - set(before.devices))),
        )
        if only
    ]
    incomplete = [note for side, each in sides.items() for note in _incomplete(side, each)]
    return [*differences, *devices, *incomplete, *_missing(sides)]


def _differences(before: RecordingData, after: RecordingData) -> Iterator[str]:
    if before.manifest.program[:1] != after.manifest.program[:1]:
        yield "The recordings are of different programs; lines are compared by their text."
    ours, theirs = _devices(before), _devices(after)
    if any(ours[each] != theirs[each] for each in ours.keys() & theirs.keys()):
        yield "The devices differ, so that times are not comparable."
    if before.manifest.simulated != after.manifest.simulated:
        yield "Only one recording is of a simulated device; its times are not a GPU's."


def _incomplete(side: str, recording: RecordingData) -> Iterator[str]:
    if recording.dropped:
        yield f"The recording {side} lacks {recording.dropped:,} events or activities."
    if not recording.manifest.complete:
        yield f"The recording {side} was not stopped properly."
    if recording.bounds is not None:
        yield f"The recording {side} is a window of a longer one."
    if not is_whole(recording.tables):
        yield f"The recording {side} has work of the GPU in windows only; its totals are of those."


def _missing(sides: dict[str, RecordingData]) -> Iterator[str]:
    """Yield what only one recording has."""
    for name, lacking in (
        ("activities", "no GPU activities, so that work is not compared"),
        ("stacks", "no call stacks, so that no lines are compared"),
    ):
        without = [side for side, each in sides.items() if not each.tables[name].num_rows]
        if len(without) == 1:
            yield f"The recording {without[0]} has {lacking}."


def _program(recording: RecordingData) -> str:
    return as_unicode(" ".join(recording.manifest.program))


def _devices(recording: RecordingData) -> dict[int, str]:
    rows = recording.tables["devices"].select(["id", "name"]).to_pylist()
    return {row["id"]: row["name"] for row in rows}
