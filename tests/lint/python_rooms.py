"""The rooms of the package in their order, and the room of each file."""

from functools import cache
from pathlib import Path

from tests.lint.source_files import PACKAGE

# The rooms in their order: each imports only those before it. A single module has its own place
# where rooms before its own need it.
PYTHON = (
    "terminal",
    "messages",
    "errors",
    "installation",
    "quantities",
    # What a recording is, and its files.
    "data",
    "recorder.status",
    "formats",
    # What follows from it.
    "analysis",
    "merging",
    "exports",
    # What gpuviz says about it.
    "hazards",
    "advice.evidence",
    "advice.rule",
    "advice.source",
    "advice.replay",
    "advice.finding",
    "advice.scale",
    "advice.judged",
    "advice.host_lines",
    "advice.arrays",
    "advice.kernels",
    "advice.host",
    "advice.waits",
    "advice.fusion",
    "advice.precision",
    "advice.reductions",
    "advice.training",
    "advice.needless",
    "advice.reserved",
    "advice.rules",
    "advice",
    "out_of_memory",
    "conclusions",
    "comparison",
    "recording",
    # The process that is recorded.
    "commands.startup",
    "recorder.nvml",
    "recorder.source",
    "recorder.tracer",
    "recorder.cupti_library",
    "recorder.calibration",
    "recorder.cupti",
    "recorder.prevention",
    "recorder.samples",
    "recorder.stream_ranges",
    "recorder.ranges",
    "allocator.driver",
    "frameworks.cupy_current",
    "allocator",
    "frameworks",
    "allocators",
    "simulation",
    # Where it is shown.
    "figures",
    "present",
    "report",
    "recording_diff",
    "ownership",
    "recorder",
    "simulation.replay",
    "notebook",
    "server",
    "doctor",
    "dask",
    "testing",
    "commands",
    "__main__",
)


# Imports of later rooms, inside functions: values show themselves in notebooks and as pages,
# and the startup hook begins the recording.
LATER = {
    "commands.startup.sitecustomize": {"commands.recorded_run"},
    "advice.finding": {"present.conclusions_html", "present.text"},
    "recording": {"notebook.values", "report.page"},
}


@cache
def room_of(module: str) -> str:
    """Return the room of a module, given without its leading ``gpuviz.``."""
    return max(
        (name for name in PYTHON if f"{module}.".startswith(f"{name}.")), key=len, default=""
    )


@cache
def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def layer_of(path: Path) -> str:
    return room_of(module_of(path))
