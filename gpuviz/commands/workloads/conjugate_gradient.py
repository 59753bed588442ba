"""Conjugate gradient on the seven-point Poisson matrix of a cubic grid.

Look for: the staircase. ``history`` keeps the solution of every CHECKPOINT-th iteration for a plot
of convergence that needs one number of each; the other vectors are temporary.
"""

from typing import Any

import cupy as cp
from cupyx.scipy import sparse

CHECKPOINT = 10
GRID = 160
TOLERANCE = 1e-7
LARGEST_RESIDUAL = 1e-6


def main(scale: float = 1.0) -> dict[str, float]:
    """Return the relative residual and error of the solution, and the iterations it took.

    Raises:
        ArithmeticError: The residual, recomputed from the solution, is above 1e-6.
    """
    grid = max(8, int(GRID * scale ** (1 / 3)))
    matrix = _poisson_matrix(grid)
    exact = cp.random.default_rng(0).standard_normal(grid**3)
    right = matrix @ exact
    history, iterations = _solve(matrix, right, limit=20 * grid)
    solution = history[-1]
    residual = float(cp.linalg.norm(right - matrix @ solution) / cp.linalg.norm(right))
    if not residual < LARGEST_RESIDUAL:
        raise ArithmeticError(
            f"relative residual {residual} after {iterations} iterations, "
            f"expected less than {LARGEST_RESIDUAL}",
        )
    errors = [float(cp.linalg.norm(step - exact) / cp.linalg.norm(exact)) for step in history]
    return {
        "unknowns": float(grid**3),
        "iterations": float(iterations),
        "residual": residual,
        "first_error": errors[0],
        "last_error": errors[-1],
    }


def _poisson_matrix(grid: int) -> Any:
    """Return the (grid^3, grid^3) matrix of the negative Laplacian, in CSR."""
    line = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(grid, grid), format="csr")
    one = sparse.identity(grid, format="csr")
    square = sparse.kron(line, one, format="csr") + sparse.kron(one, line, format="csr")
    plane = sparse.identity(grid**2, format="csr")
    return sparse.kron(square, one, format="csr") + sparse.kron(plane, line, format="csr")


def _solve(matrix: Any, right: Any, *, limit: int) -> tuple[list[Any], int]:
    """Return solutions, one of every CHECKPOINT iterations and the last, and the iterations."""
    solution = cp.zeros_like(right)
    residual = right.copy()
    direction = residual.copy()
    squared = residual @ residual
    goal = TOLERANCE * float(cp.linalg.norm(right))
    history = []
    for iteration in range(limit):
        product = matrix @ direction
        step = squared / (direction @ product)
        solution = solution + step * direction
        residual = residual - step * product
        previous, squared = squared, residual @ residual
        if iteration % CHECKPOINT == 0:
            history.append(solution)
        if float(squared) ** 0.5 <= goal:
            return [*history, solution], iteration + 1
        direction = residual + (squared / previous) * direction
    return [*history, solution], limit
