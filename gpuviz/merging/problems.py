"""What is unusual about recordings to be merged, in sentences."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from gpuviz.data.manifest import Manifest
from gpuviz.data.recording_data import RecordingData
from gpuviz.merging.placement import Placement, process_names
from gpuviz.quantities import format_counted, format_duration, format_names

Named = tuple[str, RecordingData]


def without_duplicates(given: Sequence[Named]) -> tuple[list[Named], list[str]]:
    """Return recordings without copies of others, of which the longest is kept, and sentences."""
    kept: dict[Any, Named] = {}
    sentences = []
    for name, recording in given:
        identity = _identity(name, recording.manifest)
        before = kept.setdefault(identity, (name, recording))
        if before[1] is recording:
            continue
        longer, shorter = before, (name, recording)
        if _length(recording) > _length(before[1]):
            longer, shorter = shorter, longer
        kept[identity] = longer
        sentences.append(f"{shorter[0]} has the same recording as {longer[0]}; it was left out.")
    return list(kept.values()), sentences


def notes_of(placed: Sequence[Placement], left_out: Sequence[str]) -> tuple[str, ...]:
    """Return what readers of the merged recording must know."""
    return (
        *_alignments(placed),
        *left_out,
        *_ranks(placed),
        *_programs(placed),
        *_versions(placed),
        *_apart(placed),
        *_steps(placed),
        *_parts(placed),
    )


def _identity(name: str, manifest: Manifest) -> Any:
    if not (manifest.process_id and manifest.start_unix_ns):
        return name
    return manifest.boot_id, manifest.host_hash, manifest.process_id, manifest.start_unix_ns


def _length(recording: RecordingData) -> tuple[bool, int]:
    return recording.manifest.complete, recording.tables["memory_events"].num_rows


def _alignments(placed: Sequence[Placement]) -> Iterator[str]:
    errors = {each.alignment.error for each in placed}
    if errors == {0}:
        return
    reference = placed[0].recording.manifest.host or placed[0].source
    # Where collectives refute the wall clocks, a sentence of its own has the error.
    largest = max(each.alignment.error for each in placed if not each.alignment.refuted)
    if largest > 0:
        yield (
            f"Times of other hosts are within {format_duration(largest)} of those of {reference}, "
            "as far as the wall clocks of the hosts agree."
        )
    yield from _collectives(placed, reference)
    unknown = [each.source for each in placed if each.alignment.error < 0]
    if unknown:
        yield (
            f"The clocks of {format_names(unknown)} were not recorded; their times are aligned by "
            "the starts of the recordings, with an unknown error."
        )


def _collectives(placed: Sequence[Placement], reference: str) -> Iterator[str]:
    alignments = {
        each.recording.manifest.host or each.source: each.alignment for each in reversed(placed)
    }
    for host, found in reversed(alignments.items()):
        used = format_counted(found.collectives, "collective")
        if found.refuted:
            yield (
                f"The wall clocks of {host} and {reference} differ by about "
                f"{format_duration(found.refuted)}; times of {host} are aligned by {used} instead, "
                f"within {format_duration(found.error)}."
            )
        elif found.collectives:
            yield f"The error of {host} was narrowed by {used}."
        if found.rejected:
            yield (
                f"{format_counted(found.rejected, 'collective')} of {host} contradicted its clock "
                "or other collectives and did not count for its alignment."
            )


def _ranks(placed: Sequence[Placement]) -> Iterator[str]:
    launches = [each.recording.manifest.launch for each in placed]
    sizes = sorted({launch["ranks"] for launch in launches if "ranks" in launch})
    if len(sizes) > 1:
        counts = " and ".join(map(str, sizes))
        yield f"The recordings are of launches with {counts} ranks, so of different ones."
    elif sizes:
        missing = sorted({*range(min(sizes[0], 1 << 20))} - {each.rank for each in placed})
        if missing:
            ranks = "rank" if len(missing) == 1 else "ranks"
            yield (
                f"There is no recording of {ranks} {format_names(list(map(str, missing)))} of "
                f"{sizes[0]}."
            )
    twice = [rank for rank, count in Counter(each.rank for each in placed).items() if count > 1]
    for rank in sorted(rank for rank in twice if rank >= 0):
        yield (
            f"Several processes have rank {rank}: one started the others, or the recordings are "
            "of several launches."
        )


def _programs(placed: Sequence[Placement]) -> Iterator[str]:
    programs = Counter(
        each.recording.manifest.program[0] if each.recording.manifest.program else "unknown"
        for each in placed
    )
    if len(programs) > 1:
        named = [f"{name} ({count})" for name, count in programs.most_common()]
        yield f"The recordings are of {len(programs)} programs: {format_names(named)}."


def _versions(placed: Sequence[Placement]) -> Iterator[str]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in placed:
        known = each.recording.manifest
        others = {"gpuviz": known.gpuviz_version, "the driver": known.driver}
        for title, version in {**others, **known.library_versions}.items():
            found[title].add(version)
    for title, versions in found.items():
        different = sorted(versions - {""})
        if len(different) > 1:
            yield f"The processes had different versions of {title}: {format_names(different)}."


def _apart(placed: Sequence[Placement]) -> Iterator[str]:
    ordered = sorted(placed, key=lambda each: each.start)
    end = ordered[0].end
    for each in ordered[1:]:
        # Less than the shared time, a pause between processes that one program starts in turn.
        if each.start > end and each.start - end > max(end, 60 * 10**9):
            yield (
                f"{each.source} began {format_duration(each.start - end)} after all recordings "
                "before it had ended; is it of the same run?"
            )
        end = max(end, each.end)


def _steps(placed: Sequence[Placement]) -> Iterator[str]:
    if all(each.alignment.error == 0 for each in placed):
        return
    reported = set()
    for each in placed:
        host = each.recording.manifest.host or each.source
        for step in each.steps:
            if (host, step) not in reported:
                reported.add((host, step))
                yield (
                    f"The wall clock of {host} was set {format_duration(abs(step.size))} "
                    f"{'ahead' if step.size > 0 else 'back'} while recording; the error of its "
                    "times contains that."
                )


def _parts(placed: Sequence[Placement]) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for each, name in zip(placed, process_names(placed), strict=True):
        for note in each.recording.notes:
            if note != each.recording.manifest.label:
                names.setdefault(note, []).append(name)
    for note, affected in names.items():
        yield note if len(affected) == len(placed) else f"{format_names(affected)}: {note}"
