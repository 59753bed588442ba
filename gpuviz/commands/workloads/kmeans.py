"""K-means: Lloyd's iterations over points, in chunks.

Look for: the temporaries of ``_assign``. Two arrays of (points, clusters, features), allocated for
each chunk, are most of the peak; computing the distance as ``|x|^2 - 2 x c + |c|^2`` needs neither.
"""

from typing import Any

import cupy as cp

CLUSTERS = 32
FEATURES = 32
CHUNKS = 12
ITERATIONS = 30
POINTS = 4_000_000

# Sums of single-precision numbers in different orders differ by about this much.
ROUNDING = 1e-4


def main(scale: float = 1.0) -> dict[str, float]:
    """Return the sum of squared distances to the nearest centre, at the start and at the end.

    Raises:
        ArithmeticError: An iteration increased the sum.
    """
    points = _make_points(max(CLUSTERS * CHUNKS, int(POINTS * scale)))
    centres = points[:CLUSTERS].copy()
    inertias: list[float] = []
    for iteration in range(ITERATIONS):
        centres, inertia = _iterate(points, centres)
        if inertias and inertia > inertias[-1] * (1 + ROUNDING):
            raise ArithmeticError(
                f"iteration {iteration} raised the inertia from {inertias[-1]} to {inertia}",
            )
        inertias.append(inertia)
    return {
        "points": float(len(points)),
        "first_inertia": inertias[0],
        "last_inertia": inertias[-1],
    }


def _make_points(count: int) -> Any:
    """Return (count, FEATURES) points scattered around CLUSTERS true centres."""
    random = cp.random.default_rng(0)
    true_centres = 4 * random.standard_normal((CLUSTERS, FEATURES), dtype=cp.float32)
    points = random.standard_normal((count, FEATURES), dtype=cp.float32)
    points += true_centres[random.integers(0, CLUSTERS, size=count)]
    return points


def _iterate(points: Any, centres: Any) -> tuple[Any, float]:
    """Return the means of the points nearest to each centre, and the inertia before the move."""
    sums = cp.zeros_like(centres)
    counts = cp.zeros(CLUSTERS, dtype=cp.float32)
    inertia = cp.zeros((), dtype=cp.float64)
    clusters = cp.arange(CLUSTERS)
    for chunk in cp.array_split(points, CHUNKS):
        labels, distances = _assign(chunk, centres)
        inertia += distances.sum(dtype=cp.float64)
        membership = (labels[:, None] == clusters).astype(cp.float32)
        sums += membership.T @ chunk
        counts += membership.sum(axis=0)
    means = cp.where(counts[:, None] > 0, sums / cp.maximum(counts, 1)[:, None], centres)
    return means, float(inertia)


def _assign(chunk: Any, centres: Any) -> tuple[Any, Any]:
    """Return, for each point, the nearest centre and the squared distance to it."""
    differences = chunk[:, None, :] - centres[None, :, :]
    distances = cp.square(differences).sum(axis=2)
    return distances.argmin(axis=1), distances.min(axis=1)
