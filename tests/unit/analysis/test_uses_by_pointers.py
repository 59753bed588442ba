"""Kernels that may use arrays through pointers that they read from memory."""

import pyarrow as pa
import pytest

from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.analysis.growing_programs import of
from tests.unit.recording.leaking_programs import MIB, STEPS, work


@pytest.mark.parametrize(
    ("kernel", "use"),
    [
        ("gemv2T_kernel_val<int, cublasGemvTensorStridedBatched<float const> >(int)", "unused"),
        ("gemv2T_kernel_val<int, cublasGemvTensorBatched<float const> >(int)", "unknown"),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<int>", "unused"),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<int>", "unused"),
        ("multi_tensor_apply_kernel<int>", "unknown"),
    ],
)
def test_only_batches_of_pointers_may_use_arrays_that_they_do_not_name(kernel, use):
    def program(gpu, kept):
        matrix = gpu.empty(MIB)
        for _ in range(STEPS):
            kept.append(work(gpu))
            gpu.launch(kernel, duration=1e-5, reads=[matrix])

    (row,) = of(program).leaks().to_pylist()

    assert row["use"] == use


def reads_what_was_uploaded(kernel):
    def program(gpu, kept):
        bias = gpu.empty(64)
        gpu.copy_to_device(bias)
        for _ in range(STEPS):
            kept.append(work(gpu))
            gpu.launch(kernel, duration=1e-5, reads=[bias])

    return of(program)


def with_a_parameter(recording):
    """Return the recording as if the first array were a parameter of a model."""
    first = recording.tables["memory_events"].slice(1, 1).to_pylist()[0]
    parameter = {name: first[name] for name in ("time", "device", "address")}
    rows = [{**parameter, "category": "parameter", "name": 0}]
    tensors = pa.Table.from_pylist(rows, schemas()["tensors"])
    return Recording({**recording.tables, "tensors": tensors}, recording.manifest)


@pytest.mark.parametrize(
    ("kernel", "use"),
    [("by_pointers", "unknown"), ("void at::native::reduce_kernel<int>", "unused")],
)
def test_kernels_of_unknown_programs_may_read_pointers_that_were_uploaded(kernel, use):
    (row,) = reads_what_was_uploaded(kernel).leaks().to_pylist()

    assert row["use"] == use


def test_parameters_of_a_model_are_no_pointers():
    recording = with_a_parameter(reads_what_was_uploaded("splitKreduce_kernel"))
    (row,) = recording.leaks().to_pylist()

    assert row["use"] == "unused"


@pytest.mark.parametrize(("other", "use"), [(MIB // 4, "unused"), (MIB // 8, "used")])
def test_addresses_that_are_left_in_a_structure_of_torch_are_no_uses(other, use):
    def program(gpu, kept):
        parts = gpu.empty(MIB // 4), gpu.empty(other)
        for step in range(STEPS):
            kept.append(work(gpu))
            joined = gpu.empty(MIB // 2)
            gpu.launch(
                "void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<int>",
                duration=1e-5,
                reads=[*parts, kept[max(step - 4, 0)]],
                writes=[joined],
            )
            del joined

    (row,) = of(program).leaks().to_pylist()

    assert row["use"].replace("partly", "used") == use
