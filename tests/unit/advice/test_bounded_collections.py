"""Arrays of a window or a cache, whose program cannot tell which of them it needs again."""

import random
from collections import OrderedDict, deque
from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays


def kept(program):
    """Return the findings about arrays that a program keeps too long."""
    rules = "R03", "R09", "R45"
    return [each for each in findings(of_arrays(program)) if each.rule in rules]


def window_of_states(length, every):
    def program(cp):
        recent, state = deque(maxlen=length), cp.random(4 * MI)
        for step in range(40):
            state = cp.elementwise("sin", state)
            recent.append(state)
            if step % every == every - 1:
                cp.kernel("extrapolate", list(recent), [state])

    return program


def last_recently_used(seed):
    def program(cp):
        draw, cache, total = random.Random(seed), OrderedDict(), cp.random(2 * MI)
        for _ in range(60):
            key = min(int(draw.expovariate(0.3)), 14)
            if key in cache:
                cache.move_to_end(key)
            else:
                cache[key] = cp.random(2 * MI)
                if len(cache) > 5:
                    cache.popitem(last=False)
            total += cache[key]

    return program


@pytest.mark.parametrize(
    "program",
    [
        *(window_of_states(*each) for each in ((4, 7), (3, 10), (8, 8), (6, 13))),
        *(last_recently_used(seed) for seed in range(4)),
    ],
)
def test_what_a_window_or_a_cache_keeps_for_later_is_not_dead(program):
    assert kept(program) == []


def test_a_window_of_which_only_the_newest_are_used_is_dead():
    def program(cp):
        recent, state = deque(maxlen=5), cp.random(4 * MI)
        for step in range(30):
            state = cp.elementwise("sin", state)
            recent.append(state)
            if step:
                cp.kernel("two", [recent[-2], recent[-1]], [state])

    (finding,) = kept(program)

    assert finding.rule == "R45"
    assert finding.saved_bytes == 64 * MI
    assert "a new array of each" not in finding.title


def test_the_oldest_of_a_window_is_dead_once_it_has_had_its_turn():
    def program(cp):
        recent, state = deque(maxlen=4), cp.random(4 * MI)
        for _ in range(30):
            state = cp.elementwise("sin", state)
            recent.append(state)
            cp.kernel("extrapolate", list(recent), [state])

    (finding,) = kept(program)

    assert (finding.rule, finding.saved_bytes) == ("R45", 16 * MI)


def test_a_reference_does_not_make_a_cache_of_what_it_is_compared_with():
    def program(cp):
        made = deque(maxlen=6)
        reference = None
        for _ in range(30):
            sample = cp.random(4 * MI)
            if reference is None:
                reference = sample
            cp.kernel("compare", [reference, sample], [sample])
            made.append(sample)

    assert sum(each.saved_bytes for each in kept(program)) >= 64 * MI


def edits(cp, *, length, count=20, undoes=4, drops_first=False):
    """Go back two states after every few of them, to others than those that were dropped."""
    image, history = cp.random(4 * MI), deque(maxlen=length)
    for edit in range(count):
        if drops_first and len(history) == length:
            history.popleft()
        history.append(cp.elementwise("copy", image))
        cp.kernel("edit", [image], [image])
        if edit % undoes == undoes - 1:
            history.pop()
            image = history.pop()
    image.sum()


def test_of_states_to_go_back_to_only_the_one_that_is_replaced_is_dead():
    (finding,) = kept(partial(edits, length=3))

    following = partial(edits, length=3, drops_first=True)
    saved = of_arrays(partial(edits, length=3)).peak().bytes - of_arrays(following).peak().bytes
    assert "makes the next one" in finding.change
    assert (finding.rule, finding.saved_bytes) == ("R45", saved)
    assert saved == 16 * MI


def test_states_to_go_back_to_that_nothing_replaces_are_not_dead():
    assert kept(partial(edits, length=None, count=7, undoes=6)) == []
