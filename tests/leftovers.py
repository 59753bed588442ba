"""Simulated GPUs that tests before have left in the process."""

import gc
import sys


def collect_simulated_gpus() -> None:
    """Collect garbage, also that which `gc.freeze` has excluded if it may hold a simulated GPU."""
    gc.collect()
    if _allocators():
        gc.unfreeze()
        gc.collect()


def empty_simulated_gpus() -> None:
    """Let what lives on of other tests cache no memory that a search would find."""
    collect_simulated_gpus()
    for allocator in _allocators():
        allocator.empty_cache()


def _allocators() -> list:
    simulation = sys.modules.get("gpuviz.simulation.known_gpus")
    return [] if simulation is None else simulation.simulated_allocators()
