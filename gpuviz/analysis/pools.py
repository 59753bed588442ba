"""Which pools belong to whose allocator, from the table ``pools``."""

from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.analysis.columns import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

# The owner of the pool of torch's own allocator; those of its private pools follow.
TORCH_OWNER = _core.torch_pool_owner()


def private_pools(tables: "Mapping[str, pa.Table]") -> "NDArray[Any]":
    """Return the ids of private pools, such as those of graphs."""
    import numpy as np

    pools = tables["pools"]
    ids: NDArray[Any] = plain(pools["id"])[~np.isin(plain(pools["owner"]), (0, TORCH_OWNER))]
    return ids


def is_torchs(pools: "NDArray[Any]") -> "NDArray[Any]":
    """Return whether pools, given by their ids, are torch's own."""
    of_torch: NDArray[Any] = pools // 2 >= TORCH_OWNER
    return of_torch


def has_torch_beside(tables: "Mapping[str, pa.Table]") -> bool:
    """Return whether torch's own allocator has used a device too."""
    return bool((plain(tables["pools"]["owner"]) >= TORCH_OWNER).any())
