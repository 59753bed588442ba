"""Records and shows what CuPy programs do to GPU memory and CUDA streams.

The public names are listed in ``__init__.pyi``; each is imported on first use, so that
``import gpuviz`` is fast.

PYTEST_DONT_REWRITE: it is often imported before pytest loads its plugin.
"""

import builtins
from typing import Any

import lazy_loader

_imported, _, _names = lazy_loader.attach_stub(__name__, __file__)
# Without what IPython calls, whose import needs IPython.
_public = [name for name in _names if not name.endswith("_ipython_extension")]
# Without `range`, so that `from gpuviz import *` does not hide Python's.
__all__ = ["__version__"]
__all__ += [name for name in _public if not hasattr(builtins, name)]


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _imported(name)
    # Its import would take longer than the rest of the command line's startup.
    from importlib.metadata import version

    return globals().setdefault(name, version("gpuviz"))


def __dir__() -> list[str]:
    return sorted([*_public, "__version__"])
