"""Facts about the program and the machine of a recording."""

import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from gpuviz.recording.escaping import as_unicode


def environment_fields() -> dict[str, Any]:
    """Return the manifest's fields on the running process: program, versions, platform."""
    return {
        "program": tuple(map(as_unicode, sys.argv)),
        "gpuviz_version": version("gpuviz"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def iso_time(unix_ns: int) -> str:
    """Return a wall-clock time as ISO 8601 in UTC, to the microsecond."""
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).isoformat(timespec="microseconds")
