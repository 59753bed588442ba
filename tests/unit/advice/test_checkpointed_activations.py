"""R52: activations that checkpointing saves."""

from gpuviz.advice.findings import findings, is_trade
from tests.unit.advice.training import MIB, Model, found, recorded, saved

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
