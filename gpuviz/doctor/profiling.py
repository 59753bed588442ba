"""Availability of CUPTI."""

import ctypes
from collections.abc import Iterator
from pathlib import Path

from gpuviz import _core
from gpuviz.doctor.finding import Finding
from gpuviz.recorder.cupti import find_cupti

_MEMORY_ONLY = "Only memory is recorded, no kernels, copies and waits."


def findings(runtime: int, *, has_driver: bool, tools: list[str]) -> Iterator[Finding]:
    """Yield whether CUPTI is there and free in this process; makes no context.

    Args:
        runtime: The version of the CUDA runtime, whose CUPTI is needed.
        has_driver: Whether the driver can be used.
        tools: What `tools_of` says of the processes on the GPUs.
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
        meaning = "CUPTI serves one tool in each process: they are in nobody else's way."
        yield Finding("other tools", "ok", "; ".join(tools), meaning)


def api_version(library: Path) -> str:
    """Return the version number that a CUPTI gives itself."""
    version = ctypes.c_uint32()
    try:
        ctypes.CDLL(str(library)).cuptiGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return "unknown"
    # Without a driver CUPTI does not tell.
    return str(version.value or "unknown")


def tools_of(proc: Path, processes: list[int]) -> list[str]:
    """Return which processes have loaded CUPTI, a phrase each; those of others do not tell."""
    found = []
    for process in processes:
        try:
            maps = (proc / str(process) / "maps").read_text(encoding="utf-8", errors="replace")
            words = (proc / str(process) / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if "libcupti" in maps:
            found.append(f"process {process} ({words.replace(chr(0), ' ').strip()}) has CUPTI")
    return found


def _subscription(library: Path) -> Finding:
    """Take CUPTI and give it back, as a recording does."""
    session = _core.Session(stack_depth=0, launch_blocks=False)
    session.start()
    try:
        tracer = _core.CuptiTracer(str(library), session)
        tracer.start()
        tracer.stop()
    except RuntimeError as error:
        remedy = "Do not run under another profiler; CUDA_INJECTION64_PATH names what loads one."
        return Finding("CUPTI is", "warning", f"not free: {error}", _MEMORY_ONLY, remedy)
    finally:
        session.stop()
    return Finding("CUPTI is", "ok", "free in this process")
