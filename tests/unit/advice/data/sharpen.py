"""Sharpens a picture, and computes the spectrum of the blur again in each round.

Recorded on an H200 with ``gpuviz run --output sharpen.gpuviz sharpen.py``.
"""

import cupy as cp

SIDE, ROUNDS = 1024, 12
blur_kernel = cp.ElementwiseKernel(
    "int32 side, float32 width",
    "float32 blur",
    """
    int r = i / side, c = i % side;
    float y = min(r, side - r), x = min(c, side - c);
    blur = expf(-(x * x + y * y) / (2.0f * width * width)) / (6.2831853f * width * width);
    """,
    "blur_kernel",
)


def spectrum(width):
    blur = cp.empty((SIDE, SIDE), cp.float32)
    blur_kernel(SIDE, width, blur)
    return cp.fft.rfft2(blur)


def blurred(image, width):
    return cp.fft.irfft2(cp.fft.rfft2(image) * spectrum(width), s=image.shape)


picture = cp.random.default_rng(1).random((SIDE, SIDE), dtype=cp.float32)
estimate = cp.ones_like(picture)
for _ in range(ROUNDS):
    estimate *= blurred(picture / blurred(estimate, 3.0), 3.0)
noise = [cp.random.random((SIDE, SIDE)).sum() for _ in range(ROUNDS)]
total = float(estimate.sum()) + float(sum(noise))
