"""All checks of a machine, in order."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from gpuviz.allocator.driver import driver_version
from gpuviz.doctor import (
    attempt,
    cupy_build,
    driver,
    gpu_use,
    jupyter,
    permissions,
    profiling,
    variables,
)
from gpuviz.doctor.finding import Finding
from gpuviz.doctor.machine import Machine
from gpuviz.recorder import nvml


def examine(
    machine: Machine, *, use_gpu: bool = False, calibrate: bool = False
) -> Iterator[Finding]:
    """Yield all findings about a machine's ability to record.

    Args:
        machine: The machine to check.
        use_gpu: Whether to create a CUDA context and make a short recording.
        calibrate: Whether to do so, and to yield what recording costs a call.
    """
    yield _platform()
    served = driver_version()
    yield from driver.findings(machine)
    packages = cupy_build.installed()
    runtime = cupy_build.runtime_version()
    yield from cupy_build.findings(served, packages, runtime)
    if runtime:
        yield cupy_build.compiler(served)
    yield from permissions.findings(machine)
    gpus = nvml.gpus()
    if runtime or served:
        users = [] if isinstance(gpus, str) else [pid for gpu in gpus for pid, _ in gpu.processes]
        tools = profiling.tools_of(machine.root / "proc", users)
        yield from profiling.findings(runtime or served, has_driver=bool(served), tools=tools)
    yield from gpu_use.findings(machine, gpus, has_driver=bool(served))
    yield from variables.findings(machine)
    yield from jupyter.findings(machine, jupyter.installed())
    if use_gpu or calibrate:
        yield from attempt.findings(calibrate=calibrate)


def _platform() -> Finding:
    found = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    found += f" in {Path(sys.prefix)}"
    if sys.platform != "linux":
        return Finding("platform", "problem", found, "gpuviz supports Linux only.")
    return Finding("platform", "ok", found)
