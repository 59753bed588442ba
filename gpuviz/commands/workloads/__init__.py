"""Five small CuPy programs for demonstrations.

Each is a module with ``main(scale=1.0)``, which computes on the current GPU, checks its result
against a known one, and returns the checked numbers. At scale 1 a run takes seconds on a large GPU.
``scale`` changes the sizes, but hardly the number of iterations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast


@dataclass(frozen=True, slots=True)
class Workload:
    """A program of this package: description and module."""

    description: str
    module: str

    def run(self, scale: float = 1.0) -> dict[str, float]:
        """Return the checked results of one run on the current GPU.

        Raises:
            ArithmeticError: A result differs from the known one.
            ModuleNotFoundError: CuPy is not installed.
        """
        main = import_module(self.module).main
        return cast("Callable[[float], dict[str, float]]", main)(scale)


def _workload(name: str, description: str) -> Workload:
    return Workload(description, f"{__name__}.{name}")


WORKLOADS = {
    "kmeans": _workload(
        "kmeans",
        "Cluster points in chunks; the differences to every centre dominate the peak.",
    ),
    "conjugate_gradient": _workload(
        "conjugate_gradient",
        "Solve a sparse Poisson system; a history of solutions makes memory grow.",
    ),
    "fft_filter": _workload(
        "fft_filter",
        "Filter a signal in chunks on two streams, which pageable memory keeps from overlapping.",
    ),
    "monte_carlo": _workload(
        "monte_carlo",
        "Price an option with a RawKernel; concatenating the batches doubles the memory.",
    ),
    "image_pipeline": _workload(
        "image_pipeline",
        "Count spots in images; copies overlap with kernels, and an intermediate lives too long.",
    ),
}
