"""Results that elementwise functions pass on, and those that the program needs as arrays."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays


def chains(program):
    recording = of_arrays(program)
    return [each for each in findings(recording, small=True) if each.rule == "R08"]


def steps_that_are_accepted_or_not(cp):
    state = cp.random(4 * MI)
    for step in range(24):
        proposal = state * 1.01
        energy = float(proposal.sum())
        if energy and step % 3 == 0:
            state = proposal
    state.sum()


def the_best_of_all(cp):
    best, total = None, cp.random(4 * MI)
    for trial in range(24):
        candidate = total * 0.5
        score = float(candidate.sum())
        if score and trial % 5 == 0:
            best = candidate
            total += best
        del candidate
    best.sum()


@pytest.mark.parametrize("program", [steps_that_are_accepted_or_not, the_best_of_all])
def test_results_that_the_host_may_choose_are_needed(program):
    assert chains(program) == []


def test_results_of_which_none_is_chosen_are_not_needed():
    def program(cp):
        state = cp.random(4 * MI)
        for _ in range(24):
            scaled = state * 1.01
            energy = float(scaled.sum())
            if energy < 0:
                break

    (finding,) = chains(program)

    assert "24 arrays of them are only read by the next ones" in finding.reason


def test_the_last_of_all_results_may_be_used_after_the_loop():
    def program(cp):
        state = cp.random(4 * MI)
        for _ in range(24):
            scaled = state * 1.01
            float(scaled.sum())
        cp.kernel("show", [scaled], [state])

    (finding,) = chains(program)

    assert "23 arrays of them are only read by the next ones" in finding.reason


def test_what_each_round_of_a_loop_reads_is_no_part_of_its_kernels():
    def program(cp):
        pixels = cp.random(16 * MI)
        volume = pixels * 2.0
        for _ in range(20):
            (cp.elementwise("sqrt", volume) * 0.5).sum()

    (finding,) = chains(program)

    assert "20 launches of one kernel" in finding.reason
    assert [each.source for each in finding.lines] == [
        '(cp.elementwise("sqrt", volume) * 0.5).sum()'
    ]


def test_a_few_rounds_of_a_line_are_kernels_of_their_own():
    def program(cp):
        field = cp.random(8 * MI)
        for step in range(20):
            field = field * 0.999 + cp.elementwise("sin", field)
            if step % 4 == 3 and float(field.sum()) < 0:
                break
        field.sum()

    assert all("launches of one kernel" in each.reason for each in chains(program))
    assert sum("20 launches" in each.reason for each in chains(program)) == 1


def steps_in_time(cp, *, between="", kernels=1):
    """Update a state by what is computed from it, as explicit steps in time do."""
    state, force, picture = (cp.uploaded(16 * MI) for _ in range(3))
    for _ in range(12):
        if kernels == 1:
            cp.kernel("fused", [state, force], [state])
            continue
        speed = cp.elementwise("sqrt", state * state + force)
        if between == "writes":
            cp.kernel("limit", [force], [state])
        elif between == "reads":
            cp.kernel("draw", [state], [picture])
        state += speed


@pytest.mark.parametrize("between", ["", "reads"])
def test_a_state_is_updated_by_the_kernel_that_computes_its_change(between):
    recording = of_arrays(lambda cp: steps_in_time(cp, between=between, kernels=4))
    (finding,) = (each for each in findings(recording, small=True) if each.rule == "R08")

    assert "36 arrays of them are only read by the next ones" in finding.reason
    assert finding.change.endswith("Its output is the array that it updates.")
    if not between:
        fused = of_arrays(steps_in_time)
        assert finding.saved_bytes == recording.peak().bytes - fused.peak().bytes
        saved_ns = recording.duration_ns - fused.duration_ns
        assert finding.saved_ns == pytest.approx(saved_ns, rel=0.2)


def test_a_state_that_other_work_writes_meanwhile_is_not_updated_by_one_kernel():
    found = chains(lambda cp: steps_in_time(cp, between="writes", kernels=4))

    assert all("state += speed" not in line.source for each in found for line in each.lines)


def test_the_result_of_a_loop_is_not_passed_on_by_each_of_its_rounds():
    def program(cp):
        total = cp.uploaded(16 * MI)
        for _ in range(8):
            part = cp.random(16 * MI)
            total = cp.elementwise("add", total, part)
        total.sum()

    assert chains(program) == []
