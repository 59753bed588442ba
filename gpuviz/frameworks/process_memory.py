"""Memory of a process's libraries during one recording: what each source of events shares."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.allocator.driver import cuda_driver
from gpuviz.allocator.memory import caching_allocators, set_new_allocator_hook
from gpuviz.frameworks.driver_devices import device_rows, used_bytes
from gpuviz.frameworks.libraries import RecordedLibraries
from gpuviz.frameworks.shared_pool import record_calls

if TYPE_CHECKING:
    import pyarrow as pa


class ProcessMemory:
    """gpuviz's allocator in the libraries that can have it, and the observed ones of others.

    Args:
        stacks: Whether events have call stacks.
        only_observe: Whether to install the allocator in none of them.
    """

    framework = ""
    memory = "device"

    def __init__(self, *, stacks: bool, only_observe: bool = False) -> None:
        cuda_driver()
        self._stacks = stacks
        self._only_observe = only_observe
        self._libraries = RecordedLibraries(stacks=stacks, only_observe=only_observe)

    def tables(self) -> "dict[str, pa.Table]":
        """Return nothing: all tables grow during the recording."""
        return {}

    def describe(self, session: _core.Session) -> None:
        """Push the segments and blocks left by an earlier use of the allocator."""
        for device, allocator in caching_allocators().items():
            allocator.describe_state(session.sink(device), stacks_are_valid=False)
        self._libraries.describe(session)

    def begin(self, session: _core.Session) -> None:
        """Install the allocator, and start recording."""

        def attach(device: int, allocator: _core.CachingAllocator) -> None:
            allocator.attach(session.sink(device))
            self._attached(session, device, allocator)

        set_new_allocator_hook(attach)
        record_calls(session, stacks=self._stacks)
        self._install(session)
        self._libraries.begin()

    def _attached(
        self, session: _core.Session, device: int, allocator: _core.CachingAllocator
    ) -> None:
        """Prepare the allocator of a device, whose events are recorded from now on."""

    def _install(self, session: _core.Session) -> None:
        """Install the allocator in more than libraries without CuPy."""

    def _stop(self) -> tuple[str, ...]:
        """End what `_install` began, while events are still recorded; return sentences."""
        return ()

    def sample(self) -> list[tuple[int, int]]:
        """Return the used bytes of the devices of these libraries."""
        return used_bytes(self._devices())

    def now_ns(self) -> int | None:
        """Return None: the events are on the session's clock."""
        return None

    def end(self) -> tuple[str, ...]:
        """Restore the libraries' allocators, and return sentences for the user."""
        notes = self._libraries.end()
        record_calls(None)
        set_new_allocator_hook(None)
        notes += self._stop()
        for allocator in caching_allocators().values():
            allocator.detach()
        return notes

    def devices(self, active: Iterable[int], /) -> list[dict[str, Any]]:
        """Return the devices that these libraries have used, and those with work."""
        return device_rows({*self._devices(), *active})

    def _devices(self) -> set[int]:
        return {*caching_allocators(), *self._libraries.devices()}
