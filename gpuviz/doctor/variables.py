"""Environment variables that affect recordings."""

from collections.abc import Iterator
from pathlib import Path

from gpuviz import _core
from gpuviz.allocator.settings import TORCH_VARIABLES
from gpuviz.doctor.finding import Finding, Level
from gpuviz.doctor.machine import Machine
from gpuviz.recorder.injection import NVTX_TOOL

_UNSET = "Unset it to see the program's normal behaviour."
# Meaning and remedy of each variable.
MEANINGS = {
    "CUDA_LAUNCH_BLOCKING": (
        "The host waits for each kernel: nothing overlaps, and waits appear too long.",
        _UNSET,
    ),
    "CUDA_VISIBLE_DEVICES": (
        "CUDA sees only these GPUs, numbered from 0 in this order.",
        "",
    ),
    "CUDA_DEVICE_MAX_CONNECTIONS": (
        "The number of hardware queues: streams that share a queue wait for each other.",
        _UNSET,
    ),
    "CUDA_CACHE_DISABLE": ("Every process compiles its kernels again.", _UNSET),
    "CUDA_INJECTION64_PATH": (
        "Every CUDA program loads a tool, which probably uses CUPTI; then streams are missing.",
        "Unset it, or run without that tool.",
    ),
    "CUDA_MPS_PIPE_DIRECTORY": ("Programs run as clients of MPS if its daemon is running.", ""),
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": (
        "Under MPS this process can use only part of the GPU.",
        _UNSET,
    ),
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": (
        "Under MPS this process can use only part of the memory.",
        _UNSET,
    ),
    "CUPY_GPU_MEMORY_LIMIT": (
        "A limit of CuPy's own pool, which gpuviz's allocator ignores.",
        "Use gpuviz.set_per_process_memory_fraction, or record with --observe.",
    ),
    "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": (
        "Each thread has its own default stream, and therefore its own cached memory.",
        "",
    ),
    "CUPY_ACCELERATORS": ("Selects the libraries for reductions, and therefore the kernels.", ""),
    "CUPY_TF32": ("Matrix products use TF32: different kernels, lower precision.", ""),
    "CUPY_CACHE_IN_MEMORY": ("Every process compiles CuPy's kernels again.", _UNSET),
}
_TOOLKITS = ("CUDA_PATH", "CUDA_HOME")
SETTINGS = "GPUVIZ_ALLOC_CONF"


def findings(machine: Machine) -> Iterator[Finding]:
    """Yield findings about the variables that are set."""
    environment = machine.environment
    for name, (meaning, remedy) in MEANINGS.items():
        if name in environment and not _is_off(name, environment[name]):
            level: Level = "warning" if remedy else "ok"
            yield Finding("environment", level, f"{name}={environment[name]}", meaning, remedy)
    yield from _settings(machine)
    yield from _tools(machine)
    others = sorted({name for name in environment if name.startswith("CUPY_")} - MEANINGS.keys())
    if others:
        meaning = "See CuPy's documentation."
        yield Finding("environment", "ok", ", ".join(others), meaning)


def _is_off(name: str, value: str) -> bool:
    # For CUDA_VISIBLE_DEVICES, "" means none and "0" the first GPU.
    return name != "CUDA_VISIBLE_DEVICES" and value in {"", "0"}


def _settings(machine: Machine) -> Iterator[Finding]:
    for name in TORCH_VARIABLES:
        if name in machine.environment:
            found = f"{name}={machine.environment[name]}"
            meaning = "For PyTorch only; gpuviz's allocator ignores it."
            yield Finding(
                "environment", "ok", found, meaning, f"{SETTINGS} takes the same settings."
            )
    text = machine.environment.get(SETTINGS)
    if text is None:
        return
    try:
        _core.AllocatorSettings.parse(text)
    except ValueError as error:
        meaning = "gpuviz's allocator cannot start with this value."
        remedy = "Correct it, unset it, or record with --observe."
        yield Finding("environment", "problem", f"{SETTINGS}={text}: {error}", meaning, remedy)
        return
    yield Finding("environment", "ok", f"{SETTINGS}={text}", "Settings of gpuviz's allocator.")


def _tools(machine: Machine) -> Iterator[Finding]:
    tool = machine.environment.get(NVTX_TOOL)
    if tool and tool != _core.__file__:
        meaning = "NVTX ranges are sent to that tool and not recorded."
        yield Finding("environment", "warning", f"{NVTX_TOOL}={tool}", meaning, "Unset it.")
    for name in _TOOLKITS:
        folder = machine.environment.get(name)
        if folder and not Path(folder).is_dir():
            meaning = "CuPy and gpuviz search for the CUDA libraries there."
            found = f"{name}={folder}, which does not exist"
            yield Finding("environment", "warning", found, meaning, "Correct it or unset it.")
