"""Runs of activities of one line that follow each other, which one activity could replace."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.host.host_gaps import LONG_NS, host_gaps
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain

# Shorter runs are the parts of one operation rather than the elements of a loop.
LEAST_LENGTH = 8
_MOST_LINES = 8


@dataclass(frozen=True, eq=False, slots=True)
class Runs:
    """Runs of activities of one line and kind, without other work of the device between them.

    Attributes:
        device: Ordinal.
        kind: What all of them have in common.
        first: The first activity of each run.
        last: The last activity of each run.
        followers: The other activities, in the order of the runs.
        run: For each of these, the number of its run.
    """

    device: int
    kind: int
    first: np.ndarray
    last: np.ndarray
    followers: np.ndarray
    run: np.ndarray

    def chosen(self, mask: np.ndarray) -> "Runs":
        """Return some of the runs."""
        kept = mask[self.run]
        run = (np.cumsum(mask) - 1)[self.run[kept]]
        return Runs(
            self.device, self.kind, self.first[mask], self.last[mask], self.followers[kept], run
        )

    def spent_ns(self, schedule: Schedule) -> int:
        """Return the time from the begin of the first work of each run to the end of the last.

        In ns, without the host's wait for earlier work in the first call.
        """
        return int((schedule.end[self.last] - schedule.begin[self.first]).sum())


def runs_of(
    schedule: Schedule, device: int, candidates: np.ndarray, kinds: np.ndarray
) -> Iterator[Runs]:
    """Yield the runs of the lines with most activities in runs.

    In a run, at least eight activities of one line, thread and kind follow each other on the
    device, launched less than 250 µs apart.

    Args:
        schedule: The recording's schedule.
        device: Ordinal.
        candidates: Mask of the activities that can be in runs.
        kinds: For each activity, a number that is equal in a run, at least 0.
    """
    recording = schedule.recording
    work = np.flatnonzero(schedule.device == device)
    work = work[np.argsort(schedule.begin[work], kind="stable")]
    is_part, kinds = (candidates & (schedule.call >= 0))[work], kinds[work]
    lines = np.full(len(work), -1)
    lines[is_part] = line_numbers(
        recording, stacks_of(recording.tables, schedule.call[work[is_part]])
    )
    known = plain(recording.tables["api_calls"]["thread"])
    threads = np.append(known, 0)[schedule.call[work]]
    begin, end = schedule.launch_begin()[work], schedule.launch_end()[work]
    follows = np.zeros(len(work), bool)
    follows[1:] = is_part[1:] & is_part[:-1] & (lines[1:] == lines[:-1])
    follows[1:] &= (kinds[1:] == kinds[:-1]) & (threads[1:] == threads[:-1])
    follows[1:] &= (begin[1:] >= begin[:-1]) & (begin[1:] - end[:-1] < LONG_NS)
    starts = np.flatnonzero(is_part & ~follows)
    lengths = np.diff(np.append(np.cumsum(follows)[starts], np.count_nonzero(follows)))
    is_long = lengths + 1 >= LEAST_LENGTH
    followers = np.flatnonzero(follows)[np.repeat(is_long, lengths)]
    starts, lengths = starts[is_long], lengths[is_long]
    keys = np.stack([lines[starts], kinds[starts]])
    found, of_start = np.unique(keys, axis=1, return_inverse=True)
    counts = np.bincount(of_start.ravel(), weights=lengths, minlength=found.shape[1])
    run = np.repeat(np.arange(len(starts)), lengths)
    every = Runs(device, -1, work[starts], work[starts + lengths], work[followers], run)
    for group in np.argsort(-counts, kind="stable")[:_MOST_LINES].tolist():
        of_group = every.chosen(of_start.ravel() == group)
        yield Runs(
            device,
            int(found[1, group]),
            of_group.first,
            of_group.last,
            of_group.followers,
            of_group.run,
        )


def merged(schedule: Schedule, runs: Runs, least_ns: int) -> ScheduleChange:
    """Return the schedule with one activity for each run.

    Args:
        schedule: The recording's schedule.
        runs: The runs.
        least_ns: What each activity takes for itself, however little it does; only the rest of the
            others remains.
    """
    between = _calls_between(schedule, schedule.call[runs.first], schedule.call[runs.last])
    shorter = schedule.duration.copy()
    shorter[runs.followers] = np.maximum(shorter[runs.followers] - least_ns, 0)
    gaps = between & (host_gaps(schedule.recording, runs.device).length < LONG_NS)
    return ScheduleChange(duration=shorter, without_wait=between, without_gap=gaps, instant=between)


def _calls_between(schedule: Schedule, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the calls of the same thread after each of some calls, until the last of its run."""
    calls = schedule.recording.tables["api_calls"]
    threads, begin = plain(calls["thread"]), plain(calls["time"])
    order = np.argsort(begin, kind="stable")
    order = order[np.argsort(threads[order], kind="stable")]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    change = np.zeros(len(order) + 1, np.int64)
    np.add.at(change, place[first] + 1, 1)
    np.add.at(change, place[last] + 1, -1)
    between = np.zeros(len(order), bool)
    between[order] = np.cumsum(change[:-1]) > 0
    return between
