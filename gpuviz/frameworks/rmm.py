"""RMM, and with it cuDF and cuML: on gpuviz's caching allocator, or observed.

The only file that imports rmm.
"""

import os
from typing import Any

from gpuviz import _core
from gpuviz.allocator.driver import cuda_driver
from gpuviz.frameworks.shared_pool import explained, import_library, shared_pool
from gpuviz.quantities import format_counted


class _Process:
    """gpuviz's resources by device, and those that they have replaced."""

    ours: dict[int, Any] = {}  # noqa: RUF012 - one for the process
    previous: dict[int, Any] = {}  # noqa: RUF012
    observer: _core.LibraryObserver | None = None
    observed: dict[int, "_Observed"] = {}  # noqa: RUF012 - during a recording, by device
    in_use: "dict[_Observed, Any]" = {}  # noqa: RUF012 - resources of blocks that are alive
    session: _core.Session | None = None
    stacks = True


REPLACED = (
    "The program replaced RMM's memory resource during the recording; what the new one allocates "
    "by itself is missing."
)
# RMM's own functions use what these count or write, and look for them in the place of ours.
_SOUGHT_BY_RMM = ("StatisticsResourceAdaptor", "LoggingResourceAdaptor")


def install() -> None:
    """Let RMM allocate from gpuviz's caching allocator on all devices.

    Buffers that exist keep their memory resource. It does nothing the second time.

    Raises:
        DeviceUnavailableError: RMM or a usable driver is missing.
    """
    resources = _resources()
    for device in range(cuda_driver().device_count()):
        current = resources.get_per_device_resource(device)
        if current is _Process.ours.get(device):
            continue
        if device not in _Process.ours:
            _Process.ours[device] = _resource(resources, device)
        _Process.previous[device] = current
        resources.set_per_device_resource(device, _Process.ours[device])


def uninstall() -> None:
    """Restore the memory resources of the devices, where they are gpuviz's."""
    if not _Process.previous:
        return
    resources = _resources()
    for device, previous in _Process.previous.items():
        if resources.get_per_device_resource(device) is _Process.ours[device]:
            resources.set_per_device_resource(device, previous)
    _Process.previous.clear()


def is_installed() -> bool:
    """Return whether RMM allocates from gpuviz's caching allocator on all devices."""
    return bool(_Process.previous) and all(
        _resources().get_per_device_resource(device) is _Process.ours.get(device)
        for device in range(cuda_driver().device_count())
    )


def programs_choice() -> str:
    """Return the name of the memory resource that the program has set; empty without one."""
    resources = _resources()
    for device in range(cuda_driver().device_count()):
        current = resources.get_per_device_resource(device)
        if _is_chosen(resources, current):
            return type(current).__qualname__
    return ""


class _Observed:
    """A memory resource of the program, whose allocations and frees are recorded.

    Args:
        resources: The module ``rmm.mr``.
        device: The ordinal.
        program: The program's resource.
    """

    def __init__(self, resources: Any, device: int, program: Any) -> None:
        self.program = program
        self.missed = 0
        self._device = device
        self._observer = _observer()
        self._live: set[int] = set()
        self._resources = resources

    def put_in_place(self) -> None:
        """Let RMM allocate from a resource that calls the program's."""
        ours = self._resources.CallbackMemoryResource(self._allocate, self._deallocate)
        _Process.in_use[self] = ours
        self._resources.set_per_device_resource(self._device, ours)

    def put_back(self) -> bool:
        """Restore the program's resource, unless the program has replaced ours meanwhile.

        May be repeated; returns whether the program's resource is in place.
        """
        current = self._resources.get_per_device_resource(self._device)
        is_ours = current is _Process.in_use.get(self)
        if is_ours:
            self._resources.set_per_device_resource(self._device, self.program)
        return is_ours or current is self.program

    def _allocate(self, size: int, stream: Any) -> int:
        address: int = self.program.allocate(size, stream)
        self._live.add(address)
        try:
            self._observer.allocated(self._device, address, size, stream)
        except Exception:  # noqa: BLE001 - the program must continue
            self.missed += 1
        return address

    def _deallocate(self, address: int, size: int, stream: Any) -> None:
        # Recorded before it happens, because another thread may get the same address at once.
        self._observer.freed(self._device, address)
        self._live.discard(address)
        self.program.deallocate(address, size, stream)
        self.release_if_idle()

    def release_if_idle(self) -> None:
        """Drop the reference to our resource, and so to the program's, after the last free.

        Buffers that only C++ owns call the functions of ours without owning them.
        """
        if not self._live and _Process.observed.get(self._device) is not self:
            _Process.in_use.pop(self, None)


def observe() -> tuple[str, ...]:
    """Record what the program's memory resources allocate and free, until `stop_observing`.

    Returns:
        Sentences about what is unknown.
    """
    resources = _resources()
    notes = []
    for device in range(cuda_driver().device_count()):
        current = resources.get_per_device_resource(device)
        name = type(current).__qualname__
        if current is _Process.ours.get(device):
            continue
        if name in _SOUGHT_BY_RMM:
            notes.append(f"RMM keeps the program's {name}, whose memory is not recorded.")
            continue
        observed = _Process.observed[device] = _Observed(resources, device, current)
        observed.put_in_place()
        if _is_chosen(resources, current):
            notes.append(
                f"RMM keeps the program's {name}: its allocations are recorded, but not the "
                "memory that it reserves."
            )
    return tuple(notes)


def stop_observing() -> tuple[str, ...]:
    """Restore the program's memory resources; memory can be freed at any time later.

    Returns:
        Sentences about what is missing.
    """
    observed = list(_Process.observed.values())
    replaced = [each for each in observed if not each.put_back()]
    missed = sum(each.missed for each in observed)
    # Only now, so that a call that was interrupted can be repeated.
    _Process.observed.clear()
    for each in observed:
        each.release_if_idle()
    notes = [REPLACED] if replaced else []
    if missed:
        counted = format_counted(missed, "allocation of RMM was", "allocations of RMM were")
        notes.append(f"{counted} not recorded.")
    return tuple(notes)


def record_observed(session: _core.Session | None, *, stacks: bool = True) -> None:
    """Push the live blocks of earlier recordings to a session, and record into it; None ends it."""
    _Process.session, _Process.stacks = session, stacks
    if _Process.observer is not None:
        _Process.observer.set_session(session, stacks)


def observed_devices() -> list[int]:
    """Return the devices on which the program's memory resources have allocated."""
    return [] if _Process.observer is None else _Process.observer.devices()


def _observer() -> _core.LibraryObserver:
    if _Process.observer is None:
        _Process.observer = _core.LibraryObserver(_core.Framework.rmm)
        _Process.observer.set_session(_Process.session, _Process.stacks)
        os.register_at_fork(after_in_child=_Process.observer.abandon)
    return _Process.observer


def _is_chosen(resources: Any, current: Any) -> bool:
    return type(current) is not resources.CudaMemoryResource


def _resources() -> Any:
    return import_library("rmm", "rmm-cu13").mr


def _resource(resources: Any, device: int) -> Any:
    pool = shared_pool()

    def allocate(size: int, stream: Any) -> int:
        try:
            return pool.allocate(size, device, stream, _core.Framework.rmm)
        except MemoryError as error:
            raise MemoryError(explained(error)) from None

    def deallocate(address: int, _: int, stream: Any) -> None:
        pool.free_after(address, device, stream)

    return resources.CallbackMemoryResource(allocate, deallocate)
