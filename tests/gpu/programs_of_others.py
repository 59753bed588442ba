"""Programs of the suites on which DrGPUM was measured, with CuPy: as published, and improved.

The kernels are our own; the sizes of the arrays, and the order in which the programs allocate,
copy, use and free them, are those of PolyBench/GPU, Rodinia and the CUDA samples.
"""

import cupy as cp
import cupyx
import numpy as np

_MULTIPLY = cp.RawKernel(
    r"""
extern "C" __global__ void multiply(const float* a, const float* b, float* c, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
""",
    "multiply",
)
_NORM = cp.RawKernel(
    r"""
extern "C" __global__ void column_norm(const float* a, float* r, int n, int k, int stride) {
    if (blockIdx.x || threadIdx.x) return;
    float sum = 0;
    for (int row = 0; row < n; row++) sum += a[row * n + k] * a[row * n + k];
    r[k * stride + k] = sqrtf(sum);
}
""",
    "column_norm",
)
_NORMALIZE = cp.RawKernel(
    r"""
extern "C" __global__ void normalize(const float* a, const float* r, float* q, int n, int k,
                                     int stride) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) q[row * n + k] = a[row * n + k] / r[k * stride + k];
}
""",
    "normalize",
)
_SUBTRACT = cp.RawKernel(
    r"""
extern "C" __global__ void subtract(float* a, float* r, const float* q, int n, int k, int stride) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column <= k || column >= n) return;
    float sum = 0;
    for (int row = 0; row < n; row++) sum += q[row * n + k] * a[row * n + column];
    r[k * stride + column] = sum;
    for (int row = 0; row < n; row++) a[row * n + column] -= q[row * n + k] * sum;
}
""",
    "subtract",
)
_TIMES = cp.RawKernel(
    r"""
extern "C" __global__ void times(const float* a, const float* x, float* y, int n, int transposed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += (transposed ? a[k * n + i] : a[i * n + k]) * x[k];
    y[i] = sum;
}
""",
    "times",
)
_INCREMENT = cp.RawKernel(
    r"""
extern "C" __global__ void increment(const int* from, int* to, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = from[i] + 1;
}
""",
    "increment",
)
_SPLIT = cp.RawKernel(
    r"""
extern "C" __global__ void split(const unsigned char* image, int* red, int* green, int* blue,
                                 int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    red[i] = image[3 * i] - 128;
    green[i] = image[3 * i + 1] - 128;
    blue[i] = image[3 * i + 2] - 128;
}
""",
    "split",
)
# One level of a Haar transform: averages to the upper left quarter, differences to the others.
_LEVEL = cp.RawKernel(
    r"""
extern "C" __global__ void level(const int* in, int* out, int side, int stride) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int half = side / 2;
    if (x >= half || y >= half) return;
    int a = in[2 * y * stride + 2 * x], b = in[2 * y * stride + 2 * x + 1];
    int c = in[(2 * y + 1) * stride + 2 * x], d = in[(2 * y + 1) * stride + 2 * x + 1];
    out[y * stride + x] = (a + b + c + d) / 4;
    out[y * stride + x + half] = a - b;
    out[(y + half) * stride + x] = a - c;
    out[(y + half) * stride + x + half] = a - d;
}
""",
    "level",
)
_TO_INPUT = cp.RawKernel(
    r"""
extern "C" __global__ void to_input(const int* out, int* in, int side, int stride) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < side && y < side) in[y * stride + x] = out[y * stride + x];
}
""",
    "to_input",
)
_ENCODE = cp.RawKernel(
    r"""
extern "C" __global__ void encode(const unsigned* text, const unsigned* codes,
                                  const unsigned* lengths, unsigned* words, unsigned* sizes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    words[i] = codes[text[i] & 255];
    atomicAdd(&sizes[blockIdx.x], lengths[text[i] & 255]);
}
""",
    "encode",
)
_SCAN = cp.RawKernel(
    r"""
extern "C" __global__ void scan(const unsigned* sizes, unsigned* places, unsigned* sums, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        places[i] = sum;
        sum += sizes[i];
    }
    sums[0] = sum;
}
""",
    "scan",
)
_PACK = cp.RawKernel(
    r"""
extern "C" __global__ void pack(const unsigned* words, const unsigned* sizes,
                                const unsigned* places, unsigned* packed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (sizes[i]) packed[places[i] % n] = words[i * (n / (gridDim.x * blockDim.x))];
}
""",
    "pack",
)


def square(side: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return grid and block for a matrix with this side."""
    return (-(-side // 16), -(-side // 16)), (16, 16)


def two_products(n=2048):
    """2MM: D = (A B) C."""
    host = np.full((n, n), 0.5, np.float32)
    product = cp.empty((n, n), cp.float32)
    a = cp.empty((n, n), cp.float32)
    b = cp.empty((n, n), cp.float32)
    c = cp.empty((n, n), cp.float32)
    d = cp.empty((n, n), cp.float32)
    product.set(host)
    a.set(host)
    b.set(host)
    c.set(host)
    d.set(host)
    _MULTIPLY(*square(n), (a, b, product, n))
    cp.cuda.Device().synchronize()
    _MULTIPLY(*square(n), (product, c, d, n))
    cp.cuda.Device().synchronize()
    return d.get()


def two_products_improved(n=2048):
    host = np.full((n, n), 0.5, np.float32)
    product = cp.empty((n, n), cp.float32)
    a = cp.empty((n, n), cp.float32)
    b = cp.empty((n, n), cp.float32)
    product.set(host)
    a.set(host)
    b.set(host)
    _MULTIPLY(*square(n), (a, b, product, n))
    cp.cuda.Device().synchronize()
    del a, b
    c = cp.empty((n, n), cp.float32)
    c.set(host)
    d = cp.empty((n, n), cp.float32)
    d.set(host)
    _MULTIPLY(*square(n), (product, c, d, n))
    cp.cuda.Device().synchronize()
    return d.get()


def three_products(n=512):
    """3MM: G = (A B) (C D)."""
    host = np.full((n, n), 0.5, np.float32)
    a = cp.empty((n, n), cp.float32)
    b = cp.empty((n, n), cp.float32)
    c = cp.empty((n, n), cp.float32)
    d = cp.empty((n, n), cp.float32)
    e = cp.empty((n, n), cp.float32)
    f = cp.empty((n, n), cp.float32)
    g = cp.empty((n, n), cp.float32)
    a.set(host)
    b.set(host + 1)
    c.set(host + 2)
    d.set(host + 3)
    e.set(host + 4)
    f.set(host + 5)
    g.set(host + 6)
    _MULTIPLY(*square(n), (a, b, e, n))
    cp.cuda.Device().synchronize()
    _MULTIPLY(*square(n), (c, d, f, n))
    cp.cuda.Device().synchronize()
    _MULTIPLY(*square(n), (e, f, g, n))
    cp.cuda.Device().synchronize()
    return g.get()


def three_products_improved(n=512):
    host = np.full((n, n), 0.5, np.float32)
    a = cp.empty((n, n), cp.float32)
    b = cp.empty((n, n), cp.float32)
    e = cp.empty((n, n), cp.float32)
    a.set(host)
    b.set(host + 1)
    e.set(host + 4)
    _MULTIPLY(*square(n), (a, b, e, n))
    cp.cuda.Device().synchronize()
    del a, b
    c = cp.empty((n, n), cp.float32)
    c.set(host + 2)
    d = cp.empty((n, n), cp.float32)
    d.set(host + 3)
    f = cp.empty((n, n), cp.float32)
    f.set(host + 5)
    _MULTIPLY(*square(n), (c, d, f, n))
    cp.cuda.Device().synchronize()
    del c, d
    g = cp.empty((n, n), cp.float32)
    g.set(host + 6)
    _MULTIPLY(*square(n), (e, f, g, n))
    cp.cuda.Device().synchronize()
    return g.get()


def orthogonalize(n=2048, columns=32):
    """GRAMSCHM: Gram-Schmidt of a matrix; only the first columns, to save time."""
    host = np.random.default_rng(1).random((n, n), np.float32)
    a = cp.empty((n, n), cp.float32)
    r = cp.empty((n, n), cp.float32)
    q = cp.empty((n, n), cp.float32)
    a.set(host)
    for k in range(columns):
        _NORM((1,), (256,), (a, r, n, k, n))
        cp.cuda.Device().synchronize()
        _NORMALIZE((n // 256,), (256,), (a, r, q, n, k, n))
        cp.cuda.Device().synchronize()
        _SUBTRACT((n // 256,), (256,), (a, r, q, n, k, n))
        cp.cuda.Device().synchronize()
    return a.get()


def orthogonalize_improved(n=2048, columns=32):
    """The same with one row of R, since no kernel uses more."""
    host = np.random.default_rng(1).random((n, n), np.float32)
    a = cp.empty((n, n), cp.float32)
    r = cp.empty(n, cp.float32)
    q = cp.empty((n, n), cp.float32)
    a.set(host)
    for k in range(columns):
        _NORM((1,), (256,), (a, r, n, k, 0))
        _NORMALIZE((n // 256,), (256,), (a, r, q, n, k, 0))
        _SUBTRACT((n // 256,), (256,), (a, r, q, n, k, 0))
    return a.get()


def two_vectors(n=4096):
    """BICG: s = A^T r and q = A p."""
    matrix, vector = np.full((n, n), 0.5, np.float32), np.full(n, 0.5, np.float32)
    a = cp.empty((n, n), cp.float32)
    r = cp.empty(n, cp.float32)
    s = cp.empty(n, cp.float32)
    p = cp.empty(n, cp.float32)
    q = cp.empty(n, cp.float32)
    a.set(matrix)
    r.set(vector)
    s.set(vector)
    p.set(vector)
    q.set(vector)
    _TIMES((n // 256,), (256,), (a, r, s, n, 1))
    cp.cuda.Device().synchronize()
    _TIMES((n // 256,), (256,), (a, p, q, n, 0))
    cp.cuda.Device().synchronize()
    return s.get(), q.get()


def two_vectors_improved(n=4096):
    matrix, vector = np.full((n, n), 0.5, np.float32), np.full(n, 0.5, np.float32)
    a = cp.empty((n, n), cp.float32)
    r = cp.empty(n, cp.float32)
    s = cp.empty(n, cp.float32)
    a.set(matrix)
    r.set(vector)
    s.set(vector)
    _TIMES((n // 256,), (256,), (a, r, s, n, 1))
    del r
    p = cp.empty(n, cp.float32)
    p.set(vector)
    q = cp.empty(n, cp.float32)
    q.set(vector)
    _TIMES((n // 256,), (256,), (a, p, q, n, 0))
    cp.cuda.Device().synchronize()
    return s.get(), q.get()


def increments(n=1 << 26, streams=4, cycles=10):
    """simpleMultiCopy: copy in, increment and copy out, on one stream and then on four."""
    source, sink = cupyx.empty_pinned(n, np.int32), cupyx.empty_pinned(n, np.int32)
    source[:] = 1
    inputs, outputs = [], []
    for _ in range(streams):
        inputs.append(cp.zeros(n, cp.int32))
        outputs.append(cp.empty(n, cp.int32))
    queues = [cp.cuda.Stream(non_blocking=True) for _ in range(streams)]
    cp.cuda.Device().synchronize()
    lanes = list(zip(queues, inputs, outputs, strict=True))
    _cycle(lanes[:1], source, sink, cycles)
    _cycle(lanes, source, sink, cycles)
    return sink


def increments_improved(n=1 << 26, streams=4, cycles=10):
    """The same with kernels that overwrite their inputs."""
    source, sink = cupyx.empty_pinned(n, np.int32), cupyx.empty_pinned(n, np.int32)
    source[:] = 1
    arrays = [cp.zeros(n, cp.int32) for _ in range(streams)]
    queues = [cp.cuda.Stream(non_blocking=True) for _ in range(streams)]
    cp.cuda.Device().synchronize()
    lanes = list(zip(queues, arrays, arrays, strict=True))
    _cycle(lanes[:1], source, sink, cycles)
    _cycle(lanes, source, sink, cycles)
    return sink


def _cycle(lanes, source, sink, cycles):
    """Increment on each lane (a stream, an input and an output) in turn, and fill the next one."""
    stream, x, y = lanes[0]
    x.set(source, stream=stream)
    for cycle in range(1, cycles + 1):
        with stream:
            _INCREMENT((1024,), (512,), (x, y, len(source)))
        y.get(stream=stream, out=sink, blocking=False)
        stream, x, y = lanes[cycle % len(lanes)]
        stream.synchronize()
        x.set(source, stream=stream)
    cp.cuda.Device().synchronize()


def wavelets(side=192):
    """Dwt2d: three components of an image, one after the other, three levels each."""
    pixels = side * side
    host = np.random.default_rng(1).integers(0, 255, 3 * pixels, np.uint8)
    red_out = cp.zeros(pixels, cp.int32)
    backup = cp.zeros(pixels, cp.int32)
    green_out = cp.zeros(pixels, cp.int32)
    blue_out = cp.zeros(pixels, cp.int32)
    red = cp.zeros(pixels, cp.int32)
    green = cp.zeros(pixels, cp.int32)
    blue = cp.zeros(pixels, cp.int32)
    image = cp.empty(3 * pixels, cp.uint8)
    image.set(host)
    _SPLIT((-(-pixels // 256),), (256,), (image, red, green, blue, pixels))
    del image
    backup.data.copy_from_device_async(red.data, red.nbytes)
    _transform(red, red_out, side)
    backup.data.copy_from_device_async(green.data, green.nbytes)
    _transform(green, green_out, side)
    backup.data.copy_from_device_async(blue.data, blue.nbytes)
    _transform(blue, blue_out, side)
    return red_out.get(), green_out.get(), blue_out.get()


def wavelets_improved(side=192):
    pixels = side * side
    host = np.random.default_rng(1).integers(0, 255, 3 * pixels, np.uint8)
    red = cp.zeros(pixels, cp.int32)
    green = cp.zeros(pixels, cp.int32)
    blue = cp.zeros(pixels, cp.int32)
    image = cp.empty(3 * pixels, cp.uint8)
    image.set(host)
    _SPLIT((-(-pixels // 256),), (256,), (image, red, green, blue, pixels))
    del image
    red_out = cp.zeros(pixels, cp.int32)
    _transform(red, red_out, side)
    del red
    green_out = cp.zeros(pixels, cp.int32)
    _transform(green, green_out, side)
    del green
    blue_out = cp.zeros(pixels, cp.int32)
    _transform(blue, blue_out, side)
    return red_out.get(), green_out.get(), blue_out.get()


def _transform(component, out, side):
    for part in (side, side // 2, side // 4):
        _LEVEL(*square(part // 2), (component, out, part, side))
        _TO_INPUT(*square(part // 2), (out, component, part // 2, side))


def encode(n=1 << 18, groups=1024):
    """Huffman: encode blocks of a text, then pack them."""
    host = np.random.default_rng(1).integers(0, 256, n).astype(np.uint32)
    source = cp.empty(n, cp.uint32)
    words = cp.empty(n, cp.uint32)
    packed = cp.empty(n, cp.uint32)
    codes = cp.empty(256, cp.uint32)
    lengths = cp.empty(256, cp.uint32)
    code_words = cp.empty(n, cp.uint32)
    code_lengths = cp.empty(n, cp.uint32)
    code_places = cp.empty(n, cp.uint32)
    sizes = cp.empty(groups, cp.uint32)
    places = cp.empty(groups, cp.uint32)
    source.set(host)
    codes.set(host[:256])
    lengths.set(host[:256])
    words.set(host)
    for _ in range(10):
        _ENCODE((groups,), (n // groups,), (source, codes, lengths, words, sizes))
    cp.cuda.Device().synchronize()
    sums = cp.empty(2, cp.uint32)
    packed.data.memset_async(0, packed.nbytes)
    _SCAN((1,), (1,), (sizes, places, sums, groups))
    _PACK((groups // 16,), (16,), (words, sizes, places, packed, n))
    del sums
    result = packed.get()
    del code_words, code_lengths, code_places
    return result


def encode_improved(n=1 << 18, groups=1024):
    host = np.random.default_rng(1).integers(0, 256, n).astype(np.uint32)
    source = cp.empty(n, cp.uint32)
    words = cp.empty(n, cp.uint32)
    codes = cp.empty(256, cp.uint32)
    lengths = cp.empty(256, cp.uint32)
    sizes = cp.empty(groups, cp.uint32)
    places = cp.empty(groups, cp.uint32)
    source.set(host)
    codes.set(host[:256])
    lengths.set(host[:256])
    words.set(host)
    for _ in range(10):
        _ENCODE((groups,), (n // groups,), (source, codes, lengths, words, sizes))
    cp.cuda.Device().synchronize()
    del source
    sums = cp.empty(2, cp.uint32)
    _SCAN((1,), (1,), (sizes, places, sums, groups))
    packed = cp.empty(n, cp.uint32)
    packed.data.memset_async(0, packed.nbytes)
    _PACK((groups // 16,), (16,), (words, sizes, places, packed, n))
    return packed.get()
