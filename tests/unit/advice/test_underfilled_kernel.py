"""R42: kernels that leave most multiprocessors idle."""

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.programs import within
from tests.unit.advice.timed_programs import found, saved_ns, small, timed

LAUNCHES, WARP = 20, 32


def sums(gpu, *, grid=(1,), duration=1e-3, alone=True):
    """Launch a large kernel and a reduction with a grid, again and again."""
    beside = gpu.Stream(non_blocking=True)
    for _ in range(LAUNCHES):
        gpu.launch("square", duration=1e-3, grid=(10_000,), share=0.5)
        if not alone:
            with beside:
                gpu.launch("other", duration=duration, grid=(66,), share=0.5)
        gpu.launch("cupy_sum", duration=duration, grid=grid, share=0.5)


def on_one_block(gpu):
    sums(gpu)


def on_a_quarter(gpu):
    sums(gpu, grid=(33, 1, 1))


def at_full_width(gpu):
    sums(gpu, grid=(132,), duration=1e-3 / 132)


def at_full_width_of_a_quarter(gpu):
    sums(gpu, grid=(132,), duration=1e-3 / 4)


def short(gpu):
    sums(gpu, duration=5e-6)


def filled(gpu):
    sums(gpu, grid=(100,))


def with_few_launches(gpu):
    sums(gpu)
    gpu.launch("square", duration=1.0, grid=(10_000,))


def beside_another_stream(gpu):
    other = gpu.Stream(non_blocking=True)
    with other:
        gpu.launch("long", duration=1.0, grid=(131,), share=0.5)
    for _ in range(LAUNCHES):
        gpu.launch("cupy_sum", duration=40e-3, grid=(1,), share=0.01)


def beside_the_rest_of_a_routine(gpu):
    for _ in range(LAUNCHES):
        for name, grid, duration in (("partition", 9, 1e-3), ("product", 10_000, 3e-3)):
            gpu.launch(name, duration=duration, grid=(grid,), share=0.5)


@pytest.mark.parametrize(
    ("program", "after", "width"),
    [
        (on_one_block, at_full_width, "one thread block"),
        (on_a_quarter, at_full_width_of_a_quarter, "33 thread blocks"),
    ],
)
def test_a_kernel_of_few_blocks_is_found_and_more_blocks_save_what_was_predicted(
    program, after, width
):
    (finding,) = found(program, "R42")

    assert finding.saved_ns == pytest.approx(saved_ns(program, after), rel=0.2)
    assert finding.title == (
        f"`cupy_sum` takes 50 % of the GPU's busy time on {width}; the GPU has 132 multiprocessors."
    )
    assert finding.reason.startswith(
        "20 launches take 20.0 ms. A thread block runs on one multiprocessor; the others are idle "
        "meanwhile, because no other kernel runs. Spread over all of them, such blocks would take "
    )
    assert finding.change.startswith(
        'Spread the work of `gpu.launch("cupy_sum", duration=duration, grid=grid, share=0.5)` over '
        "more blocks: a larger grid if the program chooses it; otherwise another axis order"
    )
    assert finding.certainty == "possible"
    assert (finding.evidence.table, len(finding.evidence.rows)) == ("activities", LAUNCHES)


@pytest.mark.parametrize(
    "program",
    [short, filled, with_few_launches, beside_another_stream, beside_the_rest_of_a_routine],
)
def test_short_full_rare_concurrent_and_helping_kernels_are_no_finding(program):
    assert small(program, "R42") == []


def without_multiprocessors(recording):
    """Return the recording as an older version would have written it."""
    devices = recording.tables["devices"].drop_columns(["multiprocessors"])
    assert isinstance(devices, pa.Table)
    return Recording({**recording.tables, "devices": devices}, recording.manifest)


def test_without_the_number_of_multiprocessors_only_a_single_block_is_few():
    (finding,) = (
        each
        for each in findings(without_multiprocessors(timed(on_one_block)))
        if each.rule == "R42"
    )
    quarter = findings(without_multiprocessors(timed(on_a_quarter)), small=True)

    assert finding.title == "`cupy_sum` takes 50 % of the GPU's busy time on one thread block."
    assert finding.reason.endswith(
        "The recording does not contain the number of multiprocessors; the saving is that of "
        "a kernel that takes no time."
    )
    assert [each for each in quarter if each.rule == "R42"] == []


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void cub::(anonymous namespace)::Reduce<int, Sum<2>>(int*, int)", "Reduce"),
        ("cupy_sum", "cupy_sum"),
        ("<odd>", "<odd>"),
    ],
)
def test_a_kernel_is_named_without_arguments_and_scopes(name, short):
    def program(gpu):
        for _ in range(LAUNCHES):
            gpu.launch(name, duration=1e-3, grid=(1,))

    (finding,) = found(program, "R42")

    assert finding.title.startswith(f"`{short}` takes 100 % ")


def test_kernels_that_wait_take_few_blocks_on_purpose():
    def names(name):
        return found(lambda gpu: gpu.launch(name, duration=0.1, grid=(24,)), "R42")

    assert names("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)") == []
    assert names("void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)") == []
    assert names("at::cuda::(anonymous namespace)::spin_kernel(long)") == []
    assert len(names("spin")) == 1


def test_what_is_little_of_a_recording_can_be_much_of_a_window():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.work_on_host(100.0)
        gpu.launch("narrow", duration=0.1, grid=(1,))
        gpu.synchronize()
        gpu.launch("wide", duration=0.1)
        gpu.synchronize()
    whole = recorder.recording
    start = whole.table("activities")["time"][0].as_py()
    window = whole.window(start - 1000, whole.duration_ns)

    assert window.covered_ns == whole.duration_ns - start + 1000
    assert "R42" not in [each.rule for each in whole.findings()]
    assert "R42" in [each.rule for each in window.findings()]


def on_streams(gpu, *, streams, blocks=33, launches=LAUNCHES):
    """Launch the same kernel on several streams, so that the launches run at the same time."""
    lanes = [gpu.Stream(non_blocking=True) for _ in range(streams)]
    for _ in range(launches):
        for lane in lanes:
            with lane:
                gpu.launch("stencil", duration=1e-3, grid=(blocks,), share=blocks / 132)


def test_streams_that_fill_the_gpu_together_are_no_finding():
    assert small(lambda gpu: on_streams(gpu, streams=4), "R42") == []


def test_streams_that_leave_half_of_it_idle_together_save_the_rest():
    def fewer_and_wider(gpu):
        for _ in range(LAUNCHES):
            gpu.launch("stencil", duration=1e-3 * 2 * 22 / 132, grid=(132,))

    def two_streams(gpu):
        on_streams(gpu, streams=2, blocks=22)

    (finding,) = found(two_streams, "R42")

    assert finding.title.startswith(
        "`stencil` takes 100 % of the GPU's busy time on 22 thread blocks"
    )
    assert finding.reason.startswith("40 launches take 20.0 ms, at most 2 at the same time. ")
    assert finding.saved_ns == pytest.approx(saved_ns(two_streams, fewer_and_wider), rel=0.05)


def of_narrow_blocks(gpu, *, name="hill", nbytes=4 << 20, **launch):
    """Launch a kernel of the program, in many blocks of one thread, beside another kernel."""
    array = gpu.empty(nbytes)
    usual = {"duration": 1e-3, "grid": (1 << 20,), "block": (1,)}
    for _ in range(LAUNCHES):
        gpu.launch("square", duration=1e-3, grid=(10_000,))
        gpu.launch(name, writes=[array], **(usual | launch))


def test_blocks_of_less_than_a_warp_are_found_and_full_warps_save_what_was_predicted():
    (finding,) = found(lambda gpu: of_narrow_blocks(gpu, block=(2, 4)), "R42")

    assert finding.title == (
        "`hill` takes 50 % of the GPU's busy time in blocks of 8 threads, for warps of 32."
    )
    assert finding.saved_ns == pytest.approx(
        saved_ns(
            lambda gpu: of_narrow_blocks(gpu, block=(2, 4)),
            lambda gpu: of_narrow_blocks(gpu, block=(256,), grid=(1 << 12,), duration=0.25e-3),
        ),
        rel=0.02,
    )


def test_full_warps_do_not_exceed_the_bandwidth_of_the_memory():
    (finding,) = found(lambda gpu: of_narrow_blocks(gpu, nbytes=512 << 20), "R42")
    bandwidth = timed(of_narrow_blocks).tables["devices"]["memory_bandwidth"][0].as_py()

    saved = LAUNCHES * (1e-3 - (512 << 20) / bandwidth) * 1e9
    assert bandwidth < (512 << 20) * WARP / 1e-3
    assert finding.saved_ns == pytest.approx(saved, rel=0.02)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"block": (32,)}, id="whole warps"),
        pytest.param({"grid": (10_000,)}, id="blocks that the GPU runs at once"),
        pytest.param({"shared_memory": 128}, id="threads that share memory"),
        pytest.param({"duration": 8e-6}, id="short kernels"),
        pytest.param({"name": "void csrmv<float>(float*)"}, id="kernels that may be a library's"),
        pytest.param({"name": "cupy_add__float32_float32_float32"}, id="kernels of a library"),
    ],
)
def test_blocks_that_are_wide_enough_or_not_the_programs_are_no_finding(options):
    assert small(lambda gpu: of_narrow_blocks(gpu, **options), "R42") == []


def test_what_a_compiler_of_kernels_launches_is_the_programs_and_what_a_library_does_is_not():
    recording = timed(lambda gpu: of_narrow_blocks(gpu, name="hill(Array<float>)"))

    by_numba, by_library = (
        [each.rule for each in findings(within(recording, f"/site-packages/{file}"))]
        for file in ("numba/cuda/dispatcher.py", "cupyx/scipy/ndimage/_util.py")
    )

    assert "R42" in by_numba
    assert "R42" not in by_library


def solves(gpu, *, arrays=4, lanes=1, waits=False, checks=False):
    """Solve for each of several arrays, again and again."""
    states = [gpu.empty(1 << 20) for _ in range(arrays)]
    streams = [gpu.Stream(non_blocking=True) for _ in range(lanes)]
    norms = gpu.empty(512)
    for _ in range(LAUNCHES):
        for number, state in enumerate(states):
            stream = streams[number % lanes]
            with stream:
                solve = {"duration": 3e-4, "grid": (33,), "share": 0.25}
                gpu.launch("solve", reads=[state], writes=[state], **solve)
                if checks:
                    gpu.launch("norm", duration=1e-6, reads=[state], writes=[norms])
            if waits:
                stream.synchronize()


def test_launches_for_different_arrays_can_be_on_several_streams():
    (finding,) = found(solves, "R42")

    on_streams = saved_ns(solves, lambda gpu: solves(gpu, lanes=4))
    assert finding.saved_ns == pytest.approx(on_streams, rel=0.02)
    assert finding.change.endswith(
        "Launches that follow each other use different arrays: on several streams in turn, they "
        "run at the same time."
    )


@pytest.mark.parametrize("options", [{"arrays": 1}, {"checks": True}])
def test_launches_that_wait_for_those_before_are_not_to_be_on_several_streams(options):
    (finding,) = found(lambda gpu: solves(gpu, **options), "R42")

    assert finding.change.endswith(
        "Steps that each need the result of the one before cannot be spread."
    )


def test_streams_that_run_alone_because_of_needless_synchronizations_are_no_finding():
    def program(gpu):
        solves(gpu, lanes=4, waits=True)

    (finding,) = found(program, "R22")

    on_streams = saved_ns(program, lambda gpu: solves(gpu, lanes=4))
    assert finding.saved_ns == pytest.approx(on_streams, rel=0.02)
    assert small(program, "R42") == []
    assert len(small(lambda gpu: solves(gpu, arrays=1, waits=True), "R42")) == 1
