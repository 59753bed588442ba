"""Availability of CUPTI."""

import ctypes
from collections.abc import Iterator
from pathlib import Path

from gpuviz import _core
from gpuviz.doctor.finding import Finding
from gpuviz.recorder.cupti import require_no_sanitizer
from gpuviz.recorder.cupti_library import find_cupti

_MEMORY_ONLY = "Only memory is recorded; kernels, copies and waits are not."


def findings(runtime: int, *, has_driver: bool, tools: list[str]) -> Iterator[Finding]:
    """Yield findings about CUPTI in this process; creates no context.

    Args:
        runtime: The version of the CUDA runtime, which determines the version of CUPTI.
        has_driver: Whether there is a usable driver.
        tools: The result of `tools_of` for the processes on the GPUs.
    """
    try:
        library = find_cupti(runtime // 1000)
    except RuntimeError as error:
        yield Finding("CUPTI", "warning", "not found", _MEMORY_ONLY, str(error))
        return
    yield Finding("CUPTI", "ok", f"{library} (API {api_version(library)})")
    if has_driver:
        yield _subscription(library)
    if tools:
        meaning = "CUPTI serves one tool per process, so they do not affect other processes."
        yield Finding("other tools", "ok", "; ".join(tools), meaning)


def api_version(library: Path) -> str:
    """Return the API version of a CUPTI library."""
    version = ctypes.c_uint32()
    try:
        ctypes.CDLL(str(library)).cuptiGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return "unknown"
    # Without a driver CUPTI reports 0.
    return str(version.value or "unknown")


def tools_of(proc: Path, processes: list[int]) -> list[str]:
    """Return a phrase for each process that has loaded CUPTI; unreadable ones are skipped."""
    found = []
    for process in processes:
        try:
            maps = (proc / str(process) / "maps").read_text(encoding="utf-8", errors="replace")
            words = (proc / str(process) / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if "libcupti" in maps:
            found.append(f"process {process} ({words.replace(chr(0), ' ').strip()}) uses CUPTI")
    return found


def _subscription(library: Path) -> Finding:
    """Subscribe to CUPTI and unsubscribe, as a recording does."""
    session = _core.Session(stack_depth=0, launch_blocks=False)
    session.start()
    try:
        require_no_sanitizer()
        tracer = _core.CuptiTracer(str(library), session)
        tracer.start()
        tracer.stop()
    except RuntimeError as error:
        remedy = "Do not run under another profiler, and unset CUDA_INJECTION64_PATH."
        return Finding("CUPTI use", "warning", f"not available: {error}", _MEMORY_ONLY, remedy)
    finally:
        session.stop()
    return Finding("CUPTI use", "ok", "available in this process")
