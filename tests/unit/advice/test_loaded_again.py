"""R64: code that is loaded again and again."""

import re

import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.advice.test_advice_for_torch import of_torch
from tests.unit.advice.timed_programs import timed

ROUNDS = 20
# A library's function, whose calls are all on the line of the program that calls it.
SOURCE = """
def transform(gpu, x, *, name, plan, copies=False, measures=False, threads=128):
    if plan:
        gpu.work_on_host(1e-3)
        gpu.synchronize()  # stands for a call that loads code
        gpu.work_on_host(1e-3)
    if copies:
        gpu.launch("cupy_copy__complex64_complex64", duration=1e-6, writes=[x])
    gpu.launch(name, duration=100e-6, writes=[x], block=(threads,))
    if measures:
        event = gpu.Event()
        event.record()
        event.synchronize()
"""


def of_file(file):
    """Return the function as one of a file of an installed package."""
    library = {}
    exec(compile(SOURCE, f"/env/lib/python3/site-packages/{file}", "exec"), library)  # noqa: S102
    return library["transform"]


transform = of_file("fft.py")


def makes_plans(gpu, *, name="regular_fft", plan=True, other=False, transform=transform, **kind):
    x = gpu.empty(1 << 20)
    for _ in range(ROUNDS):
        gpu.launch("prepare", duration=100e-6, writes=[x])
        transform(gpu, x, name=name, plan=plan, **kind)
        if other:
            gpu.synchronize()


def makes_plans_at_first(gpu):
    """Make a plan for each of some sizes, and use them again."""
    x = gpu.empty(1 << 20)
    for number in range(5 * ROUNDS):
        gpu.launch("prepare", duration=100e-6, writes=[x])
        transform(gpu, x, name="regular_fft", plan=number < ROUNDS)


def keeps_plans(gpu):
    makes_plans(gpu, plan=False)


def loads_each_kernel_once(gpu):
    x = gpu.empty(1 << 20)
    for number in range(ROUNDS):
        gpu.launch("prepare", duration=100e-6, writes=[x])
        transform(gpu, x, name=f"kernel {number}", plan=True)


def tries_each_kernel_once(gpu):
    """Load a kernel of one name for each number of threads, and use it again."""
    x = gpu.empty(1 << 20)
    for number in range(3 * ROUNDS):
        gpu.launch("prepare", duration=100e-6, writes=[x])
        threads = 32 * (1 + number // 3)
        transform(gpu, x, name="matmul_kernel", plan=number % 3 == 0, threads=threads)


def with_loads(recording):
    """Return a recording in which the calls of the library that wait load code instead."""
    tables = dict(recording.tables)
    strings = tables["strings"].to_pylist()
    name = max(each["id"] for each in strings) + 1
    strings.append({"id": name, "text": "cuModuleLoadData"})
    synchronizes = {each["id"] for each in strings if each["text"] == "cuCtxSynchronize"}
    calls = tables["api_calls"].to_pylist()
    stacks = recording.call_stacks
    for call in calls:
        frames = stacks.frames(call["stack"])
        if call["name"] in synchronizes and frames and frames[0].name == "transform":
            call["name"] = name
    tables["strings"] = pa.Table.from_pylist(strings, schemas()["strings"])
    tables["api_calls"] = pa.Table.from_pylist(calls, schemas()["api_calls"])
    return Recording(tables, recording.manifest)


def found(program):
    return [each for each in findings(with_loads(timed(program))) if each.rule == "R64"]


def test_a_plan_that_is_made_in_each_round_costs_what_keeping_it_saves():
    (finding,) = found(makes_plans)

    assert re.match(r"`transform\(.*\)` makes an FFT plan 19 times\.", finding.title)
    saved = timed(makes_plans).duration_ns - timed(keeps_plans).duration_ns
    # The first plan is needed.
    assert finding.saved_ns == pytest.approx(saved * 19 / 20, rel=0.05)
    assert "cupy.fft.config.get_plan_cache().set_size" in finding.change


def test_a_plan_of_a_transform_that_copies_its_argument_first_is_one():
    (finding,) = found(lambda gpu: makes_plans(gpu, copies=True))

    assert "makes an FFT plan" in finding.title


@pytest.mark.parametrize(
    ("file", "is_torch", "advice"),
    [
        ("cupy/fft/_fft.py", True, "cupy.fft.config.get_plan_cache().set_size"),
        ("cupyx/scipy/fft/_fft.py", True, "cupy.fft.config.get_plan_cache().set_size"),
        ("torch/functional.py", False, "torch.backends.cuda.cufft_plan_cache"),
        ("fft.py", True, "torch.backends.cuda.cufft_plan_cache"),
    ],
)
def test_the_library_that_makes_the_plans_is_that_of_the_launches(file, is_torch, advice):
    recording = with_loads(timed(lambda gpu: makes_plans(gpu, transform=of_file(file))))
    recording = of_torch(recording) if is_torch else recording
    (finding,) = (each for each in findings(recording) if each.rule == "R64")

    assert "makes an FFT plan" in finding.title
    assert advice in finding.change


@pytest.mark.parametrize(
    ("name", "is_plan"),
    [
        ("void regular_fft_factor<128u, EPT<16u>, 32u, 0u>", True),
        ("void vector_fft_symm_r2c<64u, EPT<8u>, 8u, 1u>", True),
        ("void multi_bluestein_fft<512u, EPT<8u>, 2u, 1u>", True),
        ("void prime_fft_factor<1331u, EPT<11u>, 1u, 0u, 0u>", True),
        ("void composite_2way_fft<80u, 4u, 16u>", True),
        ("apply_fft_mask", False),
        ("void fft2d_r2c_32x32<float, false, 1u, false>", False),
        ("cupyx_fftshift", False),
    ],
)
def test_only_kernels_of_cufft_are_of_a_plan(name, is_plan):
    (finding,) = found(lambda gpu: makes_plans(gpu, name=name))

    assert ("makes an FFT plan" in finding.title) == is_plan


def test_other_code_that_is_loaded_in_each_round_can_be_loaded_once():
    (finding,) = found(lambda gpu: makes_plans(gpu, name="solve"))

    assert "loads code 19 times" in finding.title
    assert finding.change.startswith("Create the module, the kernel or the object")


ATTENTION = "cudnn_generated_fort_native_sdpa_sm80_flash_fprop"
CONVOLUTION = "void cudnn::engines_precompiled::nchwToNhwcKernel<float>"


@pytest.mark.parametrize(
    ("name", "measures", "advice"),
    [
        (ATTENTION, False, "enable_cudnn_sdp(False)"),
        (CONVOLUTION, False, "pad the inputs to a few sizes, or sort them"),
        (CONVOLUTION, True, "`torch.backends.cudnn.benchmark = True`"),
    ],
)
def test_what_cudnn_loads_for_new_shapes_depends_on_what_they_are_of(name, measures, advice):
    (finding,) = found(lambda gpu: makes_plans(gpu, name=name, measures=measures))

    assert advice in finding.change
    assert ("keys and values" in finding.change) == (name == ATTENTION)


def test_what_is_loaded_in_each_round_is_no_warm_up():
    again, at_first = (
        with_loads(timed(program)).steady_state() for program in (makes_plans, makes_plans_at_first)
    )

    assert again.left_out_ns < 0.2 * again.window_ns
    assert at_first.left_out_ns > 0.5 * at_first.window_ns


@pytest.mark.parametrize(
    "program",
    [keeps_plans, loads_each_kernel_once, makes_plans_at_first, tries_each_kernel_once],
)
def test_code_that_is_loaded_once_is_no_finding(program):
    assert found(program) == []
