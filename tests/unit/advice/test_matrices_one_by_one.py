"""R88: small matrices that are solved, inverted or factorized one by one."""

from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.unit.advice.programs import with_unknown_modes, without_frames
from tests.unit.advice.training import installed

MATRIX, COLUMN = 64 * 64 * 8, 64 * 8
COUNT, KERNEL_S, HOST_S = 40, 90e-6, 20e-6
COPY, FACTOR = "cupy_copy__float64_float64", "void getrf_pivot<double>"
SOLVE = "cupy/linalg/_solve.py"


def _solve(gpu, matrices, columns, grid=64):
    """Solve as CuPy does: on copies, with kernels whose operands are not known."""
    a, b = gpu.empty(matrices.nbytes), gpu.empty(columns.nbytes)
    gpu.launch(COPY, duration=2e-6, grid=(1,), block=(128,), reads=[matrices], writes=[a])
    gpu.launch(COPY, duration=2e-6, grid=(1,), block=(128,), reads=[columns], writes=[b])
    pivots = gpu.empty(512)
    gpu.work_on_host(HOST_S)
    gpu.launch(FACTOR, duration=KERNEL_S, grid=(grid,), block=(64,), writes=[a, b, pivots])
    return b


solve = installed(_solve, SOLVE, "solve")
lstsq = installed(_solve, SOLVE, "lstsq")


def store(gpu, result, results):
    gpu.launch(COPY, duration=2e-6, reads=[result], writes=[results])


cupy = SimpleNamespace(linalg=SimpleNamespace(solve=solve))
torch = SimpleNamespace(linalg=SimpleNamespace(cholesky=_solve))


def inputs(gpu):
    a, b = gpu.empty(COUNT * MATRIX), gpu.empty(COUNT * COLUMN)
    gpu.copy_to_device(a)
    gpu.copy_to_device(b)
    return a, b


def one_by_one(gpu, routine=solve, grid=64, count=COUNT):
    a, b = inputs(gpu)
    return [routine(gpu, a, b, grid) for _ in range(count)]


def solves_each(gpu):
    a, b = inputs(gpu)
    for _ in range(COUNT):
        cupy.linalg.solve(gpu, a, b)


def together(gpu):
    a, b = inputs(gpu)
    return solve(gpu, a, b)


def each_from_the_last(gpu):
    a, b = inputs(gpu)
    for _ in range(COUNT):
        b = solve(gpu, a, b)
    return b


def each_of_a_new_matrix(gpu):
    a, b = inputs(gpu)
    for _ in range(COUNT):
        gpu.launch("cupy_add__float64_float64_float64", duration=2e-6, writes=[a])
        b = solve(gpu, a, b)
    return b


def of_matrices_of_other_sizes(gpu):
    inputs_of_all = []
    for number in range(COUNT):
        inputs_of_all.append((gpu.empty(MATRIX + 512 * number), gpu.empty(COLUMN)))
        for each in inputs_of_all[-1]:
            gpu.copy_to_device(each)
    return [solve(gpu, a, b) for a, b in inputs_of_all]


def recorded(program, **options):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        kept = program(gpu, **options)
        gpu.synchronize()
        del kept
    return with_unknown_modes(recorder.recording, FACTOR)


def found(program, **options):
    every = findings(recorded(program, **options), small=True)
    return [each for each in every if each.rule == "R88"]


def test_calls_for_one_matrix_each_are_found_and_one_call_saves_what_was_predicted():
    (finding,) = found(one_by_one)

    assert finding.title.endswith("calls `cupy.linalg.solve` 40 times for one matrix each.")
    assert "of at most 64 thread blocks" in finding.reason
    true_ns = recorded(one_by_one).duration_ns - recorded(together).duration_ns
    assert finding.saved_ns == pytest.approx(true_ns, rel=0.1)


def test_calls_in_rows_of_which_each_has_new_matrices_are_one_finding():
    def rows(gpu):
        for _ in range(3):
            kept = one_by_one(gpu, count=10)
        return kept

    (finding,) = found(rows)

    assert "30 times" in finding.title


def test_functions_of_torch_have_no_frames_and_are_known_by_their_line():
    def program(gpu):
        (a, b), x = inputs(gpu), gpu.empty(COUNT * COLUMN)
        for _ in range(COUNT):
            store(gpu, torch.linalg.cholesky(gpu, a, b), x)
        gpu.launch("cupy_sum", duration=2e-6, reads=[x])

    every = findings(
        without_frames(without_frames(recorded(program), "_solve"), "store"), small=True
    )

    (finding,) = (each for each in every if each.rule == "R88")
    assert "calls `torch.linalg.cholesky` 40 times" in finding.title


@pytest.mark.parametrize(
    ("program", "options"),
    [
        pytest.param(each_from_the_last, {}, id="of which each needs the result before"),
        pytest.param(each_of_a_new_matrix, {}, id="of matrices that are made in between"),
        pytest.param(of_matrices_of_other_sizes, {}, id="of matrices of other sizes"),
        pytest.param(one_by_one, {"grid": 4000}, id="that fill the GPU"),
        pytest.param(one_by_one, {"count": 7}, id="of which there are few"),
        pytest.param(one_by_one, {"routine": lstsq}, id="of functions for single matrices"),
        pytest.param(together, {}, id="of all matrices at once"),
    ],
)
def test_calls_that_could_not_be_one_are_no_finding(program, options):
    assert found(program, **options) == []
