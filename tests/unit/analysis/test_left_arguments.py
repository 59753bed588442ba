"""What earlier calls left in the structures that PyTorch passes to kernels."""

import pyarrow as pa

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.analysis.touches import touches
from gpuviz.data.columns import plain
from gpuviz.data.tables import DICTIONARIES, schemas
from gpuviz.recording import Recording

MIB = 1 << 20
SIZE, ROUNDS = 16 * MIB, 20
STRIDED = (
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::"
    "sigmoid_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}> >"
)
PRODUCT = (
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::"
    "BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > > >"
)


def recorded(program):
    """Return the recording of a program, as of strided functions that write their first array."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    recording = recorder.recording
    launched = recording.tables["launch_blocks"].to_pylist()
    of_strided = {each["correlation"] for each in correlations(recording)}
    seen = set()
    for row in launched:
        if row["correlation"] in of_strided:
            is_first = row["correlation"] not in seen
            row["mode"] = "write" if is_first else "read"
            seen.add(row["correlation"])
    changed = pa.Table.from_pylist(launched, schemas()["launch_blocks"])
    return Recording({**recording.tables, "launch_blocks": changed}, recording.manifest)


def correlations(recording):
    text = {row["id"]: row["text"] for row in recording.tables["strings"].to_pylist()}
    rows = recording.tables["activities"].to_pylist()
    return [row for row in rows if text.get(row["name"]) in {STRIDED, PRODUCT}]


def uploaded(gpu):
    array = gpu.empty(SIZE)
    gpu.copy_to_device(array)
    return array


def modes(recording):
    """Return what the strided functions do with arrays, in the order in which these were made."""
    used = touches(recording)
    words = DICTIONARIES["launch_blocks", "mode"]
    names = plain(recording.tables["activities"]["name"])
    strided = {row["name"] for row in correlations(recording)}
    return [
        (block, words[mode])
        for block, mode, row in zip(
            used.block.tolist(), used.mode.tolist(), used.activity.tolist(), strict=True
        )
        if row >= 0 and names[row] in strided
    ]


def into_a_new_array(gpu):
    left, x = uploaded(gpu), uploaded(gpu)
    result = gpu.empty(SIZE)
    gpu.launch(STRIDED, reads=[left, result, x], duration=1e-3)


def without_left_ones(gpu):
    x, result = uploaded(gpu), gpu.empty(SIZE)
    gpu.launch(STRIDED, reads=[result, x], duration=1e-3)


def in_place(gpu):
    left, x = uploaded(gpu), uploaded(gpu)
    gpu.launch(STRIDED, reads=[left, x], duration=1e-3)


def product_into_an_old_array(gpu):
    left, result, x, y = (uploaded(gpu) for _ in range(4))
    gpu.launch(PRODUCT, reads=[left, result, x, y], duration=1e-3)


def product_without_a_seen_array(gpu):
    """Of one of the inputs nothing is known, such as memory of another library."""
    left, x, result = uploaded(gpu), uploaded(gpu), gpu.empty(SIZE)
    gpu.launch(PRODUCT, reads=[left, result, x], duration=1e-3)


def in_parts(gpu):
    x, result = uploaded(gpu), gpu.empty(SIZE)
    for _ in range(2):
        gpu.launch(STRIDED, reads=[result, x], duration=1e-3)


def test_a_new_array_is_what_a_strided_function_writes():
    assert modes(recorded(into_a_new_array)) == [(2, "write"), (1, "read")]
    assert modes(recorded(without_left_ones)) == [(1, "write"), (0, "read")]


def test_of_a_function_without_a_new_array_it_is_unknown_which_it_writes():
    assert modes(recorded(in_place)) == [(0, "unknown"), (1, "unknown")]


def test_the_last_arrays_are_those_of_a_function_of_which_their_number_is_known():
    found = modes(recorded(product_into_an_old_array))

    assert found == [(1, "write"), (2, "read"), (3, "read")]


def test_without_all_arrays_of_a_function_it_is_unknown_which_it_writes():
    found = modes(recorded(product_without_a_seen_array))

    assert [mode for _, mode in found] == ["unknown"] * 3


def test_a_function_in_parts_writes_what_the_first_of_them_does():
    assert modes(recorded(in_parts)) == [(1, "write"), (0, "read")] * 2


def activates(gpu):
    """Scale a part of another array in each round, and apply a function to the result."""
    state, left = uploaded(gpu), uploaded(gpu)
    for _ in range(ROUNDS):
        x, scaled, active = uploaded(gpu), gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch(STRIDED, reads=[left, scaled, x], duration=1e-3)
        gpu.launch("sigmoid", reads=[scaled], writes=[active], duration=1e-3)
        gpu.launch("add", reads=[state, active], writes=[state], duration=1e-3)


def test_functions_of_what_a_strided_one_writes_do_not_compute_the_same():
    found = findings(recorded(activates), small=True)

    assert not [each for each in found if each.rule == "R57"]
