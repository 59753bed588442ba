"""Deprecated name of `gpuviz.formats.detection`, kept for one version."""

import warnings
from typing import TYPE_CHECKING

from gpuviz.formats.detection import detect

if TYPE_CHECKING:
    from pathlib import Path


def recognize(path: "Path") -> str:
    """Return what `gpuviz.formats.detection.detect` returns, with a DeprecationWarning."""
    warnings.warn(
        "gpuviz.formats.recognition.recognize is now gpuviz.formats.detection.detect",
        DeprecationWarning,
        stacklevel=2,
    )
    return detect(path)
