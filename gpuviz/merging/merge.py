"""`merge`: the recordings of several processes as one."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gpuviz.data.manifest import Manifest
from gpuviz.data.recording_data import RecordingData
from gpuviz.errors import GpuvizError
from gpuviz.merging.placement import Placement, placements
from gpuviz.merging.problems import notes_of, without_duplicates
from gpuviz.merging.rows import Merged
from gpuviz.merging.sources import Read, check, files, loaded
from gpuviz.quantities import format_names

Source = RecordingData | str | os.PathLike[str]

# Facts that are kept where all processes agree.
_COMMON = (
    *("host", "host_hash", "boot_id", "gpuviz_version", "python", "platform", "program", "cupy"),
    *("driver", "runtime", "allocator_name", "settings", "torch_settings"),
    *("record_stream", "label"),
)
_SUMS = (
    *("events", "dropped", "dropped_oldest", "dropped_activities", "dropped_oldest_activities"),
    "own_cost_ns",
)


def merge(sources: Source | Iterable[Source]) -> RecordingData:
    """Return the recordings of several processes as one; see `gpuviz.merge`."""
    given = [sources] if isinstance(sources, RecordingData | str | os.PathLike) else list(sources)
    found: list[Read] = []
    for each in given:
        if isinstance(each, RecordingData):
            name = f"recording {len(found) + 1}"
            check(name, each)
            found.append((name, each))
        else:
            found += loaded(files(Path(each)))
    return merged(found)


def merged(sources: Iterable[Read]) -> RecordingData:
    """Return recordings as one; their names are used in errors and notes.

    Raises:
        GpuvizError: There is none.
    """
    given: list[tuple[str, RecordingData]] = []
    unreadable: list[GpuvizError] = []
    for name, each in sources:
        if isinstance(each, RecordingData):
            given.append((name, each))
        else:
            unreadable.append(each)
    if not given:
        raise _nothing(unreadable)
    kept, left_out = without_duplicates(given)
    left_out += [f"A file was left out: {str(error).rstrip('.')}." for error in unreadable]
    placed = placements(kept)
    rows = Merged(placed)
    return RecordingData(rows.tables(), _manifest(placed, rows, notes_of(placed, left_out)))


def _nothing(unreadable: list[GpuvizError]) -> GpuvizError:
    if len(unreadable) == 1:
        return unreadable[0]
    if not unreadable:
        return GpuvizError("There are no recordings to merge.")
    reasons = format_names([str(each).rstrip(".") for each in unreadable], most=3)
    return GpuvizError(f"None of {len(unreadable)} files can be merged: {reasons}.")


def _manifest(placed: list[Placement], rows: Merged, notes: tuple[str, ...]) -> Manifest:
    manifests = [each.recording.manifest for each in placed]
    first = placed[0].recording.manifest
    zero = min(placed, key=lambda each: each.start)
    different = [name for name in _COMMON if any(_differ(name, first, m) for m in manifests)]
    return replace(
        Manifest(),
        **{name: getattr(first, name) for name in _COMMON if name not in different},
        **{name: sum(getattr(each, name) for each in manifests) for name in _SUMS},
        libraries=_common_versions(manifests),
        created=zero.recording.manifest.created,
        start_unix_ns=zero.recording.manifest.start_unix_ns,
        start_monotonic_ns=zero.recording.manifest.start_monotonic_ns,
        duration_ns=max(each.end for each in placed),
        complete=all(each.complete for each in manifests),
        allocator="caching" if all(m.allocator == "caching" for m in manifests) else "observe",
        hazards=any(each.hazards for each in manifests),
        forbid_default_stream=any(each.forbid_default_stream for each in manifests),
        simulated=any(each.simulated for each in manifests),
        initial_events=sum(each.initial_events for each in manifests),
        notes=notes,
        **rows.facts(),
    )


def _common_versions(manifests: list[Manifest]) -> dict[str, str]:
    """Return the versions of the libraries that no two processes had in different versions."""
    found = {item for each in manifests for item in each.libraries.items()}
    times = Counter(name for name, _ in found)
    return {name: version for name, version in sorted(found) if times[name] == 1}


def _differ(name: str, one: Manifest, other: Manifest) -> bool:
    return bool(getattr(one, name) != getattr(other, name))
