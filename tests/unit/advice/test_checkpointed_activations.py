"""R52: activations that checkpointing saves."""

import pytest

from gpuviz.advice.findings import findings, is_trade
from tests.unit.advice.training import (
    MIB,
    Model,
    found,
    in_backward_pass,
    in_module,
    named,
    recorded,
    saved,
)

STEPS = 3
NAMES = [str(n) for n in range(16)]
BLOCKS = [f"blocks.{n}.{part}" for n in range(4) for part in ("attention", "up", "down")]


def trains(names, *, segment=0, size=8 * MIB, other="load"):
    """Return a program that trains, with segments of layers that are computed again."""

    def program(gpu):
        model = Model(gpu, names, size=size)
        for _ in range(STEPS):
            x = gpu.empty(size)
            gpu.launch(other, duration=1e-4, writes=[x])
            if not segment:
                model.backward(model.forward(x))
                continue
            inputs, parts = [x], []
            for first in range(0, len(names), segment):
                parts.append(names[first : first + segment])
                inputs.append(model.forward(inputs[-1], gradients=False, names=parts[-1]).value)
            gradient = inputs.pop()
            del x
            while parts:
                part = parts.pop()
                again = model.forward(inputs.pop(), names=part)
                model.backward(again, names=part)
                del again
            del gradient

    return program


def test_layers_are_checkpointed_in_segments_and_save_about_what_was_predicted():
    before, after = trains(NAMES), trains(NAMES, segment=4)
    (finding,) = found(before, "R52")

    measured = saved(before, after)
    assert abs(finding.saved_bytes - measured) <= 0.2 * measured
    assert finding.title.startswith("112 MiB, 61 % of the peak, are activations; ")
    assert "checkpointing `0` to `15` saves" in finding.title
    assert finding.title.endswith("takes 1.60 ms more in each step.")
    assert "checkpoint_sequential` with 4 segments" in finding.change
    assert found(after, "R52") == []


def test_the_trade_comes_last_though_it_saves_most():
    found = findings(recorded(trains(NAMES)), small=True)

    assert [each.rule for each in found if is_trade(each)] == ["R52"]
    assert found[-1].rule == "R52"
    assert found[-1].saved_bytes > max(each.saved_bytes for each in found[:-1]) > 0


def test_blocks_of_several_layers_are_checkpointed_as_a_whole():
    before, after = trains(BLOCKS), trains(BLOCKS, segment=3)
    (finding,) = found(before, "R52")

    measured = saved(before, after)
    assert abs(finding.saved_bytes - measured) <= 0.2 * measured
    assert "`blocks.0` to `blocks.3`" in finding.title
    assert "checkpoint(module, x, use_reentrant=False)" in finding.change


def test_activations_that_are_less_than_half_of_the_peak_are_left_alone():
    assert found(trains(NAMES, size=1 * MIB), "R52") == []


def test_modules_without_numbers_are_not_grouped():
    assert found(trains(["encoder", "middle", "decoder"]), "R52") == []


def test_what_checkpointing_does_to_batch_normalization_is_said_where_there_is_some():
    kernel = "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>()"
    (plain,), (normalizing,) = (
        found(trains(NAMES, other=each), "R52") for each in ("load", kernel)
    )

    assert "running statistics twice in each step" in normalizing.change
    assert "running statistics" not in plain.change


def release(arrays):
    arrays.clear()


def checkpoints(names, checkpointed):
    """Return a program with modules that the backward pass computes again, from their inputs."""

    def program(gpu):
        model = Model(gpu, names)
        again = in_backward_pass(in_module(model.forward))
        for _ in range(STEPS):
            x = gpu.empty(8 * MIB)
            gpu.launch("load", duration=1e-4, writes=[x])
            inputs, outputs = [x], []
            for name in names:
                is_kept = name not in checkpointed
                outputs.append(model.forward(inputs[-1], gradients=is_kept, names=[name]))
                inputs.append(outputs[-1].value)
            del x
            for name in reversed(names):
                held = [outputs.pop(), inputs.pop()]
                if name in checkpointed:
                    held.append(again(inputs[-1], names=[name], again=True))
                model.backward(held[-1 if name in checkpointed else 0], names=[name])
                gpu.work_on_host(1e-6)
                named(release, f"backward {name}")(held)

    return program


def test_modules_that_the_backward_pass_computes_again_already_are_left_alone():
    assert found(checkpoints(NAMES, ()), "R52")
    assert found(checkpoints(NAMES, NAMES), "R52") == []


def test_of_modules_that_are_checkpointed_in_part_the_others_are_named():
    (finding,) = found(checkpoints(NAMES, NAMES[:4]), "R52")

    assert "checkpointing `4` to `15` saves" in finding.title


def test_modules_between_checkpointed_ones_are_left_alone():
    assert found(checkpoints(NAMES, NAMES[::2]), "R52") == []


def test_a_block_of_which_a_part_is_computed_again_is_left_alone():
    attention = [name for name in BLOCKS if name.endswith("attention")]

    assert found(checkpoints(BLOCKS, attention), "R52") == []


def test_a_backward_pass_that_a_module_starts_computes_nothing_again():
    def program(gpu):
        model = Model(gpu, NAMES)
        backward = in_module(in_backward_pass(model.backward))
        for _ in range(STEPS):
            x = gpu.empty(8 * MIB)
            gpu.launch("load", duration=1e-4, writes=[x])
            backward(model.forward(x))

    assert "checkpointing `0` to `15` saves" in found(program, "R52")[0].title


def test_each_call_of_a_module_that_a_step_calls_again_is_checkpointed():
    names = ["advance.up", "advance.down"] * 8
    before, after = trains(names), trains(names, segment=2)
    (finding,) = found(before, "R52")

    measured = saved(before, after)
    assert abs(finding.saved_bytes - measured) <= 0.2 * measured
    assert "checkpointing each of the 8 calls of `advance` in a step saves" in finding.title
    assert "checkpoint(module, x, use_reentrant=False)" in finding.change
    assert found(after, "R52") == []


@pytest.mark.parametrize(
    "names",
    [
        [f"advance.{part}" for part in "abcdefgh"],
        # A loop within the module repeats a part of it.
        [*["advance.up", "advance.down"] * 4, "advance.last"],
    ],
)
def test_a_module_that_a_step_calls_once_has_no_calls_to_checkpoint(names):
    assert found(trains(names), "R52") == []
