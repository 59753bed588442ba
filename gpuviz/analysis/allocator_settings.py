"""Settings of a recording's allocator."""

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from gpuviz import _core

if TYPE_CHECKING:
    from gpuviz.recording.recording import Recording

# A comma outside the brackets of a list.
_SEPARATOR = re.compile(r",(?![^\[]*\])")


def allocator_settings(recording: "Recording") -> _core.AllocatorSettings:
    """Return the allocator's settings, without those that gpuviz does not know."""
    settings = _core.AllocatorSettings.parse("")
    known: list[str] = []
    for item in _SEPARATOR.split(recording.manifest.settings):
        with suppress(ValueError):
            settings = _core.AllocatorSettings.parse(",".join([*known, item]))
            known.append(item)
    return settings
