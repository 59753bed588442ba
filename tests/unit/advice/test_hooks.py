"""Lines that call a library that calls lines of the program, such as hooks of a model."""

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays


def kept(program):
    """Return the findings about arrays that a program keeps too long."""
    rules = "R03", "R09", "R45"
    return [each for each in findings(of_arrays(program)) if each.rule in rules]


def test_what_a_library_holds_while_it_calls_a_hook_is_not_dead():
    def program(cp):
        def hook(result):
            (result * result).sum()

        for _ in range(6):
            cp.layers(cp.random(8 * MI), hook)

    assert kept(program) == []


def test_what_a_hook_keeps_is_dead():
    def program(cp):
        seen = []

        def hook(result):
            seen.append(result)

        for _ in range(6):
            cp.layers(cp.random(8 * MI), hook)
            cp.random(MI).sum()

    assert sum(each.saved_bytes for each in kept(program)) >= 16 * 32 * MI


def test_what_a_loop_of_one_line_collects_is_dead():
    def program(cp):
        def scaled(array):
            return array * 2.0

        source = cp.random(8 * MI)
        kept = [scaled(source) + 1.0 for _ in range(12)]
        assert len(kept) == 12

    assert sum(each.saved_bytes for each in kept(program)) >= 8 * 32 * MI
