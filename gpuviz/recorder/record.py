"""`gpuviz.record`: composes a recorder from its options."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpuviz.errors import DeviceUnavailableError
from gpuviz.recorder.budget import share_of
from gpuviz.recorder.options import DEFAULT_MAX_EVENTS, check_max_events
from gpuviz.recorder.prevention import NO_PREVENTION, Prevention, RecordStream
from gpuviz.recorder.recorder import Recorder
from gpuviz.recorder.source import Source
from gpuviz.recorder.tracer import PausingTracer, TracerOptions

if TYPE_CHECKING:
    from gpuviz.simulation.gpu import SimulatedGPU

AllocatorMode = Literal["caching", "observe"]


def record(  # noqa: PLR0913 - the options are independent
    path: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    device: "SimulatedGPU | None" = None,
    allocator: AllocatorMode = "caching",
    streams: bool = True,
    stacks: bool = True,
    launch_sites: bool = True,
    launch_blocks: bool = True,
    host_samples: bool = True,
    budget: str | None = None,
    api_calls: bool = False,
    graph_nodes: bool = True,
    record_stream: RecordStream = "off",
    poison: bool = False,
    quarantine: int = 0,
    hazards: bool = False,
    forbid_default_stream: bool = False,
    max_events: int = DEFAULT_MAX_EVENTS,
) -> Recorder:
    """Return a recorder of GPU memory and streams: CuPy's, PyTorch's and other libraries'.

    Use it in a ``with`` block, or call `start`. Without CUPTI only memory is recorded, with a
    warning.

    Args:
        path: A new ``.gpuviz`` file, written while recording. Without a path, the newest
            ``max_events`` events are kept in memory.
        overwrite: Whether a file at ``path`` is replaced, when the recording ends.
        device: Record this simulated GPU instead of real ones.
        allocator: ``"caching"`` installs gpuviz's own allocator under CuPy; existing arrays stay
            valid and count as other memory. ``"observe"`` keeps the program's allocator (CuPy's
            MemoryPool, MemoryAsyncPool, RMM, any callable) and records what it does.
        streams: Whether to record the GPU activities of the process, of any library.
        stacks: Whether to record the Python call stacks of events and launches.
        launch_sites: Whether to record which call caused each activity.
        launch_blocks: Whether to record to which blocks of memory each launch received pointers.
        host_samples: Whether to sample what threads that launch do between their CUDA calls: the
            line that kept the GPU waiting, a garbage collection, the GIL. A thread of gpuviz looks
            at them a thousand times a second, and less often while nothing changes; they do not
            wait for it. It needs ``streams`` and ``stacks``.
        budget: The share of the program's time that recording streams may cost, such as ``"2%"``.
            They are then recorded in windows of a second and more, with pauses in between that
            follow from what the windows cost; memory is recorded all the time. What the GPU did
            in the pauses is unknown: nothing is concluded about them. By default, all of it is
            recorded. It needs ``streams`` and ``launch_sites``, and none of ``hazards``,
            ``forbid_default_stream``, ``record_stream`` and ``poison``.
        api_calls: Whether to record every CUDA driver call, not only launches, copies and
            synchronizations.
        graph_nodes: Whether to record the kernels of a CUDA graph one by one, or each launch as a
            whole.
        record_stream: ``"auto"`` delays the reuse of freed memory until the launches, copies and
            memsets on other streams that used it are done, as if the program had called
            `gpuviz.record_stream` after the last one. ``"report"`` only counts what that would
            delay (`gpuviz.Recording.delayed_frees`). Both need ``allocator="caching"``,
            ``streams``, ``launch_sites`` and ``launch_blocks``.
        poison: For debugging: whether to fill freed memory with 0xFF (NaN in floating-point
            numbers) on its stream, and to check when it is used again that nothing wrote to it
            (`gpuviz.Recording.writes_after_free`). It also protects the pages of pinned memory
            while a copy is pending, so that an access of the host is a hazard with its line. It
            needs the same.
        quarantine: For debugging: hold freed memory back until it has this many bytes, oldest
            first, or until the device has no other memory left. It needs
            ``allocator="caching"``.
        hazards: Whether to look for unordered operations on the same memory when the recording
            ends. They are stored in it (`gpuviz.Recording.hazards`), and a program that exits
            prints how many there are. It needs ``streams``, ``stacks``, ``launch_sites`` and
            ``launch_blocks``, which are on by default. While recording, it costs only what reading
            a part of the pinned memory of copies takes, to find what the host writes too early.
        forbid_default_stream: Whether to list the launches, copies and memsets on the legacy
            default stream (`gpuviz.Recording.default_stream_work`) in the report and when the
            program exits. It needs ``streams``, ``stacks`` and ``launch_sites``.
        max_events: How many events, at 64 bytes each, and how many activities are kept in memory.

    Raises:
        ValueError: An argument has none of these values, two contradict each other, or an option
            lacks what it needs.
        TypeError: ``device`` is not a `SimulatedGPU`.
        DeviceUnavailableError: There is no GPU or no usable driver, or an option needs CuPy, which
            is not installed.
    """
    if allocator not in {"caching", "observe"}:
        raise ValueError(f"allocator must be 'caching' or 'observe', got {allocator!r}")
    check_max_events(max_events)
    if device is not None and not hasattr(device, "tracer"):
        raise TypeError(
            f"device must be a gpuviz.SimulatedGPU, got {device!r}; omit it to record CuPy on all "
            "GPUs",
        )
    prevention = Prevention(record_stream, poison, quarantine)
    prevention.check(
        {
            "allocator='caching'": allocator == "caching",
            "streams=True": streams,
            "launch_sites=True": launch_sites,
            "launch_blocks=True": launch_blocks,
        }
    )
    given = {"streams": streams, "stacks": stacks, "launch_sites": launch_sites}
    if forbid_default_stream:
        _check_needs("forbid_default_stream", given)
    if hazards:
        _check_needs("hazards", {**given, "launch_blocks": launch_blocks})
    share = None if budget is None else share_of(budget)
    if share is not None:
        _check_needs("budget", {"streams": streams, "launch_sites": launch_sites})
        _check_sees_all(hazards=hazards, forbids=forbid_default_stream, prevention=prevention)
    options = TracerOptions(
        launch_sites=launch_sites,
        stacks=stacks,
        api_calls=api_calls,
        graph_nodes=graph_nodes,
        needs_arguments=prevention.needs_launches,
    )
    return Recorder(
        _source(device, allocator, prevention, stacks=stacks),
        None if path is None else Path(path).absolute(),
        overwrite=overwrite,
        stacks=stacks,
        max_events=max_events,
        tracer=_tracer(device, options) if streams else None,
        budget=share,
        launch_blocks=streams and launch_blocks,
        host_samples=streams and stacks and host_samples,
        prevention=prevention,
        hazards=hazards,
        forbid_default_stream=forbid_default_stream,
    )


def _check_needs(name: str, given: Mapping[str, bool]) -> None:
    missing = [f"{each}=True" for each, is_on in given.items() if not is_on]
    if missing:
        raise ValueError(f"{name}=True needs {' and '.join(missing)}")


def _check_sees_all(*, hazards: bool, forbids: bool, prevention: Prevention) -> None:
    asked = {
        "hazards": hazards,
        "forbid_default_stream": forbids,
        "record_stream or poison": prevention.needs_launches,
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise ValueError(f"{name} needs all launches, and budget leaves some out; omit one")


def _source(
    device: "SimulatedGPU | None",
    allocator: AllocatorMode,
    prevention: Prevention,
    *,
    stacks: bool,
) -> Source:
    if device is not None:
        if allocator != "caching":
            raise ValueError(
                "A simulated GPU always uses gpuviz's caching allocator; omit "
                f"allocator={allocator!r}",
            )
        return device.source(prevention)
    from gpuviz.frameworks import cupy
    from gpuviz.frameworks.other_allocators import WithOtherAllocators
    from gpuviz.frameworks.without_cupy import OtherLibraries, is_without_cupy

    if is_without_cupy():
        _check_has_cupy(prevention)
        only_observe = allocator == "observe"
        source: Source = OtherLibraries(stacks=stacks, only_observe=only_observe)
    elif allocator == "caching":
        source = cupy.CachingSource(stacks=stacks, prevention=prevention)
    else:
        source = cupy.ObservingSource(stacks=stacks)
    return WithOtherAllocators(source, stacks=stacks)


def _check_has_cupy(prevention: Prevention) -> None:
    if prevention != NO_PREVENTION:
        raise DeviceUnavailableError(
            "record_stream, poison and quarantine change how CuPy allocates, and CuPy is not "
            "installed."
        )


def _tracer(device: "SimulatedGPU | None", options: TracerOptions) -> PausingTracer:
    if device is not None:
        return device.tracer(options)
    from gpuviz.frameworks import cupy, without_cupy

    if without_cupy.is_without_cupy():
        return without_cupy.tracing(options)
    return cupy.tracing(options)
