"""Settings of a recording's allocator."""

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from gpuviz import _core

if TYPE_CHECKING:
    from gpuviz.recording.recording import Recording

# A comma outside the brackets of a list.
_SEPARATOR = re.compile(r",(?![^\[]*\])")


def known_settings(recording: "Recording") -> list[str]:
    """Return the items of the allocator's settings, without those that gpuviz does not know."""
    known: list[str] = []
    for item in _SEPARATOR.split(recording.manifest.settings):
        with suppress(ValueError):
            _core.AllocatorSettings.parse(",".join([*known, item]))
            known.append(item)
    return [item for item in known if item]


def allocator_settings(recording: "Recording") -> _core.AllocatorSettings:
    """Return the allocator's settings, without those that gpuviz does not know."""
    return _core.AllocatorSettings.parse(",".join(known_settings(recording)))
