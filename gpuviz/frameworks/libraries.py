"""Numba, cuda.core and RMM on gpuviz's caching allocator during a recording."""

import sys
from typing import Protocol

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

    The program's own choice of an allocator stays.
    """

    def __init__(self) -> None:
        self._installed: list[Library] = []
        self._notes: list[str] = []
        self._watcher = ImportWatcher(tuple(_LIBRARIES), self._install)

    def begin(self) -> None:
        """Install it in what is imported, and from now on after each import."""
        for module in _LIBRARIES:
            if module in sys.modules:
                self._install(module)
        sys.meta_path.insert(0, self._watcher)

    def end(self) -> tuple[str, ...]:
        """Restore the libraries' allocators, and return sentences about those left out."""
        if self._watcher in sys.meta_path:
            sys.meta_path.remove(self._watcher)
        for library in self._installed:
            try:
                library.uninstall()
            except Exception as error:  # noqa: BLE001 - the program must continue
                self._notes.append(f"An allocator was not restored: {error}")
        self._installed.clear()
        return tuple(dict.fromkeys(self._notes))

    def _install(self, module: str) -> None:
        name, library = _LIBRARIES[module]
        try:
            if library.is_installed():
                return
            choice = library.programs_choice()
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
