"""The simulated GPUs of this process: who learns of new ones, and their allocators."""

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz import _core
    from gpuviz.simulation.gpu import SimulatedGPU

_hooks: "list[Callable[[SimulatedGPU], None]]" = []
# An allocator lives as long as its arrays, which may be longer than its GPU.
_allocators: "weakref.WeakSet[_core.CachingAllocator]" = weakref.WeakSet()


def add_new_gpu_hook(hook: "Callable[[SimulatedGPU], None]") -> None:
    """Call ``hook`` with each new `SimulatedGPU`."""
    _hooks.append(hook)


def announce(gpu: "SimulatedGPU", allocator: "_core.CachingAllocator") -> None:
    """Pass a new GPU to all hooks, and remember its allocator."""
    _allocators.add(allocator)
    for hook in _hooks:
        hook(gpu)


def simulated_allocators() -> "list[_core.CachingAllocator]":
    """Return the allocators of all `SimulatedGPU` objects and their arrays."""
    return list(_allocators)
