"""Threads that take turns, as a program and the thread that runs its backward pass."""

import numpy as np

# Of more threads, each is alone.
_MOST_THREADS = 64


def taking_turns(threads: np.ndarray, called: np.ndarray, returned: np.ndarray) -> dict[int, int]:
    """Return a number for each thread, which threads share of which no two calls ever overlap.

    One thread then works while another one waits for it, and the time between its calls is
    that of the other. Threads with more calls come first.

    Args:
        threads: The thread of each call.
        called: When each call began.
        returned: When it returned.
    """
    ids, counts = np.unique(threads, return_counts=True)
    ids = ids[np.argsort(-counts, kind="stable")]
    if len(ids) > _MOST_THREADS:
        return {thread: number for number, thread in enumerate(ids.tolist())}
    spans = {
        each: _spans(called[threads == each], returned[threads == each]) for each in ids.tolist()
    }
    groups: list[list[int]] = []
    for thread in ids.tolist():
        for group in groups:
            if not any(_overlap(spans[thread], spans[other]) for other in group):
                group.append(thread)
                break
        else:
            groups.append([thread])
    return {thread: number for number, group in enumerate(groups) for thread in group}


def _spans(called: np.ndarray, returned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(called, kind="stable")
    return called[order], np.maximum.accumulate(returned[order])


def _overlap(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> bool:
    """Return whether a span of one list overlaps one of the other; each is in order."""
    first, last = one
    places = np.searchsorted(other[0], last, side="left")
    before = np.append(other[1], np.iinfo(np.int64).min)[places - 1]
    return bool(((places > 0) & (before > first)).any())
