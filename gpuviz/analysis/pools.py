"""Which pools belong to whose allocator, from the table ``pools``."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz import _core
from gpuviz.data.columns import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

# The owner of the pool of torch's own allocator; those of its private pools follow.
TORCH_OWNER = _core.torch_pool_owner()
# The owner of the blocks of memory resources that the program has chosen for RMM.
RMM_OWNER = _core.rmm_pool_owner()


def private_pools(tables: "Mapping[str, pa.Table]") -> "NDArray[Any]":
    """Return the ids of private pools, such as those of graphs."""
    pools = tables["pools"]
    ids: NDArray[Any] = plain(pools["id"])[
        ~np.isin(plain(pools["owner"]), (0, TORCH_OWNER, RMM_OWNER))
    ]
    return ids


def is_torchs(pools: "NDArray[Any]") -> "NDArray[Any]":
    """Return whether pools, given by their ids, are torch's own."""
    of_torch: NDArray[Any] = pools // 2 >= TORCH_OWNER
    return of_torch


def are_of(pools: "NDArray[Any]", *, torch: bool) -> "NDArray[Any]":
    """Return whether pools, given by their ids, are torch's own, or those of the other allocator.

    Blocks of RMM's memory resources are of neither.
    """
    found: NDArray[Any] = is_torchs(pools) if torch else pools // 2 < RMM_OWNER
    return found


def allocator_beside(tables: "Mapping[str, pa.Table]") -> str:
    """Return whose allocator has used a device too, in words; empty without one."""
    owners = plain(tables["pools"]["owner"])
    if (owners >= TORCH_OWNER).any():
        return "PyTorch's allocator"
    return "RMM's memory resource" if (owners == RMM_OWNER).any() else ""
