"""Copies whose bytes the recording knows at some places, and a schedule without copies."""

import numpy as np

from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.mixing import mixed

# What `content` is computed from: 64 bytes at 64 places, in rows of four words.
_PLACES, _BYTES, _WORDS = 64, 64, 4
# Elements of zeros, of ones, and of masks: arrays of sparse data consist of them at most places.
_FILLINGS = tuple(
    np.array([value], kind).view(np.uint8)
    for value, kinds in ((0, "B"), (1, "B i4 i8 f4 f8"), (255, "B"))
    for kind in kinds.split()
)


def with_known_content(schedule: Schedule, work: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return those of some copies whose content is known, in the order of time, and the content.

    Equal numbers mean equal bytes at 64 places of the host's memory; see ``content`` of
    ``launch_blocks``, which only copies of at least 1 MiB have.
    """
    work = work[np.argsort(schedule.begin[work], kind="stable")]
    touched = schedule.recording.tables["launch_blocks"]
    content = plain(touched["content"])
    known = np.flatnonzero(content)
    rows = first_rows(plain(touched["correlation"])[known], schedule.launch[work])
    return work[rows >= 0], content[known][rows[rows >= 0]]


def are_filled(content: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return whether the host's memory of copies has nothing but 0 or 1 at all 64 places.

    Arrays that differ elsewhere can be the same there.

    Args:
        content: The content of each copy; see `with_known_content`.
        size: Its bytes, more than at these places.
    """
    if len(content) == 0:
        return np.zeros(0, bool)
    sizes, place = np.unique(size, return_inverse=True)
    filled = np.stack([_content(each, sizes) for each in _FILLINGS])
    found: np.ndarray = (filled[:, place.ravel()] == content).any(axis=0)
    return found


def _content(element: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the content of arrays of some sizes that are filled with an element."""
    last = size - _BYTES
    begin = last[:, None] // (_PLACES - 1) * np.arange(_PLACES)
    begin[:, -1] = last
    sampled = element[(begin[:, :, None] + np.arange(_BYTES)) % len(element)]
    words = sampled.reshape(len(size), _PLACES * _BYTES).view(np.uint64)
    state = np.empty((len(size), _WORDS), np.uint64)
    state[:, 0], state[:, 1:] = size, (2, 3, 4)
    for first in range(0, words.shape[1], _WORDS):
        state = mixed(state, words[:, first : first + _WORDS])
    content = np.zeros(len(size), np.uint64)
    for lane in state.T:
        content = mixed(content, lane)
    return np.maximum(content, np.uint64(1))


def without_copies(
    schedule: Schedule, copies: np.ndarray, gap: np.ndarray | None = None
) -> ScheduleChange:
    """Return the change that removes copies, with their calls and the waits in these.

    Args:
        schedule: The schedule.
        copies: Its work.
        gap: For each call, whether the host's time before it vanishes, too.
    """
    calls = np.zeros(len(schedule.called), bool)
    calls[schedule.call[copies]] = True
    duration = schedule.duration.copy()
    duration[copies] = 0
    return ScheduleChange(duration=duration, without_wait=calls, without_gap=gap, instant=calls)
