"""Driver and GPUs."""

import re
from collections.abc import Iterator

from gpuviz import _core
from gpuviz.doctor.finding import Finding
from gpuviz.doctor.machine import Machine

_WITHOUT = (
    "GPU programs cannot be recorded on this machine. Loading recordings, reports, "
    "gpuviz.SimulatedGPU and `gpuviz demo` work."
)
_CONTAINER = (
    "The kernel module is loaded, but this environment lacks the driver's libraries: start the "
    "container with --gpus all, or install the NVIDIA Container Toolkit."
)
_INSTALL = "Install NVIDIA's driver for CUDA 12 or newer, or use a machine with a GPU."


def cuda_version(number: int) -> str:
    """Return the text of a CUDA version, given as 1000 * major + 10 * minor."""
    return f"{number // 1000}.{number % 1000 // 10}"


def findings(machine: Machine) -> Iterator[Finding]:
    """Yield findings about the CUDA driver; creates no context."""
    kernel = kernel_module_version(machine)
    try:
        driver = _core.CudaDriver.open()
        names = [driver.device_name(ordinal) for ordinal in range(driver.device_count())]
    except _core.DeviceError as error:
        found = f"{error} The kernel module is {kernel}." if kernel else str(error)
        yield Finding("driver", "problem", found, _WITHOUT, _remedy(machine, kernel))
        return
    module = f", kernel module {kernel}" if kernel else ""
    yield Finding("driver", "ok", f"for CUDA {cuda_version(driver.version)}{module}")
    gpus = ", ".join(f"{ordinal}: {name}" for ordinal, name in enumerate(names))
    if names:
        yield Finding("GPUs", "ok", gpus)
    else:
        yield Finding("GPUs", "problem", "none", _WITHOUT, _remedy(machine, kernel))


def kernel_module_version(machine: Machine) -> str:
    """Return the version of NVIDIA's kernel module, as in 580.95.05; empty if it is not loaded."""
    match = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", machine.text("proc/driver/nvidia/version"))
    return "" if match is None else match[1]


def _remedy(machine: Machine, kernel: str) -> str:
    visible = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and not visible.strip("-1 "):
        return f"CUDA_VISIBLE_DEVICES={visible} hides all GPUs: unset it."
    return _CONTAINER if kernel else _INSTALL
