"""torch.cuda's memory functions over the caching allocator of this process.

Each device has one `gpuviz._core.CachingAllocator`, created at first use and kept until the process
ends, like its arrays. Settings: ``GPUVIZ_ALLOC_CONF``, then `set_allocator_settings`. With
``GPUVIZ_NVTX_MEMORY=1`` the allocators announce their blocks to compute-sanitizer.
"""

import gc
import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from gpuviz import _core
from gpuviz.allocator.arguments import flag, integer, text
from gpuviz.allocator.driver import cuda_driver, device_count
from gpuviz.allocator.nested_stats import nested_stats
from gpuviz.allocator.settings import settings_text
from gpuviz.allocator.summary import memory_summary_table
from gpuviz.frameworks.cupy_current import current_device

SETTINGS_VARIABLE = "GPUVIZ_ALLOC_CONF"
NVTX_MEMORY_VARIABLE = "GPUVIZ_NVTX_MEMORY"

_NO_TOOL = (
    f"{NVTX_MEMORY_VARIABLE} has no effect: run the program under compute-sanitizer, as in "
    "`compute-sanitizer --tool memcheck python program.py`."
)


class _Process:
    """The allocators of this process, by device."""

    def __init__(self) -> None:
        self.allocators: dict[int, _core.CachingAllocator] = {}
        self.host_allocator: _core.HostAllocator | None = None
        self.on_new_host: Callable[[_core.HostAllocator], None] | None = None
        self.on_new: Callable[[int, _core.CachingAllocator], None] | None = None
        self.empty_cache: Callable[[_core.CachingAllocator], None] | None = None
        self.settings: _core.AllocatorSettings | None = None

    def current_settings(self) -> _core.AllocatorSettings:
        if self.settings is None:
            given = os.environ.get(SETTINGS_VARIABLE, "")
            try:
                self.settings = _core.AllocatorSettings.parse(given)
            except ValueError as error:
                raise ValueError(f"{SETTINGS_VARIABLE}={given!r}: {error}") from None
        return self.settings


_process = _Process()


def _check_exists(device: int, count: int | None) -> None:
    if count is not None and device >= count and device not in _process.allocators:
        there_are = "there is no GPU" if count == 0 else f"the GPUs are 0 to {count - 1}"
        raise ValueError(f"device {device} does not exist; {there_are}")


def _open_device(device: int) -> _core.Device:
    driver = cuda_driver()
    _check_exists(device, driver.device_count())
    return _core.CudaDevice(driver, device)


def caching_allocator(device: int) -> _core.CachingAllocator:
    """Return the caching allocator of a device; the first call creates it.

    Raises:
        DeviceUnavailableError: A usable driver is missing.
        ValueError: The device does not exist, or ``GPUVIZ_ALLOC_CONF`` has an unknown key or a bad
            value.
    """
    allocator = _process.allocators.get(device)
    if allocator is None:
        allocator = _core.CachingAllocator(_open_device(device), _process.current_settings())
        allocator.set_last_resort(partial(_collect_garbage, allocator))
        if os.environ.get(NVTX_MEMORY_VARIABLE, "0") not in ("", "0"):
            _announce(allocator)
        _process.allocators[device] = allocator
        if _process.host_allocator is not None:
            _process.host_allocator.add_device(allocator.device)
        if _process.on_new is not None:
            _process.on_new(device, allocator)
    return allocator


def _announce(allocator: _core.CachingAllocator) -> None:
    if not _core.announce_memory(allocator):
        warnings.warn(_NO_TOOL, RuntimeWarning, stacklevel=3)


def _collect_garbage(allocator: _core.CachingAllocator) -> bool:
    """Free arrays in reference cycles, as CuPy's own pool does before it fails."""
    before = allocator.memory_stats()["active.all.freed"]
    gc.collect()
    return allocator.memory_stats()["active.all.freed"] != before


def caching_allocators() -> dict[int, _core.CachingAllocator]:
    """Return the existing caching allocators, by device."""
    return dict(_process.allocators)


def host_allocator(device: int) -> _core.HostAllocator:
    """Return the allocator of pinned memory for all devices; the first call creates it.

    Args:
        device: The device that is asked for memory, if this is the first call.

    Raises:
        DeviceUnavailableError: A usable driver is missing.
        ValueError: As for `caching_allocator`.
    """
    if _process.host_allocator is None:
        new = _core.HostAllocator(caching_allocator(device).device, _process.current_settings())
        for allocator in caching_allocators().values():
            new.add_device(allocator.device)
        _process.host_allocator = new
        if _process.on_new_host is not None:
            _process.on_new_host(new)
    return _process.host_allocator


def existing_host_allocator() -> _core.HostAllocator | None:
    """Return the allocator of pinned memory if there is one."""
    return _process.host_allocator


def set_new_host_allocator_hook(hook: Callable[[_core.HostAllocator], None] | None) -> None:
    """Call ``hook(allocator)`` for the allocator of pinned memory, now or when it is created."""
    _process.on_new_host = hook
    if hook is not None and _process.host_allocator is not None:
        hook(_process.host_allocator)


def set_new_allocator_hook(hook: Callable[[int, _core.CachingAllocator], None] | None) -> None:
    """Call ``hook(device, allocator)`` for every existing and every new allocator."""
    _process.on_new = hook
    if hook is not None:
        for device, allocator in caching_allocators().items():
            hook(device, allocator)


def chosen_device(device: int | None) -> int:
    """Return ``device``, or CuPy's current device for None.

    Raises:
        DeviceUnavailableError: CuPy or a usable driver is missing.
        TypeError: ``device`` is neither an integer nor None.
        ValueError: ``device`` is negative.
    """
    if device is not None:
        return _ordinal(device)
    return current_device()


def _ordinal(device: object) -> int:
    return integer("device", device, "the ordinal of a GPU or None")


def _reported_device(device: int | None) -> int:
    """Return the same, but 0 if nothing has been allocated on any device.

    Raises:
        TypeError: ``device`` is neither an integer nor None.
        ValueError: There is no such device.
    """
    if device is None:
        return chosen_device(None) if _process.allocators else 0
    ordinal = _ordinal(device)
    if ordinal not in _process.allocators:
        _check_exists(ordinal, device_count())
    return ordinal


def set_empty_cache(call: Callable[[_core.CachingAllocator], None] | None) -> None:
    """Replace the call that `empty_cache` makes; None restores the allocator's own."""
    _process.empty_cache = call


def _existing(device: int | None) -> _core.CachingAllocator | None:
    return _process.allocators.get(_reported_device(device))


def memory_stats(device: int | None = None) -> dict[str, int]:
    """Return the statistics of a device's allocator under the keys of ``torch.cuda.memory_stats``.

    Bytes and counts, as ``<metric>.<all|small_pool|large_pool>.<current|peak|allocated|freed>`` and
    single counters. Empty before the first allocation, like torch's.

    Args:
        device: Its ordinal; CuPy's current device by default.

    Raises:
        TypeError: ``device`` is neither an integer nor None; this and all functions of a device.
        ValueError: There is no such device.
    """
    allocator = _existing(device)
    return {} if allocator is None else allocator.memory_stats()


def memory_stats_as_nested_dict(device: int | None = None) -> dict[str, Any]:
    """Return `memory_stats` with a dictionary for each part of a key: ``["segment"]["all"]...``."""
    return nested_stats(memory_stats(device))


def memory_summary(device: int | None = None, *, abbreviated: bool = False) -> str:
    """Return `memory_stats` as the table that ``torch.cuda.memory_summary`` prints.

    Args:
        device: Its ordinal; CuPy's current device by default.
        abbreviated: Leave out the lines for the small and the large pool.
    """
    ordinal = _reported_device(device)
    flag("abbreviated", abbreviated)
    return memory_summary_table(memory_stats(ordinal), ordinal, abbreviated=abbreviated)


def memory_allocated(device: int | None = None) -> int:
    """Return the bytes that live arrays occupy, rounded as the allocator rounds."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: int | None = None) -> int:
    """Return the peak of `memory_allocated` since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: int | None = None) -> int:
    """Return the bytes that the allocator holds from the device, in use or cached."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: int | None = None) -> int:
    """Return the peak of `memory_reserved` since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def memory_snapshot(device: int | None = None) -> list[dict[str, Any]]:
    """Return the segments and their blocks as they are now, in the shape of torch's snapshots.

    Args:
        device: Only this one; all devices by default.
    """
    allocators = _process.allocators
    chosen = sorted(allocators) if device is None else [_reported_device(device)]
    return [
        segment for d in chosen if d in allocators for segment in allocators[d].memory_snapshot()
    ]


def reset_peak_memory_stats(device: int | None = None) -> None:
    """Reset every peak to the current value."""
    allocator = _existing(device)
    if allocator is not None:
        allocator.reset_peak_stats()


def reset_accumulated_memory_stats(device: int | None = None) -> None:
    """Set every ``allocated`` and ``freed`` total and every counter to 0."""
    allocator = _existing(device)
    if allocator is not None:
        allocator.reset_accumulated_stats()


def empty_cache() -> None:
    """Release all cached memory that no array uses to the devices; waits for pending frees."""
    for device in caching_allocators():
        empty_cache_of(device)


def empty_cache_of(device: int) -> None:
    """Release the cached memory of one device's allocator, if it has one, as `empty_cache` does."""
    allocator = _process.allocators.get(device)
    if allocator is not None:
        (_process.empty_cache or _core.CachingAllocator.empty_cache)(allocator)


def mem_get_info(device: int | None = None) -> tuple[int, int]:
    """Return the free and the total memory of a device in bytes, other processes included.

    Raises:
        DeviceUnavailableError: A usable driver is missing.
    """
    return caching_allocator(chosen_device(device)).device.memory_info()


def list_gpu_processes(device: int | None = None) -> str:
    """Return the processes that use a device's memory as text, one line each.

    Raises:
        DeviceUnavailableError: A usable driver is missing.
    """
    ordinal = chosen_device(device)
    lines = [
        f"process {process:>10} uses {used / (1 << 20):>10.1f} MiB of GPU memory"
        for process, used in caching_allocator(ordinal).device.processes()
    ]
    return "\n".join([f"GPU:{ordinal}", *(lines or ["no processes are running"])])


def set_per_process_memory_fraction(fraction: float, device: int | None = None) -> None:
    """Limit the allocator to a fraction of the device's memory; 1.0 removes the limit.

    Raises:
        TypeError: ``fraction`` is not a float.
        ValueError: ``fraction`` is not within [0, 1].
    """
    if not isinstance(fraction, float):
        raise TypeError(f"fraction must be a float, got {type(fraction).__name__}")
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be within [0, 1], got {fraction}")
    caching_allocator(chosen_device(device)).set_memory_fraction(fraction)


def get_per_process_memory_fraction(device: int | None = None) -> float:
    """Return the fraction set by `set_per_process_memory_fraction`, 1.0 without one."""
    allocator = _existing(device)
    return 1.0 if allocator is None else allocator.memory_fraction


def set_allocator_settings(settings: str) -> None:
    """Change the allocator's settings for all devices.

    Args:
        settings: ``key:value,...`` as in ``PYTORCH_CUDA_ALLOC_CONF``, for example
            ``"expandable_segments:True"``. As in torch, options that are not named keep their
            values, except ``max_split_size_mb``, ``max_non_split_rounding_mb``,
            ``roundup_power2_divisions`` and ``garbage_collection_threshold``, which return to their
            defaults.

    Raises:
        TypeError: ``settings`` is not a str.
        ValueError: An unknown key or a bad value; the message names it.
    """
    parsed = _process.current_settings().updated(text("settings", settings))
    _process.settings = parsed
    for allocator in caching_allocators().values():
        allocator.apply_settings(parsed)
    if _process.host_allocator is not None:
        _process.host_allocator.apply_settings(parsed)


def get_allocator_settings() -> str:
    """Return the settings that differ from their defaults, as text."""
    return settings_text(_process.current_settings())
