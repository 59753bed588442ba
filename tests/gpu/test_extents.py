"""Which bytes launches are said to access, against CuPy's own addresses and strides."""

import itertools
import random
from functools import partial

import cupy
import pytest

import gpuviz

pytestmark = pytest.mark.gpu

ROUNDS = 60


def span(array):
    """Return the first byte of an array and its bytes, 0 if there are gaps between them."""
    strides = [
        (stride, length)
        for stride, length in zip(array.strides, array.shape, strict=True)
        if length > 1 and stride
    ]
    offsets = {
        sum(step * stride for step, (stride, _) in zip(steps, strides, strict=True))
        for steps in itertools.product(*(range(length) for _, length in strides))
    }
    low, size = min(offsets), array.itemsize
    touched = {offset + byte for offset in offsets for byte in range(size)}
    is_dense = len(touched) == max(offsets) + size - low
    return array.data.ptr + low, len(touched) if is_dense else 0


def apart(array):
    """Return the bytes from an element to the nearest if there are gaps between all, else 0."""
    steps = zip(array.strides, array.shape, strict=True)
    nearest = min((abs(stride) for stride, length in steps if length > 1 and stride), default=0)
    return nearest if nearest > array.itemsize else 0


def random_view(rng, dtype):
    array = cupy.zeros(tuple(rng.randint(1, 6) for _ in range(rng.randint(1, 4))), dtype)
    slices = []
    for length in array.shape:
        start = rng.randrange(length)
        stop = rng.randint(start + 1, length)
        part = slice(start, stop, rng.choice((1, 1, 2)))
        slices.append(part if rng.random() < 0.7 else slice(None, None, rng.choice((1, -1))))
    view = array[tuple(slices)]
    if rng.random() < 0.5:
        view = view.transpose(rng.sample(range(view.ndim), view.ndim))
    return view


@pytest.fixture(autouse=True)
def gpuviz_allocator():
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(gpuviz.malloc)
    yield
    cupy.cuda.set_allocator(before)


@pytest.fixture
def said():
    """Return a function that records a call, and what its launches are said to access."""

    def record(call):
        cupy.cuda.Device().synchronize()
        with gpuviz.record() as recorder:
            call()
        rows = recorder.recording.tables["launch_blocks"].to_pylist()
        return {(row["address"], row["bytes"], row["mode"]) for row in rows}

    return record


def test_the_distances_of_the_elements_of_ufuncs_are_those_of_their_arrays():
    rng = random.Random("stride")
    fields = cupy.zeros((20, 30, 6), "f4")
    views = [random_view(rng, "f4") for _ in range(ROUNDS)]
    views += [fields[..., 2], fields[1:-1, ::-1, 5], fields[:, 3], fields[..., :2], fields.T[0]]
    cupy.cuda.Device().synchronize()
    with gpuviz.record() as recorder:
        results = [cupy.positive(view) for view in views]
    rows = recorder.recording.tables["launch_blocks"].to_pylist()
    read = {
        (row["address"], row["stride"], row["element"]) for row in rows if row["mode"] == "read"
    }

    assert [apart(view) for view in views[-5:]] == [24, 24, 0, 0, 24]
    assert {(span(view)[0], apart(view), 4) for view in views} <= read
    assert len(results) == len(views)


@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "c16"])
def test_the_bytes_of_ufuncs_are_those_of_their_arrays(said, dtype):
    rng = random.Random(dtype)
    views = [random_view(rng, dtype) for _ in range(ROUNDS)]
    outputs = [cupy.empty(view.shape, "c16") for view in views]

    def call():
        for view, output in zip(views, outputs, strict=True):
            cupy.positive(view.astype("c16"), out=output)

    found = said(call)
    assert {size == 0 for _, size in map(span, views)} == {True, False}
    assert {(*span(view), "read") for view in views} <= found
    assert {(*span(output), "write") for output in outputs} <= found


def test_the_bytes_of_fills_and_reductions(said):
    rng = random.Random(1)
    views = [random_view(rng, "f8") for _ in range(ROUNDS)]
    sums = []
    found = said(lambda: [view.fill(1) for view in views])
    assert {(*span(view), "write") for view in views} <= found

    found = said(lambda: sums.extend(cupy.prod(view, axis=0, keepdims=True) for view in views))
    read = {(address, size) for address, size, mode in found if mode == "read"}
    for view in views:
        # A reduction by CUB receives a pointer, and its extent is not known.
        assert span(view) in read or (view.data.ptr, 0) in read


@pytest.mark.parametrize("is_compiled_before", [False, True])
def test_the_bytes_of_an_element_wise_kernel_and_of_one_with_a_condition(said, is_compiled_before):
    name = f"plain_{is_compiled_before}"
    plain = cupy.ElementwiseKernel("T x, raw T z", "T y", "y = x + z[0]", name)
    chosen = cupy.ElementwiseKernel(
        "T x", "T y", "if (x > 0) y = x", f"choice_{is_compiled_before}"
    )
    for dtype in ("f4", "f8"):
        x, y, z = (cupy.zeros(100, dtype) for _ in range(3))
        if is_compiled_before:
            plain(x, z, y)
            chosen(x, y)
        found = said(partial(plain, x, z, y))
        whole = 100 * x.itemsize
        assert (x.data.ptr, whole, "read") in found
        assert (y.data.ptr, whole, "write") in found
        assert (z.data.ptr, 0, "read") in found
        assert {size for _, size, _ in said(partial(chosen, x, y))} == {0}


def test_the_bytes_of_raw_kernels_are_not_known_and_those_of_copies_are(said):
    kernel = cupy.RawKernel(
        'extern "C" __global__ void set(float* p) { p[threadIdx.x] = 1; }', "set"
    )
    x = cupy.zeros(1000, cupy.float32)
    y = cupy.zeros(1000, cupy.float32)
    assert said(lambda: kernel((1,), (32,), (x[5:],))) == {(x.data.ptr + 20, 0, "write")}
    copied = said(lambda: y[:500].data.copy_from_device_async(x.data, 2000))
    assert copied == {(x.data.ptr, 2000, "read"), (y.data.ptr, 2000, "write")}


@pytest.mark.parametrize("shift", [0, 1])
def test_halves_of_an_array_on_two_streams_are_independent_unless_they_overlap(shift):
    one, two = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    x = cupy.zeros(2000, cupy.float32)
    cupy.add(x[:1000], 1, out=x[:1000])
    cupy.cuda.Device().synchronize()
    with gpuviz.record() as recorder:
        with one:
            cupy.add(x[: 1000 + shift], 1, out=x[: 1000 + shift])
        with two:
            cupy.add(x[1000:], 1, out=x[1000:])
    found = recorder.recording.hazards()

    assert {(each.tier, each.bytes) for each in found} == ({("certain", 4)} if shift else set())
