"""A European call priced by simulation: CuPy draws the random numbers, a RawKernel walks the paths.

Look for: the growth and the jump at its end. ``payoffs`` keeps every batch although only sums are
needed, and ``concatenate`` allocates the same bytes again. ``normals`` holds all steps of a batch.
"""

from math import erf, exp, log, sqrt
from typing import Any

import cupy as cp

BATCHES = 200
PATHS = 1_000_000
STEPS = 64
SPOT = 100.0
STRIKE = 105.0
RATE = 0.03
VOLATILITY = 0.25
YEARS = 1.0
LARGEST_DEVIATION = 5.0

KERNEL = r"""
extern "C" __global__ void walk_paths(
    const float* normals, float* payoffs, int paths, int steps,
    float spot, float strike, float drift, float deviation, float discount) {
  int path = blockIdx.x * blockDim.x + threadIdx.x;
  if (path >= paths) return;
  float logarithm = 0.0f;
  for (int step = 0; step < steps; ++step) {
    logarithm += drift + deviation * normals[(long long)step * paths + path];
  }
  payoffs[path] = discount * fmaxf(spot * expf(logarithm) - strike, 0.0f);
}
"""


def main(scale: float = 1.0) -> dict[str, float]:
    """Return the simulated price, its standard error and the price of the Black-Scholes formula.

    Raises:
        ArithmeticError: The prices are more than five standard errors apart.
    """
    paths = max(1024, int(PATHS * scale))
    random = cp.random.default_rng(0)
    kernel = cp.RawKernel(KERNEL, "walk_paths")
    payoffs = [_simulate(kernel, random, paths) for _ in range(BATCHES)]
    samples = cp.concatenate(payoffs)
    price = float(samples.mean(dtype=cp.float64))
    error = float(samples.std(dtype=cp.float64)) / sqrt(samples.size)
    exact = black_scholes_call()
    if not abs(price - exact) < LARGEST_DEVIATION * error:
        raise ArithmeticError(
            f"simulated price {price} +- {error}, the formula gives {exact}",
        )
    return {
        "paths": float(samples.size),
        "price": price,
        "standard_error": error,
        "exact_price": exact,
    }


def black_scholes_call() -> float:
    """Return the price of the call in closed form."""
    total_deviation = VOLATILITY * sqrt(YEARS)
    d1 = log(SPOT / STRIKE) / total_deviation + (RATE / VOLATILITY + VOLATILITY / 2) * sqrt(YEARS)
    d2 = d1 - total_deviation
    return SPOT * _normal_below(d1) - STRIKE * exp(-RATE * YEARS) * _normal_below(d2)


def _normal_below(value: float) -> float:
    """Return the probability that a standard normal variable is below the value."""
    return (1 + erf(value / sqrt(2))) / 2


def _simulate(kernel: Any, random: Any, paths: int) -> Any:
    """Return the discounted payoffs of one batch of paths."""
    year = YEARS / STEPS
    normals = random.standard_normal((STEPS, paths), dtype=cp.float32)
    payoffs = cp.empty(paths, dtype=cp.float32)
    threads = 256
    arguments = (
        normals,
        payoffs,
        cp.int32(paths),
        cp.int32(STEPS),
        cp.float32(SPOT),
        cp.float32(STRIKE),
        cp.float32((RATE - VOLATILITY**2 / 2) * year),
        cp.float32(VOLATILITY * sqrt(year)),
        cp.float32(exp(-RATE * YEARS)),
    )
    kernel(((paths + threads - 1) // threads,), (threads,), arguments)
    return payoffs
