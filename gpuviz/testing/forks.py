"""The number of forks of this process, whose children no recorder sees."""

import os
from functools import cache

_latest = 0


def forks() -> int:
    """Return the number of forks since the first call."""
    _count_forks()
    return _latest


@cache
def _count_forks() -> None:
    os.register_at_fork(after_in_parent=_count)


def _count() -> None:
    global _latest  # noqa: PLW0603 - the hook cannot be removed again
    _latest += 1
