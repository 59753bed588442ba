"""`gpuviz.record`: composes a recorder from its options."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpuviz.recorder.recorder import DEFAULT_MAX_EVENTS, Recorder, check_max_events
from gpuviz.recorder.tracer import TracerOptions

if TYPE_CHECKING:
    from gpuviz.recorder.source import Source
    from gpuviz.recorder.tracer import Tracer
    from gpuviz.simulation.gpu import SimulatedGPU

AllocatorMode = Literal["caching", "observe"]


def record(  # noqa: PLR0913 - the options are independent
    path: str | os.PathLike[str] | None = None,
    *,
    device: "SimulatedGPU | None" = None,
    allocator: AllocatorMode = "caching",
    streams: bool = True,
    stacks: bool = True,
    launch_sites: bool = True,
    launch_blocks: bool = True,
    api_calls: bool = False,
    graph_nodes: bool = True,
    max_events: int = DEFAULT_MAX_EVENTS,
) -> Recorder:
    """Return a recorder of CuPy's GPU memory and streams.

    Use it in a ``with`` block, or call `start`. Without CUPTI only memory is recorded, with a
    warning.

    Args:
        path: A new ``.gpuviz`` file, written while recording. Without a path, the newest
            ``max_events`` events are kept in memory.
        device: Record this simulated GPU instead of CuPy.
        allocator: ``"caching"`` installs gpuviz's own allocator under CuPy; existing arrays stay
            valid and count as other memory. ``"observe"`` keeps the program's allocator (CuPy's
            MemoryPool, MemoryAsyncPool, RMM, any callable) and records what it does.
        streams: Whether to record the GPU activities of the process, of any library.
        stacks: Whether to record the Python call stacks of events and launches.
        launch_sites: Whether to record which call caused each activity.
        launch_blocks: Whether to record to which blocks of memory each launch received pointers.
        api_calls: Whether to record every CUDA driver call, not only launches, copies and
            synchronizations.
        graph_nodes: Whether to record the kernels of a CUDA graph one by one, or each launch as a
            whole.
        max_events: How many events, at 64 bytes each, and how many activities are kept in memory.

    Raises:
        ValueError: An argument has none of these values.
        TypeError: ``device`` is not a `SimulatedGPU`.
        DeviceUnavailableError: CuPy is not installed.
    """
    if allocator not in {"caching", "observe"}:
        raise ValueError(f"allocator must be 'caching' or 'observe', got {allocator!r}")
    check_max_events(max_events)
    if device is not None and not hasattr(device, "tracer"):
        raise TypeError(
            f"device must be a gpuviz.SimulatedGPU, got {device!r}; omit it to record CuPy on all "
            "GPUs",
        )
    options = TracerOptions(
        launch_sites=launch_sites,
        stacks=stacks,
        api_calls=api_calls,
        graph_nodes=graph_nodes,
    )
    return Recorder(
        _source(device, allocator, stacks=stacks),
        None if path is None else Path(path).absolute(),
        stacks=stacks,
        max_events=max_events,
        tracer=_tracer(device, options) if streams else None,
        launch_blocks=streams and launch_blocks,
    )


def _source(device: "SimulatedGPU | None", allocator: AllocatorMode, *, stacks: bool) -> "Source":
    if device is not None:
        if allocator != "caching":
            raise ValueError(
                "A simulated GPU always uses gpuviz's caching allocator; omit "
                f"allocator={allocator!r}",
            )
        return device.source()
    from gpuviz.frameworks import cupy

    if allocator == "caching":
        return cupy.CachingSource(stacks=stacks)
    return cupy.ObservingSource(stacks=stacks)


def _tracer(device: "SimulatedGPU | None", options: TracerOptions) -> "Tracer":
    if device is not None:
        return device.tracer(options)
    from gpuviz.frameworks import cupy

    return cupy.tracing(options)
