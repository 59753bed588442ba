"""R87: FFTs of a length with a large prime factor."""

from functools import partial
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.programs import MIB
from tests.unit.advice.training import installed

ROUNDS, SIZE = 10, 128 * MIB
FILE = "cupy/fft/_fft.py"
_REST = ", EPT<5u>, 32u, 0u, (padding_t)14, (twiddle_t)0, (loadstore_modifier_t)2, unsigned int"


def kernel(factor, kind="multi_bluestein_fft", number="float"):
    """Return the name of a kernel of cuFFT 12."""
    return f"void {kind}<{factor}u{_REST}, {number}, HostConfigPlaceholder>(arguments)"


# The kernels of an FFT with the seconds that each takes for 512 MiB in 4096 rows: of 7919 and 7938
# numbers, as on an H200, of 90001 and 90000 numbers, and of short rows.
PRIME = [(kernel(each), 212e-6) for each in (125, 128, 125, 128)]
FAST = [(kernel(7938, "vector_fft"), 86e-6)]
LONG = [(kernel(each), 212e-6) for each in (25, 64, 128, 25, 64, 128)]
# Of two axes.
TWO_AXES = [(kernel(each), 212e-6) for each in (125, 128, 125, 128, 27, 512, 27, 512)]
FAST_TWO_AXES = [(kernel(each, "vector_fft"), 86e-6) for each in (7938, 6750)]
FAST_LONG = [(kernel(each, "regular_fft_factor"), 90e-6) for each in (300, 300)]
SHORT = [(kernel(each), 4e-6) for each in (16, 16, 16, 16)]
FAST_SHORT = [(kernel(100, "vector_fft"), 4e-6)]
# Lengths with a prime factor up to 127 have kernels of their own.
PRIME_127 = [(kernel(each, "prime_fft_factor"), 100e-6) for each in (127, 64)]


def _fft(gpu, kernels, x, n=None, **_):
    if n is not None:
        padded = gpu.empty(x.nbytes)
        gpu.fill(padded)
        gpu.launch("cupy_copy__complex64_complex64", duration=4e-5, reads=[x], writes=[padded])
        x = padded
    result = gpu.empty(x.nbytes)
    for name, duration in kernels:
        gpu.launch(name, duration=duration, reads=[x], writes=[result])
        x = result
    return Result(result)


class Result:
    """What an FFT returns."""

    def __init__(self, memory):
        self.memory, self.nbytes, self.ptr = memory, memory.nbytes, memory.ptr

    def __getitem__(self, _):
        return self


fft, ifft = (installed(_fft, FILE, name) for name in ("fft", "ifft"))


def multiply(gpu, spectrum):
    """Multiply a spectrum by that of a filter."""
    arrays = [spectrum.memory]
    gpu.launch("multiply", duration=8e-5, reads=arrays, writes=arrays)


def convolves(gpu, cp, x, n):
    for _ in range(ROUNDS):
        spectrum = cp.fft.fft(x, n=n, axis=1)
        multiply(gpu, spectrum)
        multiply(gpu, cp.fft.ifft(spectrum.memory, axis=1)[:, :6000])


def computes_spectra(gpu, cp, x, n):
    del n
    for _ in range(ROUNDS):
        multiply(gpu, cp.fft.fft(x, axis=1))


def computes_padded_spectra(gpu, cp, x, n):
    for _ in range(ROUNDS):
        multiply(gpu, cp.fft.fft(x, n=n, axis=1))


def filters(gpu, cp, x, n):
    """Transform back without padding: the length is that of the signal."""
    del n
    for _ in range(ROUNDS):
        spectrum = cp.fft.fft(x, axis=1)
        multiply(gpu, spectrum)
        multiply(gpu, cp.fft.ifft(spectrum.memory, axis=1))


def resamples(gpu, cp, x, n):
    """Pad the spectrum: the length is that of the result."""
    for _ in range(ROUNDS):
        spectrum = cp.fft.fft(x, axis=1)
        multiply(gpu, cp.fft.ifft(spectrum.memory, n=n, axis=1))


def transforms_twice(gpu, cp, x, n):
    """Two FFTs in one line, with nothing between them."""
    del n
    for _ in range(ROUNDS):
        multiply(gpu, cp.fft.fft(cp.fft.fft(x).memory))


def recorded(program, kernels) -> Recording:
    """Return the recording of a program whose FFTs consist of some kernels."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        functions = {name: partial(each, gpu, kernels) for name, each in FUNCTIONS.items()}
        x = gpu.empty(SIZE)
        gpu.copy_to_device(x, pinned=True)
        program(gpu, SimpleNamespace(fft=SimpleNamespace(**functions)), x, 7919)
        gpu.synchronize()
    return recorder.recording


FUNCTIONS = {"fft": fft, "ifft": ifft}


def convolves_slowly() -> Recording:
    """Return the recording of a program that convolves by FFTs of 7919 numbers."""
    return recorded(convolves, PRIME)


def found(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R87"]


@pytest.mark.parametrize(
    ("program", "slow", "fast"),
    [
        (convolves, PRIME, FAST),
        (convolves, LONG, FAST_LONG),
        (convolves, SHORT, FAST_SHORT),
        (computes_spectra, PRIME, FAST),
        (computes_spectra, TWO_AXES, FAST_TWO_AXES),
        (transforms_twice, PRIME, FAST),
    ],
)
def test_slow_lengths_are_found_and_a_fast_one_saves_what_was_predicted(program, slow, fast):
    before, after = recorded(program, slow), recorded(program, fast)
    (finding,) = found(before)

    measured = before.duration_ns - after.duration_ns
    assert 0.8 * measured <= finding.saved_ns <= 1.05 * measured
    assert found(after) == []


def test_padding_to_another_length_is_advised_where_a_line_pads_and_another_transforms_back():
    (finding,) = found(convolves_slowly())

    assert finding.title == (
        "`spectrum = cp.fft.fft(x, n=n, axis=1)` and 1 more line compute FFTs of a length with a "
        "large prime factor."
    )
    assert finding.reason.startswith("20 FFTs in 80 kernels of Bluestein's algorithm take 17.0 ms.")
    assert finding.change.startswith("Pad to `cupyx.scipy.fft.next_fast_len(n)` instead of `n`")
    assert finding.certainty == "likely"


@pytest.mark.parametrize("program", [computes_spectra, computes_padded_spectra, filters, resamples])
def test_the_length_of_a_signal_may_have_to_stay(program):
    (finding,) = found(recorded(program, PRIME))

    assert finding.change.startswith("Use a length of `cupyx.scipy.fft.next_fast_len(n)`, if the")
    assert finding.certainty == "possible"


def test_double_precision_fits_into_one_kernel_up_to_half_the_length():
    double = [(kernel(each, number="double"), 212e-6) for each in (125, 128, 125, 128)]
    single, other = (found(recorded(computes_spectra, each))[0] for each in (PRIME, double))

    assert single.saved_ns > other.saved_ns > single.saved_ns / 2


@pytest.mark.parametrize(
    "kernels",
    [
        FAST,
        FAST_LONG,
        PRIME_127,
        # A kernel of the program, and what is no FFT as a whole.
        [("bluestein_chirp", 1e-4)] * 4,
        [(kernel(125), 2e-4)],
        [(kernel(each), 2e-4) for each in (125, 128, 125)],
    ],
)
def test_other_kernels_are_no_finding(kernels):
    assert found(recorded(convolves, kernels)) == []


def test_lines_with_the_same_lengths_are_one_finding_and_others_another():
    def program(gpu, cp, x, n):
        del n
        other = partial(fft, gpu, LONG)
        for _ in range(ROUNDS):
            spectrum = cp.fft.fft(x)
            multiply(gpu, spectrum)
            multiply(gpu, cp.fft.ifft(spectrum.memory))
            multiply(gpu, other(x))

    assert sorted(len(each.lines) for each in found(recorded(program, PRIME))) == [1, 2]
