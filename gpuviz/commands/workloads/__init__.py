"""Five small CuPy programs for demonstrations.

Each is a module with ``main(scale=1.0)``: it does real work on the current GPU, checks its own
result against something known, and returns the numbers that it checked. At scale 1 a run takes
seconds on a large GPU; the number of iterations hardly depends on ``scale``, the sizes do.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Workload:
    """A program of this package: one sentence about it, and where it is."""

    description: str
    module: str

    def run(self, scale: float = 1.0) -> dict[str, float]:
        """Return the checked results of one run on the current GPU.

        Raises:
            ArithmeticError: A result missed the value that it was checked against.
            ModuleNotFoundError: CuPy is not installed.
        """
        main = import_module(self.module).main
        return cast("Callable[[float], dict[str, float]]", main)(scale)


def _workload(name: str, description: str) -> Workload:
    return Workload(description, f"{__name__}.{name}")


WORKLOADS = {
    "kmeans": _workload(
        "kmeans",
        "Cluster points in chunks: the differences to every centre dominate the peak.",
    ),
    "conjugate_gradient": _workload(
        "conjugate_gradient",
        "Solve a sparse Poisson system: a history of solutions makes memory climb.",
    ),
    "fft_filter": _workload(
        "fft_filter",
        "Filter a signal in chunks: tries to overlap two streams from pageable memory.",
    ),
    "monte_carlo": _workload(
        "monte_carlo",
        "Price an option with a RawKernel: joining the list of batches doubles what it holds.",
    ),
    "image_pipeline": _workload(
        "image_pipeline",
        "Count spots in images: copies run behind kernels, an intermediate outlives its use.",
    ),
}
