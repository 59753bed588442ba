"""R65: a kernel gets arrays of the host, which travel to the GPU and back at each launch."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.finding import Finding
from gpuviz.advice.host.host_arguments import copies_of_arguments
from gpuviz.advice.host_lines import line_of, longest_lines, text_of
from gpuviz.advice.replay.copied_contents import with_known_content, without_copies
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.once import Once
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_duration

RULES = (
    Rule(
        "R65",
        "arrays of the host passed to a kernel",
        "Numba copies NumPy arrays of at least 1 MiB that a kernel gets, at least four times, "
        "though the GPU has had the bytes before, or they come back from it unchanged or only to "
        "be copied there again, as far as 64 places tell; the saving is without these copies but "
        "the last ones to the host",
        "`cuda.to_device` before the loop, and `copy_to_host()` where the host reads the array",
    ),
)

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_HOST = _COPY_KINDS.index("device_to_host")
# Fewer copies may be the parts of a program that know nothing of each other.
_LEAST_COPIES = 4
# Each line costs a replay of the schedule.
_MOST_LINES = 8


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find lines that launch kernels of Numba with arrays of the host.

    Trigger: at least four copies of a line that Numba makes of a kernel's arguments, whose
    ``content`` the table ``launch_blocks`` has, which is that of copies of at least 1 MiB. A copy
    to the GPU counts if an earlier copy in either direction has the same size and content; one to
    the host if an earlier copy to the GPU has, or a later one.

    Saving: the recording's `Schedule`, replayed without these copies, their calls and their waits.
    The last copies to the host stay, one for each size: the host gets the result. It may read the
    arrays in between, too, and the content is compared at 64 places only: ``possible``.
    """
    for copies in needless_copies(schedule):
        yield _finding(schedule, copies)


@Once
def needless_copies(schedule: Schedule) -> tuple[np.ndarray, ...]:
    """Return the copies of arguments that each line makes without need.

    They are computed once for a schedule.
    """
    return tuple(_of_lines(schedule))


def _of_lines(schedule: Schedule) -> Iterator[np.ndarray]:
    copies = _needless(schedule)
    number = np.unique(schedule.lines[copies], return_inverse=True)[1]
    spent = np.bincount(number, schedule.duration[copies])
    for each in np.argsort(-spent, kind="stable")[:_MOST_LINES].tolist():
        of_line = copies[number == each]
        if len(of_line) >= _LEAST_COPIES:
            yield of_line


def _needless(schedule: Schedule) -> np.ndarray:
    """Return the copies of arguments that would vanish with arrays of the GPU, by their begins."""
    tables = schedule.recording.tables
    copies = np.flatnonzero(copies_of_arguments(schedule))
    work, content = with_known_content(schedule, copies)
    if not len(work):
        return work
    to_host = codes(tables["activities"]["copy_kind"], _COPY_KINDS)[schedule.rows[work]] == _TO_HOST
    size = plain(tables["activities"]["bytes"])[schedule.rows[work]]
    key = np.stack([schedule.device[work].astype(np.int64), size, content.view(np.int64)])
    _, first, group = np.unique(key, axis=1, return_index=True, return_inverse=True)
    group = group.ravel()
    to_device = np.flatnonzero(~to_host)
    uploads = np.bincount(group[to_device], minlength=len(first))
    needless = np.where(to_host, uploads[group] > 0, np.arange(len(work)) != first[group])
    _, last = np.unique(size[to_host][::-1], return_index=True)
    needless[np.flatnonzero(to_host)[::-1][last]] = False
    return work[needless]


def _finding(schedule: Schedule, copies: np.ndarray) -> Finding:
    recording = schedule.recording
    change = without_copies(schedule, copies)
    sizes = plain(recording.tables["activities"]["bytes"])[schedule.rows[copies]]
    stacks = stacks_of(recording.tables, schedule.call[copies])
    spent = format_duration(int(schedule.duration[copies].sum()))
    calls = distinct(schedule.call[copies])
    of_host = format_duration(int((schedule.returned - schedule.called)[calls].sum()))
    line = line_of(recording, int(stacks[0]), spent)
    return Finding(
        rule="R65",
        title=f"{text_of(line)} gets arrays of the host: {format_count(len(copies))} copies "
        f"to the GPU and back, {format_bytes(int(sizes.sum()))} in all, may be needless.",
        reason="Numba copies each NumPy array that a kernel gets to the GPU before the launch, and "
        f"back after it. These copies take {spent} on the GPU and {of_host} of the host. By "
        "samples of 64 places, the GPU had the same bytes before, or they come back unchanged, or "
        "only to be copied there again. Arrays that are mostly zeros look alike in samples.",
        change="Copy the arrays once with `cuda.to_device` before the loop, pass what it returns "
        "to the kernel, and call `copy_to_host()` where the host reads an array.",
        certainty="possible",
        device=int(schedule.device[copies[0]]),
        saved_ns=schedule.saved_alone(change),
        lines=longest_lines(recording, stacks, schedule.duration[copies]),
        evidence=schedule.evidence(copies),
        schedule=change,
    )
