"""Programs that compute the same values again."""

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI

SIZE, ROUNDS = 16 * MI, 20


def in_each_round(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = cp.elementwise("exp", x * x)
        state += weights


def once(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    weights = cp.elementwise("exp", x * x)
    for _ in range(ROUNDS):
        state += weights


def over_lines(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        squares = x * x
        weights = cp.elementwise("exp", squares)
        state += weights


def weights_of(cp, x):
    squares = x * x
    return cp.elementwise("exp", squares)


def by_a_function(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = weights_of(cp, x)
        state += weights


def again(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R57"]
