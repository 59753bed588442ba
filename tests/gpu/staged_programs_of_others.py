"""Programs of Rodinia and the CUDA samples that work in stages: as published, and improved."""

import cupy as cp
import cupyx
import numpy as np

from tests.gpu.matrix_programs_of_others import square

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
