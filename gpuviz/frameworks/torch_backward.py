"""The lines behind the work of torch's backward pass, whose threads have no Python frames.

``loss.backward()`` waits for threads of C++ that allocate and launch. While it runs, their work has
its call stack. They are known by the number of the graph that a thread is in, which torch keeps for
each thread (``torch::autograd::get_current_graph_task_id`` in libtorch_cpu.so, -1 outside).

A node of that graph has the number that the thread of the forward pass gave it, and the number of
that thread. Where they are in a node differs between releases of torch; they are looked for in
nodes whose numbers are known, and not used unless all agree.
"""

import ctypes
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from gpuviz import _core

_LIBRARY = "libtorch_cpu.so"
_GRAPH_OF_THREAD = "_ZN5torch8autograd25get_current_graph_task_idEv"
_NEXT_NODE = "_ZN2at15sequence_number4peekEv"
_THREAD = "_ZN2at14RecordFunction15currentThreadIdEv"
_CURRENT_NODE = "_ZN5torch8autograd16get_current_nodeEv"
# What all of torch's ways to run a backward pass call, in each module that has its name.
_RUN = "_engine_run_backward"
_MODULES = ("autograd", "autograd.graph")

_WORD = 8
# A node's number and its thread are among its first words, in this distance.
_SEARCHED = 12
_THREAD_AFTER_NUMBER = 3 * _WORD
# The address of its node in a Python object of torch, behind the head of every object.
_NODE_IN_OBJECT = 16


@cache
def watch_backward(torch: ModuleType) -> _core.StackLender | None:
    """Let each backward pass lend its stack from now on; None if torch does not allow that."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(str(Path(torch.__path__[0]) / "lib" / _LIBRARY))
        lender = _core.StackLender(_address(library, _GRAPH_OF_THREAD))
        # The calling thread may be within an operation, or in inference mode: without autograd.
        finder = threading.Thread(target=_find_nodes, args=(torch, library, lender))
        finder.start()
        finder.join()
        return _watched(torch, lender)
    return None


def _address(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function.

    Raises:
        AttributeError: The library has none of this name.
    """
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _find_nodes(torch: ModuleType, library: ctypes.CDLL, lender: _core.StackLender) -> None:
    """Let the lender read nodes, if some of them contain what torch says of them."""
    with suppress(Exception):  # a thread would print it to the program's stderr
        found = _found_nodes(torch, library)
        if found is not None:
            lender.set_autograd(**found)


def _found_nodes(torch: ModuleType, library: ctypes.CDLL) -> dict[str, int] | None:
    """Return where nodes have what is read of them, tried on some; None if it is not there."""
    thread = getattr(library, _THREAD)
    thread.restype = ctypes.c_uint64
    with torch.enable_grad():
        leaf = torch.ones(1, device="cpu", requires_grad=True)
        # So that the numbers are no others that nodes contain.
        for _ in range(_SEARCHED):
            leaf.view(1)
        tensors = [leaf * 2]
        for _ in range(2):
            tensors.append(tensors[-1] * 2)
        if any(tensor.grad_fn is None for tensor in tensors):
            return None
        known = set.intersection(*(_offsets(tensor.grad_fn, thread()) for tensor in tensors))
        if len(known) != 1:
            return None
        (number,) = known
        found = {
            "next_node": _address(library, _NEXT_NODE),
            "thread": _address(library, _THREAD),
            "current_node": _address(library, _CURRENT_NODE),
            "number_offset": number,
            "thread_offset": number + _THREAD_AFTER_NUMBER,
        }
        trial = _core.StackLender(_address(library, _GRAPH_OF_THREAD))
        trial.set_autograd(**found)
        agreed: list[bool] = []
        for tensor in tensors:
            tensor.register_hook(lambda _: agreed.append(_reads_current_node(torch, trial)))
        torch.autograd.grad(tensors[-1], leaf)
        return found if len(agreed) == len(tensors) and all(agreed) else None


def _offsets(node: Any, thread: int) -> set[int]:
    """Return where a node has its number, and behind it the thread that made it."""
    words, after = _words(node), _THREAD_AFTER_NUMBER // _WORD
    return {
        i * _WORD
        for i in range(len(words) - after)
        if (words[i], words[i + after]) == (node._sequence_nr(), thread)  # noqa: SLF001
    }


def _reads_current_node(torch: ModuleType, lender: _core.StackLender) -> bool:
    """Return whether a lender knows the node that runs, and leaves it as it was."""
    node = torch._C._current_autograd_node()  # noqa: SLF001 - there is no public way
    before = _words(node)
    number, _ = lender.current_node()
    return number == node._sequence_nr() and _words(node) == before  # noqa: SLF001


def _words(node: Any) -> list[int]:
    address = ctypes.c_uint64.from_address(id(node) + _NODE_IN_OBJECT).value
    return list((ctypes.c_uint64 * _SEARCHED).from_address(address))


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
