"""Which operand a product of matrices writes, of kernels that do not say it."""

import numpy as np
import pytest

import gpuviz
from gpuviz.analysis.touches import touches
from gpuviz.data.tables import DICTIONARIES
from gpuviz.recording import Recording
from tests.unit.advice.programs import with_unknown_modes
from tests.unit.recording.from_activities import rows_of

MIB = 1 << 20
SIZE, PRODUCT = 16 * MIB, "nvjet_sm90_tst_64x64_splitK"


def multiplied(*, names_area):
    """Return the recording of a product with a work area, as that of cuBLAS under PyTorch."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        area, x, y = (gpu.empty(SIZE) for _ in range(3))
        for each in (area, x, y):
            gpu.copy_to_device(each)
        result = gpu.empty(SIZE)
        gpu.launch(PRODUCT, reads=[x, y, result, area], duration=1e-3)
        gpu.synchronize()
    recording = with_unknown_modes(recorder.recording, PRODUCT)
    first = recording.tables["memory_events"].to_pylist()[0]
    tensor = {"time": first["time"], "address": first["address"], "category": "workspace"}
    changed = {"tensors": rows_of("tensors", [tensor] if names_area else [])}
    return Recording({**recording.tables, **changed}, recording.manifest)


@pytest.mark.parametrize(
    ("names_area", "expected"),
    [
        (True, {0: "unknown", 1: "read", 2: "read", 3: "write"}),
        (False, dict.fromkeys(range(4), "unknown")),
    ],
)
def test_a_work_area_that_its_owner_names_is_no_operand(names_area, expected):
    used = touches(multiplied(names_area=names_area))

    words = DICTIONARIES["launch_blocks", "mode"]
    found = {
        int(block): words[mode]
        for block, mode in zip(used.block[-4:].tolist(), used.mode[-4:].tolist(), strict=True)
    }
    assert found == expected


def with_a_bias(*, into="a new array", then="freed"):
    """Return the modes of a product with a bias and an unnamed work area, by array."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    before = gpu.empty(SIZE)
    with gpuviz.record(device=gpu) as recorder:
        x, y, bias, area = arrays = [gpu.empty(SIZE) for _ in range(4)]
        filled = [x, y, bias] if into == "a new array" else [x, y, bias, before]
        for each in filled:
            gpu.copy_to_device(each)
        gpu.launch(PRODUCT, reads=[area], duration=1e-3)  # the area's own first use
        result = gpu.empty(SIZE) if into == "a new array" else before
        gpu.launch(PRODUCT, reads=[x, y, bias, area, result], duration=1e-3)
        if then == "read":
            gpu.launch("relu", reads=[result], duration=1e-3)
        gpu.synchronize()
        if then == "freed":
            del result, arrays
    used = touches(with_unknown_modes(recorder.recording, PRODUCT))
    product = used.call == used.call[np.argmax(np.bincount(used.call)[used.call])]
    words = DICTIONARIES["launch_blocks", "mode"]
    return [words[mode] for mode in used.mode[product].tolist()]


@pytest.mark.parametrize("then", ["freed", "read"])
def test_a_new_array_that_a_product_with_a_bias_and_an_area_uses_is_its_output(then):
    assert with_a_bias(then=then) == ["read"] * 4 + ["write"]


@pytest.mark.parametrize(
    "look_alike",
    [
        pytest.param({"then": "kept"}, id="which may be the work area"),
        pytest.param({"into": "an array of before the recording"}, id="which has contents"),
    ],
)
def test_the_output_of_a_product_is_not_guessed(look_alike):
    assert with_a_bias(**look_alike) == ["unknown"] * 5
