"""The search for libcupti."""

import ctypes
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuviz.installation import cuda_requirement, pip_install

# NVIDIA's names of the folders of a toolkit for a machine; Grace and other servers are sbsa.
_TARGETS = {"aarch64": ("sbsa-linux", "aarch64-linux")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPath:
    """Where CUDA's libraries may be, of this process unless given."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    site_packages: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    prefix: str = sys.prefix
    root: Path = Path("/")
    machine: str = platform.machine()

    def find(self, cuda_major: int) -> Path | None:
        """Return the path of libcupti of a CUDA major version, or None.

        CUDA's wheels come first, then conda's packages, the toolkit that a variable names, and
        those in their usual places.
        """
        name = f"libcupti.so.{cuda_major}"
        for folder in self._folders(cuda_major):
            if (folder / name).is_file():
                return folder / name
        return None

    def _folders(self, cuda_major: int) -> Iterator[Path]:
        for packages in self.site_packages:
            # Of CUDA 13 nvidia/cu13/lib, of CUDA 12 nvidia/cuda_cupti/lib.
            yield from sorted(Path(packages).glob("nvidia/*/lib"))
        variables = self.environment
        for conda in (self.prefix, variables.get("CONDA_PREFIX")):
            if conda:
                yield from self._of_toolkit(Path(conda))
        for variable in ("CUDA_PATH", "CUDA_HOME"):
            if variables.get(variable):
                yield from self._of_toolkit(Path(variables[variable]))
        for folder in variables.get("LD_LIBRARY_PATH", "").split(":"):
            if folder:
                yield Path(folder)
        local = self.root / "usr/local"
        versions = local.glob(f"cuda-{cuda_major}*")
        for toolkit in (*sorted(versions, key=_version, reverse=True), local / "cuda"):
            yield from self._of_toolkit(toolkit)

    def _of_toolkit(self, toolkit: Path) -> Iterator[Path]:
        for folder in ("extras/CUPTI/lib64", "lib64", "lib"):
            yield toolkit / folder
        for target in _TARGETS.get(self.machine, (f"{self.machine}-linux",)):
            yield toolkit / "targets" / target / "lib"


def find_cupti(cuda_major: int) -> Path:
    """Return the path of libcupti of a CUDA major version.

    A library that the process has already loaded comes first, because a second one would fail; then
    those of `SearchPath`, and last the one that the system's linker finds.

    Raises:
        RuntimeError: CUPTI is not installed; the text has the command that installs it.
    """
    found = _loaded() or SearchPath().find(cuda_major) or _of_linker(cuda_major)
    if found is None:
        raise RuntimeError(
            f"CUPTI (libcupti.so.{cuda_major}) was not found: "
            f"`{pip_install(cuda_requirement(cuda_major, 'cupti'))}`, "
            "or set CUDA_PATH to a CUDA toolkit.",
        )
    return found


def _loaded() -> Path | None:
    libraries = (path for path in loaded_libraries() if path.name.startswith("libcupti.so"))
    return next(libraries, None)


def _of_linker(cuda_major: int) -> Path | None:
    try:
        ctypes.CDLL(f"libcupti.so.{cuda_major}")
    except OSError:
        return None
    return _loaded()


def loaded_libraries() -> Iterator[Path]:
    """Yield the path of every file that is mapped into this process."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        _, separator, path = line.partition("/")
        if separator:
            yield Path("/", path)


def _version(toolkit: Path) -> tuple[int, ...]:
    numbers = toolkit.name.partition("-")[2].split(".")
    return tuple(int(number) for number in numbers if number.isdigit())
