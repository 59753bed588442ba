"""Startup hook of ``gpuviz run``, which Python imports before the program.

Python finds this file through ``PYTHONPATH``, which is restored here, so that child processes do
not inherit it. It imports only modules that Python itself has already imported, so that the program
finds its own modules, and a program that never imports CuPy loses no time.
"""

import atexit
import os
import sys

# Type checkers treat it like typing.TYPE_CHECKING; typing is not imported yet.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

OPTIONS = "GPUVIZ_RUN"
PYTHONPATH = "GPUVIZ_RUN_PYTHONPATH"
NUMBA = ("numba.cuda.cudadrv.driver", "numba_cuda_mlir.numba_cuda.cudadrv.driver")
# What programs import when they are about to use the GPU. JAX imports its plugins itself then.
AT_FIRST_USE = (
    *("jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13"),
    *("warp", "pycuda.driver", "cuda.core"),
)
WATCHED = ("cupy", "torch", "gpuviz.simulation.gpu", *NUMBA, *AT_FIRST_USE)
NOTHING_IMPORTED = (
    "the program imported no library that gpuviz run knows; "
    "if it uses the GPU, call gpuviz.record() in it"
)
ENDED_EARLY = "the program ended with an error before it used a library that gpuviz run knows"
_RECORDING = "gpuviz.commands.recorded_run"
_IMPORTLIB = "<frozen importlib._bootstrap>"


class ImportWatcher:
    """A `sys.meta_path` entry that calls back after modules were imported.

    Args:
        names: The modules.
        then: Called with the name of each.
    """

    def __init__(self, names: tuple[str, ...], then: "Callable[[str], None]") -> None:
        self._names = set(names)
        self._finding: set[str] = set()
        self._then = then

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """Return the spec of the other finders, with a loader that calls back."""
        # Another watcher of the module asks all finders, and so this one, again.
        if name not in self._names or name in self._finding:
            return None
        self._finding.add(name)
        try:
            for finder in sys.meta_path:
                found = finder.find_spec(name, path, target)
                if found is not None:
                    if found.loader is not None:
                        self._watch(name, found.loader)
                    return found
        finally:
            self._finding.discard(name)
        return None

    def _watch(self, name: str, loader: "Any") -> None:
        execute = loader.exec_module

        def exec_module(module: "Any") -> None:
            loader.exec_module = execute
            execute(module)
            self._names.discard(name)
            self._then(name)

        # Python omits frames of importlib from the traceback of a failed import.
        exec_module.__code__ = exec_module.__code__.replace(co_filename=_IMPORTLIB)
        loader.exec_module = exec_module


def begin(options: str, *, folder: str = "") -> None:
    """Record this process from its first use of a GPU, or of a simulated one.

    Args:
        options: `gpuviz.commands.run_options.RunOptions`, as JSON.
        folder: Where to record this process, and those that it forks before, to a file each; empty
            to record only this one, to the file in the options.
    """
    process = os.getpid()

    def after_import(name: str) -> None:
        if os.getpid() != process and not folder:
            return
        try:
            from gpuviz.commands import recorded_run

            recorded_run.after_import(name, options, folder)
        except Exception as error:  # noqa: BLE001 - the program must continue
            from gpuviz.terminal import write_line

            write_line(sys.stderr, f"gpuviz: not recorded: {type(error).__name__}: {error}")

    def end() -> None:
        if os.getpid() != process and not folder:
            return
        is_quiet = folder or '"quiet": true' in options
        if _RECORDING in sys.modules:
            sys.modules[_RECORDING].finish()
        elif not is_quiet and sys.stderr and _has_begun():
            # Constants: an import now would change the exit code of an interrupted program.
            reason = ENDED_EARLY if hasattr(sys, "last_type") else NOTHING_IMPORTED
            sys.stderr.write(f"gpuviz: nothing was recorded: {reason}\n")

    sys.meta_path.insert(0, ImportWatcher(WATCHED, after_import))
    atexit.register(end)


def _has_begun() -> bool:
    """Return whether Python found the program; if not, it has said so."""
    loader = getattr(sys.modules.get("__main__"), "__loader__", None)
    return getattr(loader, "__name__", "") != "BuiltinImporter" or sys.argv[:1] in (["-c"], ["-"])


def _restore_path() -> None:
    folder = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is not imported yet
    sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    if PYTHONPATH in os.environ:
        os.environ["PYTHONPATH"] = os.environ.pop(PYTHONPATH)
    else:
        os.environ.pop("PYTHONPATH", None)


def _run_own() -> None:
    """Run the ``sitecustomize`` that Python would have found."""
    this = sys.modules.pop(__name__)
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401 - the next one
    except ModuleNotFoundError as error:
        sys.modules[__name__] = this
        if error.name != __name__:
            raise


if OPTIONS in os.environ:
    _restore_path()
    begin(os.environ.pop(OPTIONS))
    _run_own()
