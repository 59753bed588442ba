"""Compilation of the tracker that passes the trace of PyTorch's allocator on to gpuviz."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType

_TIMEOUT_S = 120


class TrackerUnavailableError(Exception):
    """The tracker cannot be compiled; the message says why, without a full stop."""


def tracker(torch: ModuleType) -> ctypes.CDLL:
    """Return the library with ``gpuviz_attach``, compiled once for each version of PyTorch.

    It is kept in ``$XDG_CACHE_HOME/gpuviz`` or ``~/.cache/gpuviz``.

    Args:
        torch: The module.

    Raises:
        TrackerUnavailableError: There is no C++ compiler, or the headers of PyTorch or CUDA are
            missing.
    """
    source = files("gpuviz.frameworks").joinpath("torch_tracker.cpp").read_text("utf-8")
    root = Path(str(torch.__file__)).parent
    built_for = (source, torch.__version__, str(root), sys.platform)
    name = hashlib.sha256("\n".join(built_for).encode()).hexdigest()[:20]
    path = _cache() / f"torch-{name}.so"
    if not path.exists():
        _compile(source, path, torch, root)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise TrackerUnavailableError(str(error)) from None


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gpuviz"


def _compile(source: str, path: Path, torch: ModuleType, root: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        raise TrackerUnavailableError("there is no C++ compiler")
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)  # noqa: SLF001 - as torch's own build of extensions
    options = ["-std=c++20", "-O2", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"]
    includes = [f"-I{each}" for each in (root / "include", *_cuda_includes(root))]
    libraries = [f"-L{root / 'lib'}", "-lc10_cuda", "-lc10"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Renamed at the end: several processes may compile it, and one may be killed.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            text, built = Path(folder) / "tracker.cpp", Path(folder) / "tracker.so"
            text.write_text(source, "utf-8")
            done = subprocess.run(  # noqa: S603
                [compiler, *options, *includes, str(text), "-o", str(built), *libraries],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            if done.returncode:
                raise TrackerUnavailableError(_reason(done.stderr))
            built.replace(path)
    except (OSError, subprocess.SubprocessError) as error:
        raise TrackerUnavailableError(str(error)) from None


def _reason(messages: str) -> str:
    """Return the compiler's first error, which names the missing header."""
    errors = [line for line in messages.splitlines() if "error" in line]
    return errors[0].strip() if errors else "the C++ compiler failed"


def _cuda_includes(root: Path) -> Iterator[Path]:
    """Return folders with CUDA's headers: of the wheels beside PyTorch, and of toolkits."""
    for header in sorted(root.parent.glob("nvidia/*/include/cuda_runtime_api.h")):
        yield header.parent
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    compiler = shutil.which("nvcc")
    if compiler:
        toolkits.append(str(Path(compiler).resolve().parents[1]))
    for toolkit in toolkits:
        if toolkit and (Path(toolkit) / "include" / "cuda_runtime_api.h").exists():
            yield Path(toolkit) / "include"
