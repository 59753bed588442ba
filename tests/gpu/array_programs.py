"""CuPy programs that waste memory or time on arrays, each with its improvement."""

from typing import Any

FLOATS = 1 << 27
SIDE = 1 << 12
ROUNDS = 20


def zeros_that_are_overwritten(cp: Any) -> None:
    source = cp.ones(FLOATS, cp.float32)
    for _ in range(ROUNDS):
        target = cp.zeros(FLOATS, cp.float32)
        cp.multiply(source, 2, out=target)
    del target


def zeros_that_are_overwritten_improved(cp: Any) -> None:
    source = cp.ones(FLOATS, cp.float32)
    for _ in range(ROUNDS):
        target = cp.empty(FLOATS, cp.float32)
        cp.multiply(source, 2, out=target)
    del target


def zeros_that_nothing_reads(cp: Any) -> None:
    image = cp.ones((SIDE, SIDE), cp.float32)
    spare = cp.zeros((SIDE, SIDE), cp.float32)
    image *= 2
    del spare


def zeros_that_nothing_reads_improved(cp: Any) -> None:
    image = cp.ones((SIDE, SIDE), cp.float32)
    image *= 2


def wide_weights(cp: Any) -> None:
    image = cp.ones((SIDE, SIDE), cp.float32)
    weights = cp.linspace(0, 1, SIDE)
    weighted = image * weights
    squared = cp.square(weighted)
    total = squared + image
    total.sum()


def wide_weights_improved(cp: Any) -> None:
    image = cp.ones((SIDE, SIDE), cp.float32)
    weights = cp.linspace(0, 1, SIDE).astype(cp.float32)
    weighted = image * weights
    squared = cp.square(weighted)
    total = squared + image
    total.sum()


def copied_coordinates(cp: Any) -> None:
    axis = cp.linspace(-1, 1, SIDE, dtype=cp.float32)
    x, y = cp.meshgrid(axis, axis)
    distance = cp.hypot(x, y)
    distance.sum()


def copied_coordinates_improved(cp: Any) -> None:
    axis = cp.linspace(-1, 1, SIDE, dtype=cp.float32)
    x, y = cp.meshgrid(axis, axis, sparse=True)
    distance = cp.hypot(x, y)
    distance.sum()


def temporaries(cp: Any) -> None:
    a, b, c = (cp.ones(FLOATS, cp.float32) for _ in "abc")
    for _ in range(ROUNDS):
        result = cp.sqrt(a * b + c)
        del result


def temporaries_improved(cp: Any) -> None:
    @cp.fuse()
    def root_of_sum(a: Any, b: Any, c: Any) -> Any:
        return cp.sqrt(a * b + c)

    a, b, c = (cp.ones(FLOATS, cp.float32) for _ in "abc")
    for _ in range(ROUNDS):
        result = root_of_sum(a, b, c)
        del result


def idle_array(cp: Any) -> None:
    image = cp.ones((SIDE, SIDE), cp.float32)
    _products(cp)
    image += 1


def idle_array_improved(cp: Any) -> None:
    import cupyx

    image = cp.ones((SIDE, SIDE), cp.float32)
    kept = cupyx.empty_pinned(image.shape, image.dtype)
    image.get(out=kept)
    del image
    _products(cp)
    image = cp.asarray(kept)
    image += 1


def _products(cp: Any) -> None:
    matrix = cp.ones((2 * SIDE, 2 * SIDE), cp.float32)
    product = cp.empty_like(matrix)
    for _ in range(ROUNDS):
        cp.matmul(matrix, matrix, out=product)


def distances(cp: Any) -> None:
    points, centres = cp.ones((1 << 20, 8), cp.float32), cp.ones((16, 8), cp.float32)
    for _ in range(ROUNDS):
        differences = points[:, None, :] - centres[None, :, :]
        nearest = cp.square(differences).sum(axis=2)
        del differences, nearest


def distances_improved(cp: Any) -> None:
    squared = cp.ReductionKernel("T x, T y", "T out", "(x - y) * (x - y)", "a + b", "out = a", "0")
    points, centres = cp.ones((1 << 20, 8), cp.float32), cp.ones((16, 8), cp.float32)
    for _ in range(ROUNDS):
        nearest = squared(points[:, None, :], centres[None, :, :], axis=2)
        del nearest


PART = 1 << 22
PARTS = 40


def joined_in_a_loop(cp: Any) -> None:
    whole = cp.empty(0, cp.float32)
    for step in range(PARTS):
        whole = cp.concatenate([whole, cp.full(PART, step, cp.float32)])


def joined_in_a_loop_improved(cp: Any) -> None:
    whole = cp.empty(PART * PARTS, cp.float32)
    for step in range(PARTS):
        whole[step * PART : (step + 1) * PART] = cp.full(PART, step, cp.float32)


def large_parts(cp: Any) -> None:
    parts = [cp.full(1 << 25, step, cp.float32) for step in range(2)]
    whole = cp.concatenate(parts)
    del parts
    whole += 1


def large_parts_improved(cp: Any) -> None:
    whole = cp.empty(2 << 25, cp.float32)
    for step in range(2):
        whole[step << 25 : (step + 1) << 25] = step
    whole += 1
