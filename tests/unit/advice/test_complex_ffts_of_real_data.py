"""R85: complex FFTs of real arrays."""

from functools import partial
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.lines import function_with
from tests.unit.advice.programs import MIB, threads
from tests.unit.advice.training import installed

ROUNDS, SIZE = 4, 64 * MIB
FILE = "cupy/fft/_fft.py"
CONVERT, ABSOLUTE = "cupy_copy__float32_complex64", "cupy_absolute__complex64_float32"
COMPLEX = "void vector_fft<16384u, EPT<16u>, 1u, 1u, (padding_t)70, (twiddle_t)0>"
REAL = "void vector_fft_symm_r2c<16384u, EPT<32u>, 1u, 0u, (padding_t)70, (twiddle_t)0>"
# Seconds a byte of the real array.
CONVERSION, TRANSFORM = 1e-11, 2e-11


class Result:
    """What an FFT returns: all of a block, or half of it."""

    def __init__(self, block, *, is_half=False):
        self.block, self.is_half = block, is_half

    def __getitem__(self, _):
        return Result(self.block, is_half=True)


def _convert(gpu, x):
    converted = gpu.empty(2 * x.nbytes)
    gpu.launch(CONVERT, duration=x.nbytes * CONVERSION, reads=[x], writes=[converted])
    return converted


convert = installed(_convert, FILE, "_convert_dtype")


def _fft(gpu, kernels, x, *_, **options):
    converted = convert(gpu, x.block) if isinstance(x, Real) else x.block
    result = converted if options.get("overwrite_x") else gpu.empty(converted.nbytes)
    length = result.nbytes / 2 * TRANSFORM / kernels
    gpu.launch(COMPLEX, duration=length, reads=[converted], writes=[result])
    for _ in range(kernels - 1):
        gpu.launch(COMPLEX, duration=length, reads=[result], writes=[result])
    return Result(result)


def _rfft(gpu, x, **_):
    result = gpu.empty(x.block.nbytes)
    gpu.launch(REAL, duration=x.block.nbytes * TRANSFORM / 2, reads=[x.block], writes=[result])
    return Result(result)


fft, fft2, ifft = (installed(_fft, FILE, name) for name in ("fft", "fft2", "ifft"))
rfft = installed(_rfft, FILE, "rfft")


class Real:
    """A real array."""

    def __init__(self, block):
        self.block, self.shape, self.size = block, (2048, 4096), 2048 * 4096

    def __len__(self):
        return self.shape[0]


def absolute(gpu, result):
    """Compute the magnitude of each element that was taken, in a thread for each."""
    count = result.block.nbytes // 8 // (2 if result.is_half else 1)
    made = gpu.empty(4 * count)
    gpu.launch(ABSOLUTE, duration=1e-5, reads=[result.block], writes=[made], **threads(count))


def in_kernel(gpu, result):
    """Use the result in a kernel that may read all of it."""
    gpu.launch("mine", duration=1e-5, reads=[result.block], writes=[gpu.empty(MIB)])


def spectra(gpu, look, use, x):
    for _ in range(ROUNDS):
        gpu.launch("simulate", duration=1e-5, writes=[x.block])
        spectrum = look(x)
        use(gpu, spectrum)
        del spectrum


def recorded(look, *, use=absolute, kernels=1, kind=Real) -> Recording:
    """Return the recording of a program that computes spectra.

    Args:
        look: Computes the part of the spectrum of an array that is used.
        use: Uses it.
        kernels: The kernels of one FFT.
        kind: `Real`, or `Result` for a complex array.
    """
    gpu = gpuviz.SimulatedGPU(real_time=False)
    complex_ones = {"fft": fft, "fft2": fft2, "ifft": ifft}
    functions = {name: partial(each, gpu, kernels) for name, each in complex_ones.items()}
    with gpuviz.record(device=gpu) as recorder:
        cp = SimpleNamespace(fft=SimpleNamespace(**functions, rfft=partial(rfft, gpu)))
        spectra(gpu, lambda x: look(cp, x), use, kind(gpu.empty(SIZE)))
        gpu.synchronize()
    return recorder.recording


@pytest.fixture(name="run")
def run_of_line(tmp_path):
    """Return a function that returns the recording of a program with a line of text."""

    def run(line, **options):
        look = function_with(tmp_path, line)
        return recorded(lambda cp, x: look(cp=cp, x=x, n=4096, mask=0), **options)

    return run


def takes_half() -> Recording:
    """Return the recording of a program that takes half of the spectra of real rows."""
    n = 4096

    def look(cp, x):
        return cp.fft.fft(x, axis=1)[:, : n // 2 + 1]

    return recorded(look)


def found(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R85"]


HALF = "cp.fft.fft(x, axis=1)[:, : n // 2 + 1]"


def test_half_of_a_spectrum_is_found_and_the_fft_of_real_arrays_saves_what_was_predicted(run):
    before, after = run(HALF), run("cp.fft.rfft(x, axis=1)")
    (finding,) = found(before)

    measured = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.05)
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes == 160 * MIB
    assert finding.title == (
        "`return cp.fft.fft(x, axis=1)[:, : n // 2 + 1]` converts real arrays for complex FFTs, "
        "and takes half of the result."
    )
    assert "`cp.fft.rfft(x, axis=1)`" in finding.change
    assert found(after) == []


@pytest.mark.parametrize(
    ("line", "instead", "kernels"),
    [
        ("cp.fft.fft(x)[..., : n // 2]", "cp.fft.rfft(x)[..., :n // 2]", 1),
        (
            "cp.fft.fft(x, norm='ortho')[:, 1 : n // 2]",
            "cp.fft.rfft(x, norm='ortho')[:, 1:n // 2]",
            1,
        ),
        ("cp.fft.fft(x, None, 0)[: n // 2 + 1]", "cp.fft.rfft(x, None, 0)", 1),
        # One FFT of a million numbers takes several kernels.
        ("cp.fft.fft(x)[: n // 2 + 1]", "cp.fft.rfft(x)", 3),
        ("cp.fft.fft2(x)[:, : n // 2 + 1]", "cp.fft.rfft2(x)", 2),
        ("cp.fft.fft2(x, axes=(1, 0))[: n // 2 + 1]", "cp.fft.rfft2(x, axes=(1, 0))", 2),
    ],
)
def test_halves_of_the_last_axis_are_found(run, line, instead, kernels):
    (finding,) = found(run(line, kernels=kernels))

    assert f"`{instead}`" in finding.change


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (HALF, 0),
        ("cp.fft.fft(x)[:, : x.shape[1] // 2 + 1]", 1),
        ("cp.fft.fft(x)[..., : x.shape[-1] // 2 + 1]", 1),
        ("cp.fft.fft(x, axis=0)[: len(x) // 2]", 1),
        ("cp.fft.fft(x, n)[..., : n // 2 + 1]", 1),
        ("cp.fft.fft(x, n=2 * n, axis=1)[:, : 2 * n // 2 + 1]", 1),
        ("cp.fft.fft(x)[..., : x.shape[0] // 2 + 1]", 0),
        ("cp.fft.fft(x)[..., : len(x) // 2 + 1]", 0),
        ("cp.fft.fft(x, 2 * n)[..., : n // 2 + 1]", 0),
        ("cp.fft.fft(x, n)[..., : x.shape[-1] // 2 + 1]", 0),
    ],
)
def test_the_text_shows_that_it_is_half_where_kernels_do_not(run, line, count):
    assert len(found(run(line, use=in_kernel))) == count


@pytest.mark.parametrize(
    "line",
    [
        # All of it, or another part.
        "cp.fft.fft(x, axis=1)",
        "cp.fft.fft(x, axis=1)[:, :n]",
        "cp.fft.fft(x, axis=1)[:, n // 2 :]",
        "cp.fft.fft(x, axis=1)[:, -1 : n // 2]",
        "cp.fft.fft(x, axis=1)[:, : n // 2 + 2]",
        "cp.fft.fft(x, axis=1)[mask, : n // 2 + 1]",
        # Half of another axis, or of an unknown one.
        "cp.fft.fft(x, axis=0)[:, : n // 2 + 1]",
        "cp.fft.fft(x)[: n // 2 + 1]",
        "cp.fft.fft(x)[: n // 2 + 1, :]",
        "cp.fft.fft(x, axis=n - 4095)[:, : n // 2 + 1]",
        "cp.fft.fft2(x)[: n // 2 + 1]",
        "cp.fft.fft(x, axis=1)[: n // 2 + 1, : n // 2 + 1]",
        # The whole has a name, or is used beside the half.
        "(whole := cp.fft.fft(x, axis=1))[:, : n // 2 + 1]",
        "cp.fft.fft(x)[:, : x.shape[1] // 2 + 1] if n is None else cp.fft.fft(x)",
        # Into the memory of the array itself.
        "cp.fft.fft(x, axis=1, overwrite_x=True)[:, : n // 2 + 1]",
        # The inverse has no symmetry that `rfft` knows.
        "cp.fft.ifft(x, axis=1)[:, : n // 2 + 1]",
    ],
)
def test_other_parts_are_no_finding(run, line):
    assert found(run(line)) == []


def test_half_of_the_first_axis_is_not_what_an_fft_of_two_axes_leaves_out(run):
    assert found(run("cp.fft.fft2(x)[: n // 2 + 1]", kernels=2)) == []


@pytest.mark.parametrize(
    "options",
    [
        {"kind": Result},
        {"use": lambda gpu, result: absolute(gpu, Result(result.block))},
        # What gets a table of addresses may read all arrays.
        {"use": lambda gpu, result: (absolute(gpu, result), gpu.launch("batched", duration=1e-5))},
        # Nothing shows which block the result is.
        {"use": lambda *_: None},
    ],
)
def test_complex_arrays_and_results_that_may_be_used_as_a_whole_are_no_finding(run, options):
    assert found(run(HALF, **options)) == []
