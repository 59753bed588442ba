"""Environment variables that affect recordings."""

from collections.abc import Iterator
from pathlib import Path

from gpuviz import _core
from gpuviz.doctor.finding import Finding, Level
from gpuviz.doctor.machine import Machine
from gpuviz.recorder.nvtx import VARIABLE as NVTX_TOOL

_UNSET = "Unset it to see the program as it is."
# What a variable means if it is set, and the way out.
_MEANINGS = {
    "CUDA_LAUNCH_BLOCKING": (
        "The host waits for each kernel: nothing overlaps, and all waits look long.",
        _UNSET,
    ),
    "CUDA_VISIBLE_DEVICES": (
        "CUDA sees these GPUs only, and numbers them from 0 in this order.",
        "",
    ),
    "CUDA_DEVICE_MAX_CONNECTIONS": (
        "The number of queues to the GPU: with fewer than streams, streams wait for each other.",
        _UNSET,
    ),
    "CUDA_CACHE_DISABLE": ("Kernels are compiled again in each process.", _UNSET),
    "CUDA_INJECTION64_PATH": (
        "A tool is loaded into every CUDA program, and probably has CUPTI: then no streams.",
        "Unset it, or do not run under that tool.",
    ),
    "CUDA_MPS_PIPE_DIRECTORY": ("Programs run as clients of MPS, if its daemon runs.", ""),
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": (
        "Under MPS this process gets a part of the GPU only.",
        _UNSET,
    ),
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": (
        "Under MPS this process gets a part of the memory only: it may be out of memory early.",
        _UNSET,
    ),
    "CUPY_GPU_MEMORY_LIMIT": (
        "A limit of CuPy's own pool, which gpuviz's allocator does not know.",
        "Use gpuviz.set_per_process_memory_fraction, or record with --observe.",
    ),
    "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": (
        "Each thread has a default stream of its own, with memory of its own.",
        "",
    ),
    "CUPY_ACCELERATORS": ("Chooses which libraries run reductions and sums: other kernels.", ""),
    "CUPY_TF32": ("Matrix products use TF32: other kernels, fewer digits.", ""),
    "CUPY_CACHE_IN_MEMORY": ("CuPy compiles its kernels again in each process.", _UNSET),
}
_OF_TORCH = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_TOOLKITS = ("CUDA_PATH", "CUDA_HOME")
SETTINGS = "GPUVIZ_ALLOC_CONF"


def findings(machine: Machine) -> Iterator[Finding]:
    """Yield the variables that are set and matter."""
    environment = machine.environment
    for name, (meaning, remedy) in _MEANINGS.items():
        if name in environment and not _is_off(name, environment[name]):
            level: Level = "warning" if remedy else "ok"
            yield Finding("environment", level, f"{name}={environment[name]}", meaning, remedy)
    yield from _settings(machine)
    yield from _tools(machine)
    others = sorted({name for name in environment if name.startswith("CUPY_")} - _MEANINGS.keys())
    if others:
        meaning = "CuPy's documentation says what they change."
        yield Finding("environment", "ok", ", ".join(others), meaning)


def _is_off(name: str, value: str) -> bool:
    # Which GPUs there are is told by a list: none, or the first one.
    return name != "CUDA_VISIBLE_DEVICES" and value in {"", "0"}


def _settings(machine: Machine) -> Iterator[Finding]:
    for name in _OF_TORCH:
        if name in machine.environment:
            found = f"{name}={machine.environment[name]}"
            meaning = "For PyTorch only; gpuviz's allocator does not read it."
            yield Finding("environment", "ok", found, meaning, f"{SETTINGS} takes the same words.")
    text = machine.environment.get(SETTINGS)
    if text is None:
        return
    try:
        _core.AllocatorSettings.parse(text)
    except ValueError as error:
        meaning = "gpuviz's allocator does not start with it."
        remedy = "Correct it, unset it, or record with --observe."
        yield Finding("environment", "problem", f"{SETTINGS}={text}: {error}", meaning, remedy)
        return
    yield Finding("environment", "ok", f"{SETTINGS}={text}", "Settings of gpuviz's allocator.")


def _tools(machine: Machine) -> Iterator[Finding]:
    tool = machine.environment.get(NVTX_TOOL)
    if tool and tool != _core.__file__:
        meaning = "NVTX ranges go to that tool, and are not recorded."
        yield Finding("environment", "warning", f"{NVTX_TOOL}={tool}", meaning, "Unset it.")
    for name in _TOOLKITS:
        folder = machine.environment.get(name)
        if folder and not Path(folder).is_dir():
            meaning = "CuPy and gpuviz look there for CUDA's libraries and find nothing."
            found = f"{name}={folder}, no such folder"
            yield Finding("environment", "warning", found, meaning, "Correct it or unset it.")
