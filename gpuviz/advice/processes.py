"""The findings of a merged recording: those of its processes, equal ones together."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import accumulate

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.advice.rules import r48_late_rank
from gpuviz.advice.scale import Scale
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.processes import Process, device_names, processes
from gpuviz.data.derived import schemas as derived_schemas
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_names


def findings_of_processes(
    recording: RecordingData,
    of_process: Callable[[RecordingData], Iterable[Finding]],
    *,
    small: bool,
) -> tuple[Finding, ...]:
    """Return what is wrong or costs memory or time in any process; most saving first.

    Of one that several processes have, the one with the largest saving is returned, and its reason
    names the others. Savings are those of one process. Only R48 compares processes.
    """
    scale = Scale(recording)
    names = device_names(recording)
    first = _first_derived(recording)
    groups: dict[Hashable, list[Finding]] = {}
    for process, before in zip(processes(recording), first, strict=True):
        for each in of_process(process.recording):
            sites = tuple((line.site, line.source) for line in each.lines)
            own = replace(each, evidence=_evidence(process, before, each.evidence))
            groups.setdefault((each.rule, sites), []).append(own)
    shown = []
    for alike in groups.values():
        alike.sort(key=scale.share, reverse=True)
        where = names.get(alike[0].device, "")
        others = [names.get(each.device, "") for each in alike[1:]]
        also = f", and likewise in {format_names(others)}" if others else ""
        shown.append(replace(alike[0], reason=f"In {where}{also}. {alike[0].reason}"))
    late = r48_late_rank.find(recording)
    shown += [each for each in late if small or scale.is_relevant(each)]
    # What may make results wrong comes before everything that saves something, and what saves time
    # of the warm-up after it.
    shown.sort(key=lambda each: (each.kind != "hazard", each.is_of_warm_up, -scale.share(each)))
    return tuple(shown)


def _first_derived(recording: RecordingData) -> list[Mapping[str, int]]:
    """Return the first row of each process in each derived table."""
    counts = {
        name: [derived(each.recording)[name].num_rows for each in processes(recording)]
        for name in derived_schemas()
    }
    starts = {name: list(accumulate(rows, initial=0)) for name, rows in counts.items()}
    return [
        {name: rows[number] for name, rows in starts.items()}
        for number in range(len(processes(recording)))
    ]


def _evidence(
    process: Process[RecordingData], first: Mapping[str, int], evidence: Evidence | None
) -> Evidence | None:
    """Return evidence with row numbers of the merged recording."""
    if evidence is None or not evidence.rows:
        return evidence
    if evidence.table in process.rows:
        of_table = process.rows[evidence.table]
        return replace(evidence, rows=tuple(int(of_table[row]) for row in evidence.rows))
    if evidence.table in first:
        return replace(evidence, rows=tuple(row + first[evidence.table] for row in evidence.rows))
    return evidence
