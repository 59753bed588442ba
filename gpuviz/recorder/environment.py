"""Facts about the program and the machine of a recording."""

import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpuviz.allocator.settings import torch_settings
from gpuviz.data.escaping import as_unicode
from gpuviz.data.manifest import LIBRARIES
from gpuviz.recorder.launch import launch_fields


def environment_fields() -> dict[str, Any]:
    """Return the manifest's fields on the running process: program, versions, platform, host."""
    return {
        "program": tuple(map(as_unicode, sys.argv)),
        "libraries": dict(_library_versions()),
        "torch_settings": as_unicode(torch_settings()),
        **_constant_fields(os.getpid()),
    }


def _library_versions() -> Iterator[tuple[str, str]]:
    for name in LIBRARIES:
        known = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(known, str):  # torch's is of a subclass
            yield name, as_unicode(str(known))


@cache
def _constant_fields(process_id: int) -> dict[str, Any]:
    return {
        "gpuviz_version": version("gpuviz"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "host": as_unicode(platform.node()),
        "launch": launch_fields(),
        "host_hash": hashlib.sha256(platform.node().encode(errors="replace")).hexdigest()[:16],
        "boot_id": _text_of("/proc/sys/kernel/random/boot_id").strip(),
        "process_id": process_id,
        "process_start_ns": _start_since_boot_ns(_text_of("/proc/self/stat")),
    }


def process_start_unix_ns() -> int:
    """Return the wall-clock time at which the process started, to 10 ms; 0 if unknown."""
    start = _start_since_boot_ns(_text_of("/proc/self/stat"))
    return start and time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + start


def _start_since_boot_ns(stat: str) -> int:
    # Fields as in proc(5); the program's name, in parentheses, may contain spaces.
    fields = stat.rpartition(")")[2].split()
    start_ticks = 19
    if len(fields) <= start_ticks:
        return 0
    return int(fields[start_ticks]) * 10**9 // os.sysconf("SC_CLK_TCK")


def _text_of(path: str) -> str:
    """Return the content of a file in /proc or /sys; empty if unreadable, as in some sandboxes."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def iso_time(unix_ns: int) -> str:
    """Return a wall-clock time as ISO 8601 in UTC, to the microsecond."""
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).isoformat(timespec="microseconds")
