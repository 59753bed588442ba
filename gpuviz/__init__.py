"""See what a CuPy program does to GPU memory and to CUDA streams.

The public names are listed in ``__init__.pyi``; each is imported at first use, so that
``import gpuviz`` costs next to nothing.
"""

import builtins
from typing import Any

import lazy_loader

_imported, _, _names = lazy_loader.attach_stub(__name__, __file__)
# Without `range`, so that `from gpuviz import *` does not hide Python's.
__all__ = ["__version__"]
__all__ += [name for name in _names if not hasattr(builtins, name)]


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _imported(name)
    # Takes longer to import than all else that the command line starts with.
    from importlib.metadata import version

    return globals().setdefault(name, version("gpuviz"))


def __dir__() -> list[str]:
    return sorted([*_names, "__version__"])


def load_ipython_extension(shell: Any) -> None:
    """Let ``%gpuviz`` and ``%%gpuviz`` work in an IPython shell: for ``%load_ext gpuviz``."""
    from gpuviz.notebook.magics import load as load_magics

    load_magics(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics, and stop what they have started."""
    from gpuviz.notebook.magics import unload

    unload(shell)
