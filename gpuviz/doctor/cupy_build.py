"""CuPy installation, and compatibility of its CUDA version with the driver."""

import re
from collections.abc import Iterator
from importlib.metadata import distributions

from gpuviz.doctor.driver import cuda_version
from gpuviz.doctor.finding import Finding
from gpuviz.errors import DeviceUnavailableError
from gpuviz.frameworks.cupy_current import import_cupy
from gpuviz.installation import cuda_requirements, pip_install

OLDEST_CUPY = 13


def installed() -> list[tuple[str, str]]:
    """Return name and version of every installed distribution of CuPy."""
    found = {
        (each.metadata["Name"].lower(), each.version)
        for each in distributions()
        if re.fullmatch(r"cupy(-cuda\d+x|-rocm-[\d-]+)?", (each.metadata["Name"] or "").lower())
    }
    return sorted(found)


def runtime_version() -> int:
    """Return the version of the CUDA runtime that CuPy uses; 0 if there is no CuPy."""
    try:
        return int(import_cupy().cuda.runtime.runtimeGetVersion())
    except (DeviceUnavailableError, RuntimeError):
        return 0


def findings(driver: int, packages: list[tuple[str, str]], runtime: int) -> Iterator[Finding]:
    """Yield findings about CuPy.

    Args:
        driver: The CUDA version of the driver; 0 if there is none.
        packages: The result of `installed`.
        runtime: The result of `runtime_version`.
    """
    install = pip_install(*cuda_requirements(driver // 1000))
    names = ", ".join(f"{name} {version}" for name, version in packages)
    if not runtime and names:
        found = f"{names} cannot be imported"
        meaning = "gpuviz records the memory of CuPy programs."
        yield Finding("CuPy", "problem", found, meaning, install)
        return
    if not runtime:
        meaning = "PyTorch and other libraries are recorded without it."
        yield Finding("CuPy", "warning", "not installed", meaning, install)
        return
    if len(packages) > 1:
        meaning = "They overwrite each other's files, and it is undefined which one is imported."
        yield Finding("CuPy", "warning", names, meaning, "Uninstall all but one.")
    else:
        yield _version(names or "built from source", packages, install)
    yield _match(driver, runtime, install)


def compiler(driver: int) -> Finding:
    """Return the finding about NVRTC, with which CuPy compiles kernels.

    Args:
        driver: The CUDA version of the driver; 0 if there is none.
    """
    try:
        major, minor = import_cupy().cuda.nvrtc.getVersion()
    except (DeviceUnavailableError, AttributeError, OSError, RuntimeError) as error:
        found = f"not found: {str(error).partition(chr(10))[0]}"
        install = pip_install(*cuda_requirements(driver // 1000))
        return Finding("NVRTC", "warning", found, "CuPy cannot compile kernels.", install)
    return Finding("NVRTC", "ok", f"CUDA {major}.{minor}")


def _version(names: str, packages: list[tuple[str, str]], install: str) -> Finding:
    for _, version in packages:
        if int(version.partition(".")[0]) < OLDEST_CUPY:
            meaning = f"gpuviz needs CuPy {OLDEST_CUPY} or newer."
            return Finding("CuPy", "warning", names, meaning, f"{install} --upgrade")
    return Finding("CuPy", "ok", names)


def _match(driver: int, runtime: int, install: str) -> Finding:
    found = f"CuPy's CUDA runtime {cuda_version(runtime)}"
    if not driver:
        return Finding("CUDA", "ok", found)
    found += f", driver {cuda_version(driver)}"
    if runtime // 1000 > driver // 1000:
        meaning = "The driver is too old for this runtime: CuPy fails at its first call."
        return Finding("CUDA", "problem", found, meaning, f"Update the driver, or {install}.")
    newer = "The runtime's minor version is newer, which CUDA allows." if runtime > driver else ""
    return Finding("CUDA", "ok", found, newer)
