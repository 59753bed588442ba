"""Numba, cuda.core and RMM during a recording: on gpuviz's caching allocator, or observed."""

import sys
from typing import Protocol

from gpuviz import _core
from gpuviz.commands.startup.sitecustomize import ImportWatcher
from gpuviz.errors import GpuvizError
from gpuviz.frameworks import cuda_core, numba, rmm


class Library(Protocol):
    """A module of this package that installs the allocator in a library."""

    def install(self) -> None:
        """Install it."""

    def uninstall(self) -> None:
        """Undo that."""

    def is_installed(self) -> bool:
        """Return whether it is installed."""

    def programs_choice(self) -> str:
        """Return the name of the program's own choice; empty without one."""


_LIBRARIES: dict[str, tuple[str, Library]] = {
    **dict.fromkeys(numba.DRIVERS, ("Numba", numba)),
    "cuda.core": ("cuda.core", cuda_core),
    "rmm": ("RMM", rmm),
}


class RecordedLibraries:
    """Installs the allocator in libraries that are imported, or will be, until the end.

    The program's own choice of an allocator stays; that for RMM is observed.

    Args:
        stacks: Whether events of observed allocators have call stacks.
        only_observe: Whether to install nothing.
    """

    def __init__(self, *, stacks: bool = True, only_observe: bool = False) -> None:
        self._stacks = stacks
        self._only_observe = only_observe
        self._modules = ("rmm",) if only_observe else tuple(_LIBRARIES)
        self._installed: list[Library] = []
        self._notes: list[str] = []
        self._seen: list[int] | None = None
        self._watcher = ImportWatcher(self._modules, self._install)

    def describe(self, session: _core.Session) -> None:
        """Push the blocks of observed allocators that earlier recordings have left."""
        rmm.record_observed(session, stacks=self._stacks)

    def begin(self) -> None:
        """Install it in what is imported, and from now on after each import."""
        for module in self._modules:
            if module in sys.modules:
                self._install(module)
        sys.meta_path.insert(0, self._watcher)

    def end(self) -> tuple[str, ...]:
        """Restore the libraries' allocators, and return sentences about those left out."""
        if self._watcher in sys.meta_path:
            sys.meta_path.remove(self._watcher)
        for library in self._installed:
            try:
                if library is rmm and not rmm.is_installed():
                    self._notes.append(rmm.REPLACED)
                library.uninstall()
            except Exception as error:  # noqa: BLE001 - the program must continue
                self._notes.append(f"An allocator was not restored: {error}")
        self._installed.clear()
        self._notes += rmm.stop_observing()
        self._seen = self.devices()
        rmm.record_observed(None)
        return tuple(dict.fromkeys(self._notes))

    def devices(self) -> list[int]:
        """Return the devices on which observed allocators have allocated."""
        return rmm.observed_devices() if self._seen is None else self._seen

    def _install(self, module: str) -> None:
        name, library = _LIBRARIES[module]
        try:
            if library.is_installed():
                return
            choice = library.programs_choice()
            if library is rmm and (choice or self._only_observe):
                self._notes += rmm.observe()
                return
            if choice:
                self._notes.append(
                    f"{name} keeps the program's {choice}, whose memory is not recorded."
                )
                return
            library.install()
            self._installed.append(library)
        except GpuvizError as error:
            self._notes.append(f"The memory of {name} is not recorded: {error}")
        except Exception as error:  # noqa: BLE001 - a library of an unknown version
            self._notes.append(
                f"The memory of {name} is not recorded ({type(error).__name__}: {error})."
            )
