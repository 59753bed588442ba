"""The number of examples of property tests, by the loaded profile of Hypothesis.

A test specifies the number for `scripts/deep`; `fast`, the default, draws a share of it, and `full`
a multiple.
"""

from typing import Any

from hypothesis import settings

# Per hundred examples. `full` takes hours.
PROFILES = {"fast": 10, "deep": 100, "full": 2000}


def register_profiles() -> None:
    for name, count in PROFILES.items():
        settings.register_profile(name, max_examples=count, deadline=None, print_blob=True)


def share_of(count: int) -> int:
    """Return the loaded profile's share of a count, at least 1."""
    return max(1, count * settings().max_examples // 100)


def examples(count: int, **options: Any) -> settings:
    """Return settings that draw the profile's share of this number of examples."""
    return settings(max_examples=share_of(count), **options)
