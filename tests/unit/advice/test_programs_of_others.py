"""Programs of the suites on which DrGPUM was measured: their arrays, on a simulated GPU.

Each has the sizes of its arrays and the order of its allocations, copies, kernels and frees. Peaks
are those published for the program and for its improved version. `tests/gpu` has them for CuPy.
"""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB, recorded

KERNEL_S = 1e-3
# An allocation is rounded to 512 bytes; the published figures are the bytes requested.
ROUNDED = 512


def two_products(gpu, nbytes=16 * MIB):
    """2MM: D = (A B) C."""
    product = gpu.empty(nbytes)
    a = gpu.empty(nbytes)
    b = gpu.empty(nbytes)
    c = gpu.empty(nbytes)
    d = gpu.empty(nbytes)
    gpu.copy_to_device(product)
    gpu.copy_to_device(a)
    gpu.copy_to_device(b)
    gpu.copy_to_device(c)
    gpu.copy_to_device(d)
    gpu.launch("multiply", duration=KERNEL_S, reads=[a, b], writes=[product])
    gpu.synchronize()
    gpu.launch("multiply", duration=KERNEL_S, reads=[product, c], writes=[d])
    gpu.synchronize()
    gpu.copy_to_host(d)


def two_products_improved(gpu, nbytes=16 * MIB):
    product = gpu.empty(nbytes)
    a = gpu.empty(nbytes)
    b = gpu.empty(nbytes)
    gpu.copy_to_device(product)
    gpu.copy_to_device(a)
    gpu.copy_to_device(b)
    gpu.launch("multiply", duration=KERNEL_S, reads=[a, b], writes=[product])
    gpu.synchronize()
    del a, b
    c = gpu.empty(nbytes)
    gpu.copy_to_device(c)
    d = gpu.empty(nbytes)
    gpu.copy_to_device(d)
    gpu.launch("multiply", duration=KERNEL_S, reads=[product, c], writes=[d])
    gpu.synchronize()
    gpu.copy_to_host(d)


def three_products(gpu, nbytes=MIB):
    """3MM: G = (A B) (C D)."""
    a = gpu.empty(nbytes)
    b = gpu.empty(nbytes)
    c = gpu.empty(nbytes)
    d = gpu.empty(nbytes)
    e = gpu.empty(nbytes)
    f = gpu.empty(nbytes)
    g = gpu.empty(nbytes)
    gpu.copy_to_device(a)
    gpu.copy_to_device(b)
    gpu.copy_to_device(c)
    gpu.copy_to_device(d)
    gpu.copy_to_device(e)
    gpu.copy_to_device(f)
    gpu.copy_to_device(g)
    gpu.launch("multiply", duration=KERNEL_S, reads=[a, b], writes=[e])
    gpu.synchronize()
    gpu.launch("multiply", duration=KERNEL_S, reads=[c, d], writes=[f])
    gpu.synchronize()
    gpu.launch("multiply", duration=KERNEL_S, reads=[e, f], writes=[g])
    gpu.synchronize()
    gpu.copy_to_host(g)


def three_products_improved(gpu, nbytes=MIB):
    a = gpu.empty(nbytes)
    b = gpu.empty(nbytes)
    e = gpu.empty(nbytes)
    gpu.copy_to_device(a)
    gpu.copy_to_device(b)
    gpu.copy_to_device(e)
    gpu.launch("multiply", duration=KERNEL_S, reads=[a, b], writes=[e])
    gpu.synchronize()
    del a, b
    c = gpu.empty(nbytes)
    d = gpu.empty(nbytes)
    f = gpu.empty(nbytes)
    gpu.copy_to_device(c)
    gpu.copy_to_device(d)
    gpu.copy_to_device(f)
    gpu.launch("multiply", duration=KERNEL_S, reads=[c, d], writes=[f])
    gpu.synchronize()
    del c, d
    g = gpu.empty(nbytes)
    gpu.copy_to_device(g)
    gpu.launch("multiply", duration=KERNEL_S, reads=[e, f], writes=[g])
    gpu.synchronize()
    gpu.copy_to_host(g)


def wavelets(gpu, pixels=192 * 192):
    """Dwt2d: three components of an image, one after the other, three levels each."""
    nbytes = 4 * pixels
    red_out = gpu.empty(nbytes)
    gpu.fill(red_out)
    backup = gpu.empty(nbytes)
    gpu.fill(backup)
    green_out = gpu.empty(nbytes)
    gpu.fill(green_out)
    blue_out = gpu.empty(nbytes)
    gpu.fill(blue_out)
    red = gpu.empty(nbytes)
    gpu.fill(red)
    green = gpu.empty(nbytes)
    gpu.fill(green)
    blue = gpu.empty(nbytes)
    gpu.fill(blue)
    image = gpu.empty(3 * pixels)
    gpu.copy_to_device(image)
    gpu.launch("split", duration=KERNEL_S, reads=[image], writes=[red, green, blue])
    del image
    gpu.copy(red, backup)
    transform(gpu, red, red_out)
    gpu.copy(green, backup)
    transform(gpu, green, green_out)
    gpu.copy(blue, backup)
    transform(gpu, blue, blue_out)
    gpu.copy_to_host(red_out)
    gpu.copy_to_host(green_out)
    gpu.copy_to_host(blue_out)


def transform(gpu, component, out):
    for _ in range(3):
        gpu.launch("level", duration=KERNEL_S, reads=[component], writes=[out])
        gpu.launch("to_input", duration=KERNEL_S, reads=[out], writes=[component])


def wavelets_improved(gpu, pixels=192 * 192):
    nbytes = 4 * pixels
    red = gpu.empty(nbytes)
    gpu.fill(red)
    green = gpu.empty(nbytes)
    gpu.fill(green)
    blue = gpu.empty(nbytes)
    gpu.fill(blue)
    image = gpu.empty(3 * pixels)
    gpu.copy_to_device(image)
    gpu.launch("split", duration=KERNEL_S, reads=[image], writes=[red, green, blue])
    del image
    red_out = gpu.empty(nbytes)
    gpu.fill(red_out)
    transform(gpu, red, red_out)
    del red
    green_out = gpu.empty(nbytes)
    gpu.fill(green_out)
    transform(gpu, green, green_out)
    del green
    blue_out = gpu.empty(nbytes)
    gpu.fill(blue_out)
    transform(gpu, blue, blue_out)
    gpu.copy_to_host(red_out)
    gpu.copy_to_host(green_out)
    gpu.copy_to_host(blue_out)


def encode(gpu, nbytes=MIB, symbols=1024, groups=4096):
    """Huffman: encode blocks of a text, then pack them."""
    source = gpu.empty(nbytes)
    encoded = gpu.empty(nbytes)
    packed = gpu.empty(nbytes)
    codes = gpu.empty(symbols)
    lengths = gpu.empty(symbols)
    words = gpu.empty(nbytes)
    word_lengths = gpu.empty(nbytes)
    word_places = gpu.empty(nbytes)
    sizes = gpu.empty(groups)
    places = gpu.empty(groups)
    gpu.copy_to_device(source)
    gpu.copy_to_device(codes)
    gpu.copy_to_device(lengths)
    gpu.copy_to_device(encoded)
    for _ in range(10):
        gpu.launch(
            "encode", duration=KERNEL_S, reads=[source, codes, lengths], writes=[encoded, sizes]
        )
    gpu.synchronize()
    sums = gpu.empty(8)
    gpu.fill(packed)
    gpu.launch("scan", duration=KERNEL_S, reads=[sizes], writes=[places, sums])
    gpu.launch("pack", duration=KERNEL_S, reads=[encoded, sizes, places], writes=[packed])
    del sums, words, word_lengths, word_places
    gpu.copy_to_host(packed)


def encode_improved(gpu, nbytes=MIB, symbols=1024, groups=4096):
    source = gpu.empty(nbytes)
    encoded = gpu.empty(nbytes)
    codes = gpu.empty(symbols)
    lengths = gpu.empty(symbols)
    sizes = gpu.empty(groups)
    places = gpu.empty(groups)
    gpu.copy_to_device(source)
    gpu.copy_to_device(codes)
    gpu.copy_to_device(lengths)
    gpu.copy_to_device(encoded)
    for _ in range(10):
        gpu.launch(
            "encode", duration=KERNEL_S, reads=[source, codes, lengths], writes=[encoded, sizes]
        )
    gpu.synchronize()
    del source
    sums = gpu.empty(8)
    gpu.launch("scan", duration=KERNEL_S, reads=[sizes], writes=[places, sums])
    packed = gpu.empty(nbytes)
    gpu.fill(packed)
    gpu.launch("pack", duration=KERNEL_S, reads=[encoded, sizes, places], writes=[packed])
    gpu.copy_to_host(packed)


@pytest.mark.parametrize(
    ("program", "improved", "peak", "improved_peak", "arrays"),
    [
        (two_products, two_products_improved, 83_886_080, 50_331_648, "a b c d"),
        (three_products, three_products_improved, 7_340_032, 4_194_304, "a b c d g"),
        (
            wavelets,
            wavelets_improved,
            1_142_784,
            589_824,
            "red_out backup green_out blue_out red green",
        ),
        (
            encode,
            encode_improved,
            6_301_704,
            2_107_392,
            "packed words word_lengths word_places source codes lengths",
        ),
    ],
)
def test_the_advice_reaches_the_published_peak(program, improved, peak, improved_peak, arrays):
    before, after = recorded(program), recorded(improved)
    about_memory = [each for each in findings(before, small=True) if each.saved_bytes]
    named = {line.source.split()[0] for each in about_memory for line in each.lines}
    further = sum(each.further_bytes for each in about_memory)

    assert before.peak().bytes == pytest.approx(peak, abs=ROUNDED)
    assert after.peak().bytes == pytest.approx(improved_peak, abs=ROUNDED)
    assert before.peak().bytes - further == pytest.approx(improved_peak, abs=ROUNDED)
    assert named == set(arrays.split())
