"""How many examples a property test draws, by the profile of Hypothesis that is loaded.

A test names the number that `scripts/test` draws; the other profiles draw a share or a multiple.
"""

from typing import Any

from hypothesis import settings

# Of a hundred examples. `full` is for a machine with hours to spare.
PROFILES = {"fast": 25, "ci": 100, "full": 2000}


def register_profiles() -> None:
    for name, count in PROFILES.items():
        settings.register_profile(name, max_examples=count, deadline=None, print_blob=True)


def share_of(count: int) -> int:
    """Return what the loaded profile makes of a count, at least 1."""
    return max(1, count * settings().max_examples // 100)


def examples(count: int, **options: Any) -> settings:
    """Return settings that draw the profile's share of so many examples."""
    return settings(max_examples=share_of(count), **options)
