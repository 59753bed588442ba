"""The commands that install what gpuviz needs.

They name the packages that an extra consists of, because pip can find these in any environment,
however gpuviz itself was installed.
"""

import importlib
import re
import shlex
from types import ModuleType

from gpuviz.errors import MissingPackageError

_OLDEST_CUDA = 12
_NEWEST_CUDA = 13


def pip_install(*requirements: str) -> str:
    """Return the command that installs packages, for a shell."""
    return shlex.join(["pip", "install", *requirements])


def extra_requirements(extra: str) -> tuple[str, ...]:
    """Return the requirements of an extra, as pip takes them; empty if there is no such extra."""
    from importlib.metadata import requires

    found: list[str] = []
    for requirement in requires("gpuviz") or ():
        package, _, marker = (part.strip() for part in requirement.partition(";"))
        if marker.replace("'", '"') != f'extra == "{extra}"':
            continue
        own = re.fullmatch(r"gpuviz\[(.+)\]", package)
        found += [package] if own is None else extra_requirements(own[1])
    return tuple(found)


def cuda_requirements(cuda_major: int) -> tuple[str, ...]:
    """Return the requirements of CuPy with CUDA's libraries, for a driver.

    Args:
        cuda_major: The major version of CUDA that the driver supports; 0 if unknown.
    """
    major = min(cuda_major or _NEWEST_CUDA, _NEWEST_CUDA)
    return extra_requirements(f"cuda{max(major, _OLDEST_CUDA)}")


def cuda_requirement(cuda_major: int, library: str) -> str:
    """Return the requirement of a library of CUDA, such as ``cupti``."""
    return next(each for each in cuda_requirements(cuda_major) if f"[{library}]" in each)


def import_extra(module: str, extra: str) -> ModuleType:
    """Return a module of a package that an extra brings.

    Raises:
        MissingPackageError: It is not installed; the text has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != name:
            raise
        command = pip_install(*extra_requirements(extra))
        raise MissingPackageError(f"{name} is not installed: `{command}`.") from error
