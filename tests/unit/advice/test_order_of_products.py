"""R90: matrix products in the slower order."""

from functools import partial
from math import prod

import pytest

import gpuviz
from gpuviz.advice.findings import findings

ROWS, FEW = 4096, 64
GEMM = "nvjet_sss_128x128_32x4_2x1_v_bz_TNN"
GEMV = "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>"
SQUARE = "cupy_square__float32_float32"
SUM = "cupy_sum"
ROUNDS = 20


class Matrices:
    """Matrices of float32 on a GPU, whose products take as long as an H200 needs for them."""

    def __init__(self, gpu, batch=1):
        self._gpu, self._batch = gpu, batch
        self._shapes = {}

    def empty(self, *shape):
        made = self._gpu.empty(4 * self._batch * prod(shape))
        self._shapes[made.ptr] = shape
        return made

    def filled(self, *shape):
        made = self.empty(*shape)
        self._gpu.launch("fill", duration=1e-6, writes=[made])
        return made

    def product(self, a, b, *, transposed=False, beside=()):
        """Multiply two matrices, the first one transposed if asked."""
        rows, inner = self._shapes[a.ptr][:: -1 if transposed else 1]
        columns = self._shapes[b.ptr][1]
        result = self.empty(rows, columns)
        moved = 4 * self._batch * (rows * inner + inner * columns + rows * columns)
        duration = max(2 * self._batch * rows * inner * columns / 40e12, moved / 3e12, 3e-6)
        name = GEMV if columns == 1 else GEMM
        self._gpu.launch(name, duration=duration, reads=[a, b, *beside], writes=[result])
        return result

    def run(self, name, read):
        result = self.empty(*self._shapes[read.ptr])
        self._gpu.launch(name, duration=1e-5, reads=[read], writes=[result])
        return result


def recorded(program, **options):
    """Record some rounds of a program with matrices."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        matrices = Matrices(gpu, **options)
        for _ in range(ROUNDS):
            program(matrices)
        gpu.synchronize()
    return recorder.recording


def found(program, **options):
    made = findings(recorded(program, **options), small=True)
    return [each for each in made if each.rule == "R90"]


def attends(matrices, *, first=False):
    """Mix values by the products of queries and keys, as attention without a softmax does."""
    query, key = matrices.filled(ROWS, FEW), matrices.filled(FEW, ROWS)
    value = matrices.filled(ROWS, FEW)
    if first:
        return matrices.product(query, matrices.product(key, value))
    scores = matrices.product(query, key)
    return matrices.product(scores, value)


def projects(matrices, *, first=False):
    """Project a vector on the columns of a matrix, with the inverse of their products."""
    columns, inverse = matrices.filled(ROWS, FEW), matrices.filled(FEW, FEW)
    rows, vector = matrices.filled(FEW, ROWS), matrices.filled(ROWS, 1)
    scaled = matrices.product(columns, inverse)
    if first:
        return matrices.product(scaled, matrices.product(rows, vector))
    hat = matrices.product(scaled, rows)
    return matrices.product(hat, vector)


def walks(matrices, *, first=False):
    """Let a vector walk three steps."""
    steps, vector = matrices.filled(ROWS, ROWS), matrices.filled(ROWS, 1)
    if first:
        for _ in range(3):
            vector = matrices.product(steps, vector)
        return vector
    twice = matrices.product(steps, steps)
    thrice = matrices.product(twice, steps)
    return matrices.product(thrice, vector)


def iterates(matrices):
    """Multiply a small matrix, made once, with a vector many times."""
    tall, vector = matrices.filled(65536, 512), matrices.filled(512, 1)
    gram = matrices.product(tall, tall, transposed=True)
    for _ in range(100):
        vector = matrices.product(gram, vector)
    return vector


def squares_between(matrices):
    """Apply a function to the product before it is multiplied."""
    query, key = matrices.filled(ROWS, FEW), matrices.filled(FEW, ROWS)
    scores = matrices.run(SQUARE, matrices.product(query, key))
    return matrices.product(scores, matrices.filled(ROWS, FEW))


def sums_besides(matrices):
    """Need the product itself too."""
    query, key = matrices.filled(ROWS, FEW), matrices.filled(FEW, ROWS)
    scores = matrices.product(query, key)
    matrices.run(SUM, scores)
    return matrices.product(scores, matrices.filled(ROWS, FEW))


def squares_the_product(matrices):
    """Multiply the product with itself."""
    product = matrices.product(matrices.filled(ROWS, ROWS), matrices.filled(ROWS, ROWS))
    return matrices.product(product, product)


def reduces_first(matrices):
    """Multiply in the order with the smaller matrix between, as two layers of a network."""
    hidden = matrices.product(matrices.filled(ROWS, 1024), matrices.filled(1024, 512))
    return matrices.product(hidden, matrices.filled(512, 1024))


def adds_a_third(matrices):
    """Add a matrix to the product, as with a bias."""
    query, key = matrices.filled(ROWS, FEW), matrices.filled(FEW, ROWS)
    scores = matrices.product(query, key, beside=[matrices.filled(ROWS, ROWS)])
    return matrices.product(scores, matrices.filled(ROWS, FEW))


@pytest.mark.parametrize("program", [attends, projects, walks])
def test_the_other_order_saves_what_was_predicted(program):
    before, after = recorded(program), recorded(partial(program, first=True))
    made = found(program)

    saved = before.duration_ns - after.duration_ns
    assert sum(each.saved_ns for each in made) == pytest.approx(saved, rel=0.05)
    assert found(partial(program, first=True)) == []


def test_the_bytes_are_those_of_the_larger_matrix():
    before, after = recorded(attends), recorded(partial(attends, first=True))
    (finding,) = found(attends)

    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert "64.0 MiB" in finding.title
    assert "one of 1.00 MiB" in finding.title
    assert "20 times" in finding.title


def test_batches_have_the_same_orders():
    before, after = (recorded(partial(attends, first=first), batch=8) for first in (False, True))
    (finding,) = found(attends, batch=8)

    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.05)


@pytest.mark.parametrize(
    "program",
    [
        *(iterates, squares_between, sums_besides),
        *(squares_the_product, reduces_first, adds_a_third),
    ],
)
def test_products_that_need_their_order_are_not_found(program):
    assert found(program) == []
