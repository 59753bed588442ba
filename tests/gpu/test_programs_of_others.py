"""What gpuviz finds in programs of others, and what following it saves."""

from functools import cache

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.gpu import programs_of_others
from tests.gpu.shown_findings import show

# An allocation is rounded to 512 bytes; the published figures are the bytes requested.
ROUNDED = 512
# For each program, in bytes: its peak, the peak with gpuviz's advice followed, and the rules about
# memory that give the advice.
PROGRAMS = {
    "two_products": (83_886_080, 50_331_648, {"R03"}),
    # The largest operation uses 3 MiB, but E has to survive the second product.
    "three_products": (7_340_032, 4_194_304, {"R03"}),
    # s is needed until the end, where the host copies it.
    "two_vectors": (67_174_400, 67_158_016, {"R03"}),
    "wavelets": (1_142_784, 589_824, {"R03"}),
    "encode": (6_301_704, 2_107_392, {"R03", "R45"}),
}
# Programs whose improvement no recording shows: that kernels use one row of an array (GRAMSCHM), or
# could overwrite their input (simpleMultiCopy).
BY_HAND = {
    "orthogonalize": (50_331_648, 33_562_624),
    "increments": (2_147_483_648, 1_073_741_824),
}


@cache
def recorded(name):
    """Return the recording of a program whose kernels are compiled."""
    program = programs_of_others.PROGRAMS[name]
    program()
    with gpuviz.record() as recorder:
        program()
    return recorder.recording


def peak_bytes(name):
    """Return the bytes at the peak, without what other tests have left."""
    recording = recorded(name)
    before = recording.table("memory_events").slice(0, recording.manifest.initial_events)
    left = [row["size"] for row in before.to_pylist() if row["action"] == "alloc"]
    return recording.peak().bytes - sum(left)


@cache
def about_memory(name):
    """Return the findings about the memory of a program, small ones too."""
    return [each for each in findings(recorded(name), small=True) if each.saved_bytes]


def shown_rules(name):
    return {each.rule for each in findings(recorded(name))}


@pytest.fixture(scope="module", autouse=True)
def shown(pytestconfig):
    yield
    names = [each for name in [*PROGRAMS, *BY_HAND] for each in (name, f"{name}_improved")]
    show(pytestconfig, "programs_of_others", {name: recorded(name) for name in names})


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_published_peak_is_reached_by_the_advice_and_predicted(name):
    peak, improved_peak, rules = PROGRAMS[name]
    measured = peak_bytes(f"{name}_improved")
    predicted = peak_bytes(name) - sum(each.further_bytes for each in about_memory(name))

    assert peak_bytes(name) == pytest.approx(peak, abs=ROUNDED)
    assert measured == pytest.approx(improved_peak, abs=ROUNDED)
    assert predicted == pytest.approx(measured, rel=0.01)
    assert {each.rule for each in about_memory(name)} == rules


@pytest.mark.parametrize("name", BY_HAND)
def test_nothing_is_said_about_memory_that_every_kernel_receives(name):
    peak, improved_peak = BY_HAND[name]

    assert peak_bytes(name) == pytest.approx(peak, abs=ROUNDED)
    assert peak_bytes(f"{name}_improved") == pytest.approx(improved_peak, abs=ROUNDED)
    assert about_memory(name) == []


def test_a_norm_on_one_thread_block_is_found():
    assert "R42" in shown_rules("orthogonalize")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_improved_program_has_nothing_left_to_trim(name):
    after = about_memory(f"{name}_improved")

    assert sum(each.further_bytes for each in after) <= 0.02 * PROGRAMS[name][1]
