"""The line behind the work of torch's backward pass, whose threads have no Python frames.

``loss.backward()`` waits for threads of C++ that allocate and launch. While it runs, their work has
its call stack. They are known by the number of the graph that a thread is in, which torch keeps for
each thread (``torch::autograd::get_current_graph_task_id`` in libtorch_cpu.so, -1 outside).
"""

import ctypes
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

from gpuviz import _core

_LIBRARY = "libtorch_cpu.so"
_GRAPH_OF_THREAD = "_ZN5torch8autograd25get_current_graph_task_idEv"
# What all of torch's ways to run a backward pass call, in each module that has its name.
_RUN = "_engine_run_backward"
_MODULES = ("autograd", "autograd.graph")


@cache
def watch_backward(torch: ModuleType) -> "_core.StackLender | None":
    """Let each backward pass lend its stack from now on; None if torch does not allow that."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(str(Path(torch.__path__[0]) / "lib" / _LIBRARY))
        address = ctypes.cast(getattr(library, _GRAPH_OF_THREAD), ctypes.c_void_p).value
        if address is not None:
            return _watched(torch, _core.StackLender(address))
    return None


def _watched(torch: ModuleType, lender: _core.StackLender) -> _core.StackLender:
    run = getattr(torch.autograd, _RUN)
    lending = lender.lending(run)
    for name in _MODULES:
        module = torch
        for part in name.split("."):
            module = getattr(module, part)
        if getattr(module, _RUN, None) is run:
            setattr(module, _RUN, lending)
    return lender
