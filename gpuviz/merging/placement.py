"""Where each recording is among those merged: its order, its place in time, its name."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuviz.data.escaping import as_unicode
from gpuviz.data.recording_data import RecordingData
from gpuviz.merging.clocks import UNKNOWN, Alignment, HostClock, Snapshot, Step, align
from gpuviz.merging.meetings import Collectives, collectives, meetings
from gpuviz.merging.refinement import refined

Named = tuple[str, RecordingData]


_MOST_RANKS = 2**31


@dataclass(frozen=True, slots=True)
class Placement:
    """A recording and its place among those merged.

    Attributes:
        source: What it was read from.
        recording: The recording.
        alignment: Its host's clock on the common axis.
        steps: Jumps of its host's wall clock.
    """

    source: str
    recording: RecordingData
    alignment: Alignment
    steps: tuple[Step, ...]

    @property
    def rank(self) -> int:
        """The rank of the process; -1 if unknown."""
        return _rank(self.recording)

    @property
    def start(self) -> int:
        """Its time 0 on the common axis, in ns."""
        return self._aligned(0)

    @property
    def end(self) -> int:
        """Its end on the common axis, in ns."""
        return self._aligned(self.recording.duration_ns)

    def aligned(self, times: np.ndarray) -> np.ndarray:
        """Return times of the recording on the common axis, in ns."""
        return self.alignment.aligned(times + np.int64(_start(self.recording)))

    def _aligned(self, time: int) -> int:
        return int(self.aligned(np.array([time], np.int64))[0])


def placements(given: Sequence[Named]) -> list[Placement]:
    """Return recordings by rank, then in the order of their starts, with their times aligned.

    The reference is the host of the first.
    """
    ordered = sorted(given, key=_order)
    hosts: dict[str, list[RecordingData]] = {}
    for name, recording in ordered:
        hosts.setdefault(_host(name, recording), []).append(recording)
    aligned = _aligned(hosts)
    placed = [Placement(name, each, *aligned[_host(name, each)]) for name, each in ordered]
    zero = min(each.start for each in placed)
    return [
        replace(each, alignment=replace(each.alignment, shift=each.alignment.shift - zero))
        for each in placed
    ]


def process_names(placed: Sequence[Placement]) -> list[str]:
    """Return what each process is called: its rank, else host and process id, else a number."""
    names = []
    for number, each in enumerate(placed, 1):
        manifest = each.recording.manifest
        host = as_unicode(manifest.host)
        process = f"{host} {manifest.process_id}".strip() if manifest.process_id else ""
        names.append(f"rank {each.rank}" if each.rank >= 0 else process or f"process {number}")
    counts = Counter(names)
    # A process has the rank of the one that started it.
    return [
        name if counts[name] == 1 else f"{name} ({each.recording.manifest.process_id or number})"
        for number, (name, each) in enumerate(zip(names, placed, strict=True), 1)
    ]


def _aligned(
    hosts: Mapping[str, Sequence[RecordingData]],
) -> dict[str, tuple[Alignment, tuple[Step, ...]]]:
    """Return the alignment of each host to the first one, and the jumps of its wall clock."""
    reference, *others = hosts
    found: dict[str, tuple[Alignment, tuple[Step, ...]]] = {reference: (Alignment(0, 0), ())}
    if others:
        clock, of_reference = _clock(hosts[reference]), collectives(hosts[reference])
        found[reference] = (Alignment(0, 0), clock.steps)
        for host in others:
            own = _clock(hosts[host])
            found[host] = (_alignment(hosts[host], own, of_reference, clock), own.steps)
    return found


def _alignment(
    recordings: Sequence[RecordingData], own: HostClock, others: Collectives, reference: HostClock
) -> Alignment:
    first = min(map(_start, recordings))
    last = max(_start(each) + each.duration_ns for each in recordings)
    found = align(first, last, own, reference)
    is_known = own.error >= 0 and reference.error >= 0
    by_clocks = found if is_known else replace(found, error=UNKNOWN)
    return refined(by_clocks, first, last, meetings(collectives(recordings), others))


def _order(named: Named) -> tuple[bool, int, int, str]:
    rank = _rank(named[1])
    return rank < 0, rank, named[1].manifest.start_unix_ns, named[0]


def _rank(recording: RecordingData) -> int:
    rank = recording.manifest.launch.get("rank", -1)
    return rank if 0 <= rank < _MOST_RANKS else -1


def _host(name: str, recording: RecordingData) -> str:
    """Return what all recordings of one boot of a host have in common."""
    manifest = recording.manifest
    return manifest.boot_id if manifest.boot_id and manifest.start_monotonic_ns else name


def _start(recording: RecordingData) -> int:
    return recording.manifest.start_monotonic_ns


def _clock(recordings: Iterable[RecordingData]) -> HostClock:
    recordings = tuple(recordings)
    found = [
        Snapshot(_start(each) + row["time"], row["wall"], row["uncertainty"])
        for each in recordings
        for row in each.tables["clock_snapshots"].to_pylist()
    ]
    if found:
        return HostClock(found)
    # Files of other tools, and of older versions, know only when they began.
    first = recordings[0]
    return HostClock([Snapshot(_start(first), first.manifest.start_unix_ns, UNKNOWN)])
