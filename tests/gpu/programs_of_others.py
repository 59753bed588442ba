"""Programs of the suites on which DrGPUM was measured, with CuPy: as published, and improved.

The kernels are our own; the sizes of the arrays, and the order in which the programs allocate,
copy, use and free them, are those of PolyBench/GPU, Rodinia and the CUDA samples.
"""

from collections.abc import Callable

from tests.gpu.matrix_programs_of_others import (
    orthogonalize,
    orthogonalize_improved,
    three_products,
    three_products_improved,
    two_products,
    two_products_improved,
    two_vectors,
    two_vectors_improved,
)
from tests.gpu.staged_programs_of_others import (
    encode,
    encode_improved,
    increments,
    increments_improved,
    wavelets,
    wavelets_improved,
)

PROGRAMS: dict[str, Callable[[], object]] = {
    each.__name__: each
    for each in (
        two_products,
        two_products_improved,
        three_products,
        three_products_improved,
        orthogonalize,
        orthogonalize_improved,
        two_vectors,
        two_vectors_improved,
        increments,
        increments_improved,
        wavelets,
        wavelets_improved,
        encode,
        encode_improved,
    )
}
