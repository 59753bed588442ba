"""Pages of the reference about public names: which names, on which page, from their docstrings."""

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import gpuviz

ROOT = Path(__file__).parents[1]
# The public names by page: title, first sentence, names.
PUBLIC_NAMES = {
    "recording": (
        "Recording a program",
        "A recorder, and what names the parts of a program in it.",
        ("record", "Recorder", "RecorderStatus", "range", "name_stream"),
    ),
    "recordings": (
        "Recordings",
        "Reading, analysing, comparing and merging what was recorded.",
        ("load", "Recording", "merge", "diff", "Diff", "leaks"),
    ),
    "allocator": (
        "The allocator",
        "The functions of `torch.cuda.memory` for gpuviz's allocator, in the running process.",
        (
            *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
            *("mem_get_info", "list_gpu_processes", "memory_stats", "memory_stats_as_nested_dict"),
            *("memory_summary", "memory_snapshot", "reset_peak_memory_stats"),
            *("reset_accumulated_memory_stats", "set_per_process_memory_fraction"),
            *("get_per_process_memory_fraction", "empty_cache", "set_allocator_settings"),
            *("get_allocator_settings", "record_stream", "MemPool", "use_mem_pool", "graph"),
            *("caching_allocator_alloc", "caching_allocator_delete", "malloc", "malloc_pinned"),
            *("empty_host_cache", "host_memory_stats", "host_memory_stats_as_nested_dict"),
            *("reset_peak_host_memory_stats", "reset_accumulated_host_memory_stats", "allocators"),
        ),
    ),
    "notebooks": (
        "Notebooks and clusters",
        "What is shown live, and who keeps memory alive.",
        ("dashboard", "holders", "release", "dask"),
    ),
    "simulation": (
        "Without a GPU",
        "A simulated GPU with gpuviz's own allocator, and replays of recordings.",
        ("SimulatedGPU", "replay"),
    ),
}
# What public functions and methods return, by module.
VALUES = {
    "gpuviz.analysis.peak": ("Peak",),
    "gpuviz.advice.finding": ("Finding",),
    "gpuviz.advice.evidence": ("Line", "Evidence"),
    "gpuviz.hazards.hazard": ("Hazard", "HazardOperation"),
    "gpuviz.analysis.overlap": ("Overlap", "DeviceOverlap", "StreamOverlap"),
    "gpuviz.analysis.steady_state": ("SteadyState",),
    "gpuviz.advice.replay.compensation": ("RecordingCost",),
    "gpuviz.analysis.fragmentation": ("Fragmentation",),
    "gpuviz.analysis.packing": ("Packing",),
    "gpuviz.analysis.host_memory": ("HostMemory",),
    "gpuviz.out_of_memory.failures": ("OutOfMemory",),
    "gpuviz.out_of_memory.verdict": ("FailedRequest",),
    "gpuviz.analysis.processes": ("Process",),
    "gpuviz.analysis.device_links": ("DeviceLink",),
    "gpuviz.ownership.held_memory": ("HeldMemory", "HeldBlock", "Holder", "Release"),
    "gpuviz.allocator.graph": ("Graph",),
    "gpuviz.dask.cluster_recording": ("ClusterRecording",),
    "gpuviz.simulation.stream": ("SimulatedStream", "SimulatedEvent", "SimulatedGraph"),
    "gpuviz.simulation.arrays": ("SimulatedArray", "SimulatedPinnedArray"),
}
# Members of public classes that serve other modules of gpuviz.
PLUMBING = {
    "Recording": (
        *("take_path", "of", "with_manifest", "with_note", "memory_columns", "device_or_first"),
        *("call_stacks", "of_checked"),
    ),
    "Recorder": ("end", "follow_statistics", "read_statistics", "statistics", "verdict"),
    "Diff": ("devices", "lines"),
    "SimulatedGPU": ("source", "tracer"),
    "SimulatedStream": (
        *("allocator", "belongs_to", "captured_addresses", "check_not_capturing"),
        *("is_capturing", "launch"),
    ),
    "HostMemory": ("as_device",),
}
# The allocator modules with functions of their own, beside the names above.
MODULES = {
    "allocators": ("cupy", "torch", "numba", "rmm", "cuda_core"),
}
_CODE = re.compile(r"^```(?:python|ipython)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def documented_names() -> set[str]:
    """Return the public names that the pages describe."""
    return {name for _, _, names in PUBLIC_NAMES.values() for name in names}


def example_pages() -> dict[str, list[Path]]:
    """Return the pages with code that uses each public name."""
    found: dict[str, list[Path]] = {name: [] for name in sorted(documented_names())}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        code = "\n".join(_CODE.findall(page.read_text(encoding="utf-8")))
        for name in set(re.findall(r"\bgpuviz\.(\w+)", code)) & found.keys():
            found[name].append(page)
    return found


def names_page(title: str, about: str, names: Iterable[str]) -> list[str]:
    """Return the parts of a page about public names."""
    parts = [f"# {title}", about]
    for name in names:
        value = getattr(gpuviz, name)
        parts.append(f"## gpuviz.{name}")
        if isinstance(value, ModuleType):
            parts += _module(name, value)
        elif inspect.isclass(value):
            parts.append(_class(f"gpuviz.{name}"))
        else:
            parts.append(_directive("autofunction", f"gpuviz.{name}"))
        parts.append(_examples(name))
    return parts


def values_page() -> list[str]:
    """Return the parts of the page about what public functions and methods return."""
    parts = ["# Returned objects", "What the functions and methods of this reference return."]
    for module, names in VALUES.items():
        for name in names:
            parts += [f"## {name}", _class(f"{module}.{name}")]
    return parts


def errors_page() -> list[str]:
    """Return the parts of the page about exceptions."""
    return ["# Exceptions", _directive("automodule", "gpuviz.errors", members="")]


def _directive(kind: str, name: str, **options: str) -> str:
    lines = [f".. {kind}:: {name}", *(f"   :{key}: {text}" for key, text in options.items())]
    return "\n".join(["```{eval-rst}", *lines, "```"])


def _class(path: str) -> str:
    options = {"members": "", "inherited-members": "object"}
    left_out = ", ".join(PLUMBING.get(path.rpartition(".")[2], ()))
    if left_out:
        options["exclude-members"] = left_out
    return _directive("autoclass", path, **options)


def _examples(name: str) -> str:
    pages = example_pages()[name]
    titles = [each.read_text(encoding="utf-8").partition("\n")[0].strip("# ") for each in pages]
    links = [
        f"[{title}](../../{page.relative_to(ROOT / 'docs').as_posix()})"
        for title, page in zip(titles, pages, strict=True)
    ]
    return f"Used in: {', '.join(links)}." if links else ""


def _module(name: str, module: ModuleType) -> Iterator[str]:
    yield _directive("automodule", module.__name__, members="", **{"ignore-module-all": ""})
    for part in MODULES.get(name, ()):
        yield f"### gpuviz.{name}.{part}"
        yield _directive("automodule", f"{module.__name__}.{part}", members="")
