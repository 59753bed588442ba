"""Places of the program that were sampled at work while the GPU is idle."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.host.host_gaps import LONG_NS, HostGaps
from gpuviz.advice.host.host_places import HostPlace
from gpuviz.advice.host.rare_gaps import LineRuns, without_first
from gpuviz.advice.host.remade_functions import makes_again
from gpuviz.advice.host.sampled_compilations import is_compilation
from gpuviz.advice.host.staging import is_staging
from gpuviz.advice.host.work_groups import work_groups
from gpuviz.advice.source.libraries import makes_modules
from gpuviz.analysis.handovers import handing_threads
from gpuviz.analysis.host_work import HostWork, host_work
from gpuviz.analysis.intervals import overlaps
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.preparation import PREPARATIONS
from gpuviz.analysis.sampled_work import Work
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_duration

# On average: less is what a library such as PyTorch needs for its own launches.
_LEAST_OF_LIBRARY_NS = 2_000_000
# Lines are compared in pairs.
_MOST_JOINED = 64


def sampled_places(recording: RecordingData, gaps: HostGaps, device: int) -> list[HostPlace]:
    """Return where the host was sampled in long gaps; lines that run in the same ones are one.

    Args:
        recording: The recording.
        gaps: The time between its calls.
        device: Ordinal of the device that is idle.
    """
    runs = LineRuns(recording)
    known = [(each, _place_of_work(recording, each)) for each in _sampled(recording, gaps, device)]
    known = [
        (each, place)
        for each, place in known
        if not (_is_of_launches(place) or runs.are_stalls(each.work, place.calls))
    ]
    works, places = [each for each, _ in known], [place for _, place in known]
    together = [
        number
        for number, place in enumerate(places)
        if len(place.calls) and not place.is_upload and place.is_plain
    ]
    together = sorted(together, key=lambda number: -places[number].idle_ns)[:_MOST_JOINED]
    apart = [place for number, place in enumerate(places) if number not in together]
    return [*apart, *_joined(recording, gaps, [works[number] for number in together])]


@dataclass(frozen=True, slots=True)
class _Sampled:
    """How long something was sampled in each gap, which the call after it stands for."""

    work: Work
    calls: np.ndarray
    sampled: np.ndarray
    is_most: np.ndarray

    def chosen(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the calls after the gaps that it takes much of, and how long it takes there."""
        is_long = (self.sampled >= LONG_NS) | (self.is_most & (self.sampled > 0))
        return without_first(self.calls[is_long], self.sampled[is_long])


def _sampled(recording: RecordingData, gaps: HostGaps, device: int) -> list[_Sampled]:
    """Return the work of the program that was sampled in long gaps."""
    found, calls = host_work(recording, device), np.flatnonzero(gaps.is_long & (gaps.idle > 0))
    works, numbers = _merged(found.works)
    totals = np.zeros((len(calls), len(works)), np.int64)
    for gap, piece, time_ns in _pieces_in_gaps(recording, found, calls, gaps.length[calls]):
        np.add.at(totals, (gap, numbers[found.work[piece]]), time_ns)
    return [
        _Sampled(work, calls, totals[:, number], totals.argmax(axis=1) == number)
        for number, work in enumerate(works)
        if not (work.kind in PREPARATIONS or not work.site or work.is_of_gpuviz)
        and not is_compilation(recording, work.stack)
        and not makes_again(recording, work.stack)
    ]


def _merged(works: Sequence[Work]) -> tuple[list[Work], np.ndarray]:
    """Return works without those of the same line and text, and the number of each one's there.

    The data loader works and waits: to the program both are one.
    """
    merged: dict[tuple[str, str], Work] = {}
    for work in works:
        before = merged.setdefault((work.site, work.text), work)
        if before.is_of_launches and not work.is_of_launches:
            merged[work.site, work.text] = work
    places = {key: place for place, key in enumerate(merged)}
    numbers = np.array([places[work.site, work.text] for work in works], np.int64)
    return list(merged.values()), numbers


def _pieces_in_gaps(
    recording: RecordingData, found: HostWork, calls: np.ndarray, length: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield for each thread the gaps before its calls, the pieces of work there, and their times.

    Args:
        recording: The recording.
        found: The pieces, of which those beside launches do not count.
        calls: The calls after the gaps, rows of ``api_calls``.
        length: How long each gap is, in ns.
    """
    table = recording.tables["api_calls"]
    threads, times = plain(table["thread"]), plain(table["time"])
    launched = plain(recording.tables["activities"]["correlation"])[found.activity]
    launching = calls_of(recording.tables, launched)
    for thread in np.unique(threads[calls]).tolist():
        own = np.flatnonzero(threads[calls] == thread)
        own = own[np.argsort(times[calls[own]], kind="stable")]
        pieces = np.flatnonzero((threads[launching] == thread) & ~found.is_beside_launches)
        ends = times[calls[own]]
        gap, piece, begin, end = overlaps(
            ends - length[own], ends, found.begin[pieces], found.end[pieces]
        )
        yield own[gap], pieces[piece], end - begin


def _place_of_work(recording: RecordingData, found: _Sampled) -> HostPlace:
    work = found.work
    calls, sampled = found.chosen()
    line, stacks = Line(work.site, work.source, "", work.stack), (work.stack, work.stack)
    return HostPlace(
        line,
        line,
        stacks,
        calls,
        idle_ns=int(sampled.sum()),
        host_ns=sampled,
        is_upload=not work.is_wait
        and is_staging(recording, stacks, calls, sampled, is_native=work.is_native),
        work=work,
        makes_modules=makes_modules(recording.call_stacks.frames(work.stack)),
    )


def _is_of_launches(place: HostPlace) -> bool:
    """Return whether a library takes this time for its own launches, and not for the program."""
    is_of_launches = place.work is not None and place.work.is_of_launches and not place.is_upload
    return is_of_launches and place.host_ns.sum() < _LEAST_OF_LIBRARY_NS * len(place.host_ns)


def _joined(recording: RecordingData, gaps: HostGaps, works: list[_Sampled]) -> Iterator[HostPlace]:
    """Yield the places of lines that run in the same gaps, or in one call of the program."""
    around = _stacks_around(recording, gaps)
    chosen = [each.chosen()[0] for each in works]
    groups = work_groups(
        recording,
        [each.work.stack for each in works],
        chosen,
        [[around(call) for call in calls.tolist()] for calls in chosen],
    )
    for group in groups:
        members = [works[number] for number in group.members]
        if len(members) == 1:
            yield _place_of_work(recording, members[0])
            continue
        calls = members[0].calls
        total = np.sum([each.sampled for each in members], axis=0)
        is_long = np.isin(calls, np.concatenate([chosen[number] for number in group.members]))
        calls, sampled = without_first(calls[is_long], total[is_long])
        members.sort(key=lambda each: -int(each.sampled[is_long].sum()))
        lines = _lines_of(members, is_long)
        call = group.call
        first = lines[0] if call is None else Line(call.site, call.source, "", lines[0].stack)
        yield HostPlace(
            first,
            first,
            (first.stack, first.stack),
            calls,
            idle_ns=int(sampled.sum()),
            host_ns=sampled,
            is_upload=False,
            work=members[0].work,
            lines=lines,
            is_call=call is not None,
            makes_modules=makes_modules(recording.call_stacks.frames(members[0].work.stack)),
        )


def _lines_of(members: list[_Sampled], is_long: np.ndarray) -> tuple[Line, ...]:
    """Return the lines that were sampled, with their times, longest first."""
    sums: dict[str, int] = {}
    of_site: dict[str, Work] = {}
    for each in members:
        site = each.work.site
        sums[site] = sums.get(site, 0) + int(each.sampled[is_long].sum())
        of_site.setdefault(site, each.work)
    return tuple(
        Line(site, of_site[site].source, format_duration(time_ns), of_site[site].stack)
        for site, time_ns in sorted(sums.items(), key=lambda each: -each[1])
    )


def _stacks_around(recording: RecordingData, gaps: HostGaps) -> Callable[[int], tuple[int, int]]:
    """Return a function for the call stacks before and after a gap.

    They are those of the thread that launches then, or of the one that hands it its work.
    """
    table, handing = recording.tables["api_calls"], handing_threads(recording)
    times, threads, stacks = (plain(table[name]) for name in ("time", "thread", "stack"))
    calls_of_thread = {
        each: (rows := np.flatnonzero(threads == each))[np.argsort(times[rows], kind="stable")]
        for each in set(handing.values())
    }

    def around(call: int) -> tuple[int, int]:
        own = calls_of_thread.get(handing.get(int(threads[call]), -1))
        if own is None:
            return int(stacks[gaps.previous[call]]), int(stacks[call])
        place = int(np.searchsorted(times[own], times[call]))
        before, after = max(place - 1, 0), min(place, len(own) - 1)
        return int(stacks[own[before]]), int(stacks[own[after]])

    return around
