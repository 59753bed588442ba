"""PolyBench's products, vectors and orthogonalization of matrices: as published, and improved."""

import cupy as cp
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
