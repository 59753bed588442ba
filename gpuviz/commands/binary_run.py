"""``gpuviz run`` of a program that is not Python's, such as one of CUDA C++.

The driver loads gpuviz's injection library when the program first uses CUDA. The library runs
`begin` in an interpreter of its own, and `end` when the program exits.
"""

import os
import shutil
import site
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NoReturn

from gpuviz import _core
from gpuviz.commands import recorded_run
from gpuviz.commands.judged_run import end_with, exit_code
from gpuviz.commands.run_options import RunOptions
from gpuviz.errors import GpuvizError
from gpuviz.terminal import write_line

INJECTION = "CUDA_INJECTION64_PATH"
_LIBRARY = "libgpuviz_injection.so"
# A process of Python with the variable of `gpuviz.commands.startup` would record itself.
_OPTIONS = "GPUVIZ_BINARY_RUN"
_BEGUN = "GPUVIZ_BINARY_BEGUN"
_ELF = b"\x7fELF"


def found_binary(program: str) -> str:
    """Return the path of a program that needs no interpreter; empty if it is another one."""
    path = program if Path(program).is_file() else shutil.which(program)
    try:
        with Path(path or "").open("rb") as file:
            return str(Path(path or "").absolute()) if file.read(len(_ELF)) == _ELF else ""
    except OSError:
        return ""


def binary_run(command: tuple[str, ...], options: RunOptions) -> NoReturn:
    """Run a program and record it, and exit with its exit code.

    Raises:
        GpuvizError: Python's library is missing, or another tool records the program.
    """
    if INJECTION in os.environ:
        raise GpuvizError(
            f"Another tool records the program: {INJECTION}={os.environ[INJECTION]}. Unset it."
        )
    with tempfile.TemporaryDirectory(prefix="gpuviz-run-") as folder:
        begun = Path(folder, "begun")
        injected = {
            INJECTION: str(Path(_core.__file__).with_name(_LIBRARY)),
            _OPTIONS: options.to_json(),
            _BEGUN: str(begun),
            "GPUVIZ_PYTHON_LIBRARY": str(_python_library()),
            "GPUVIZ_PYTHON_HOME": f"{sys.base_prefix}{os.pathsep}{sys.base_exec_prefix}",
            "GPUVIZ_PYTHON_PATH": os.pathsep.join(_site_folders()),
        }
        code = exit_code(command, {**os.environ, **injected})
        if not begun.exists() and not options.quiet:
            write_line(sys.stderr, "gpuviz: nothing was recorded: the program did not use CUDA")
    end_with(code)


def _site_folders() -> list[str]:
    known = {*site.getsitepackages(), site.getusersitepackages()}
    return [folder for folder in sys.path if folder in known]


def _python_library() -> Path:
    """Return this Python as a library, which not every one comes with."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    names = (sysconfig.get_config_var("INSTSONAME"), f"libpython{version}.so.1.0")
    folders = (
        sysconfig.get_config_var("LIBDIR"),
        f"{sys.base_exec_prefix}/lib",
        f"/usr/lib/{os.uname().machine}-linux-gnu",
    )
    for folder in filter(None, folders):
        for name in filter(None, names):
            path = Path(folder, name)
            if ".so" in name and path.exists():
                return path
    raise GpuvizError(
        f"A program that is not Python's needs libpython{version}.so to be recorded, which "
        f"{sys.executable} comes without. On Debian and Ubuntu it is in the package "
        f"libpython{version}; the Pythons of conda and uv have it."
    )


def begin() -> None:
    """Record this process to the end of it; called by the injection library."""
    Path(os.environ.pop(_BEGUN)).touch()
    arguments = Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]
    sys.argv = [os.fsdecode(each) for each in arguments]
    recorded_run.record_process(os.environ.pop(_OPTIONS))


def end() -> None:
    """Write the outputs of the recording; called by the injection library."""
    recorded_run.finish()
