"""Which pools belong to whose allocator, from the table ``pools``."""

import numpy as np

from gpuviz import _core
from gpuviz.data.columns import plain
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import Tables

# The owner of the pool of torch's own allocator; those of its private pools follow.
TORCH_OWNER = _core.torch_pool_owner()
# The owner of the blocks of memory resources that the program has chosen for RMM.
RMM_OWNER = _core.rmm_pool_owner()
# The owner of what JAX uses of its arena.
JAX_OWNER = _core.jax_pool_owner()
# What observed libraries use; where they have it from is not known, or counts for themselves.
WITHOUT_SEGMENTS = (RMM_OWNER, JAX_OWNER)


def private_pools(tables: Tables) -> np.ndarray:
    """Return the ids of private pools, such as those of graphs."""
    pools = tables["pools"]
    ids: np.ndarray = plain(pools["id"])[
        ~np.isin(plain(pools["owner"]), (0, TORCH_OWNER, *WITHOUT_SEGMENTS))
    ]
    return ids


def is_torchs(pools: np.ndarray) -> np.ndarray:
    """Return whether pools, given by their ids, are torch's own."""
    of_torch: np.ndarray = pools // 2 >= TORCH_OWNER
    return of_torch


def are_of(pools: np.ndarray, *, torch: bool) -> np.ndarray:
    """Return whether pools, given by their ids, are torch's own, or those of the other allocator.

    Blocks of RMM's memory resources and of JAX are of neither.
    """
    found: np.ndarray = is_torchs(pools) if torch else pools // 2 < min(WITHOUT_SEGMENTS)
    return found


def allocator_beside(tables: Tables) -> str:
    """Return whose allocator has used a device too, in words; empty without one."""
    owners = plain(tables["pools"]["owner"])
    if (owners >= TORCH_OWNER).any():
        return "PyTorch's allocator"
    if (owners == JAX_OWNER).any():
        return "JAX's allocator"
    return "RMM's memory resource" if (owners == RMM_OWNER).any() else ""


def cache_of(manifest: Manifest, *, of_torch: bool) -> tuple[str, str]:
    """Return the name of torch's own allocator or of the other one, and what releases its cache."""
    if of_torch:
        return "PyTorch", "torch.cuda.empty_cache()"
    if manifest.allocator == "observe":
        return "CuPy's pool", "cupy.get_default_memory_pool().free_all_blocks()"
    return "gpuviz's allocator", "gpuviz.empty_cache()"
