"""Detection of a period in a sequence of numbers that may have odd elements."""

from dataclasses import dataclass

import numpy as np

# Of the elements of all repetitions, those that may be missing or added.
MOST_DEVIATION = 0.05
# The same if nearly all repetitions are equal: then what is added, such as a log line's reductions
# every tenth step, is beside the loop.
_MOST_BESIDE = 0.2
_NEARLY_ALL = 0.85
# A period of at least this many elements may have an odd one in few repetitions.
_LONG = 4
_LEAST_EQUAL = 0.5
# Of the usual length, what the first and the last repetition may differ by.
_SIMILAR = 0.25
# Repetitions of more different kinds are not similar.
_MOST_KINDS = 1000
# Elements that repeat those of the usual repetition; fewer may do so by accident.
_LEAST_REPEATED = 8
# Two elements that follow themselves always take turns.
_FEWEST_RUNS = 3
# Of the elements that occur equally often, so many are tried as the first of a repetition.
_MOST_TRIED = 8
# In each round of a loop, another one within it has at least so many.
_FEWEST_WITHIN = 2
# Elements of a loop occur about as often as its first one.
_AS_OFTEN = 0.8


@dataclass(frozen=True, slots=True)
class Repeats:
    """Repetitions of a part of a sequence.

    Attributes:
        starts: The place where each repetition begins, which is where the one before ends.
        end: The place after the last repetition.
        length: Elements of the usual repetition, to which most of them are equal.
        usual: The number of the first usual repetition.
    """

    starts: np.ndarray
    end: int
    length: int
    usual: int


def repeats(elements: np.ndarray, *, fewest: int) -> Repeats | None:
    """Return the repetitions of the shortest period in most of a sequence; None without one.

    An element that only follows itself is no period: a loop around it is.

    More than half of them are equal. All others together differ from these in the number of their
    elements by at most 5 % of the elements (20 % if at least 85 % of the repetitions are equal), or
    by one element if there are few. What is before and after them may be anything. At least eight
    elements repeat. If three or more elements follow each other in such repetitions, each of them
    may follow itself any number of times.

    Args:
        elements: Numbers from 0.
        fewest: Repetitions that there are at least.
    """
    if not elements.size:
        return None
    sequence = _Sequence(elements)
    found = _shortest(sequence, fewest)
    runs = np.flatnonzero(np.append(True, elements[1:] != elements[:-1]))
    if len(runs) == len(elements):
        return found
    around = _shortest(_Sequence(elements[runs]), fewest)
    edges = np.append(runs, len(elements))
    if around is None or not _is_better(around, edges, found):
        return found
    of_equal_length = sequence.from_starts(runs[around.starts], fewest) or found
    if of_equal_length is not None or around.length < _FEWEST_RUNS:
        return of_equal_length
    starts, end = runs[around.starts], int(edges[around.end])
    length = int(np.append(starts, end)[around.usual + 1] - starts[around.usual])
    return Repeats(starts, end, length, around.usual)


def _is_better(around: Repeats, edges: np.ndarray, found: Repeats | None) -> bool:
    """Return whether repetitions of runs are a loop within other repetitions, or around them.

    In a loop of which every element occurs several times in a round, only a run of them begins one.

    Args:
        around: Repetitions of runs.
        edges: Where each run begins, and where the last one ends.
        found: Repetitions of the elements.
    """
    if found is None or found.length == 1:
        return True
    covered = int(edges[around.end] - edges[around.starts[0]])
    is_within = len(around.starts) >= _FEWEST_WITHIN * len(found.starts)
    return is_within and covered >= _AS_OFTEN * _covered(found)


def repeats_around(elements: np.ndarray, inner: Repeats, *, fewest: int) -> Repeats | None:
    """Return the repetitions that each have several of others, and more; None without them.

    Args:
        elements: Numbers from 0.
        inner: What `repeats` found in them.
        fewest: Repetitions that there are at least.
    """
    further = further_elements(elements, inner)
    if not len(further):
        return None
    firsts = further[np.append(True, np.diff(further) > 1)]
    return _Sequence(elements).from_starts(firsts, fewest)


def further_elements(elements: np.ndarray, found: Repeats) -> np.ndarray:
    """Return the places of elements that repetitions have after those of the usual one.

    Empty if any repetition does not begin with the elements of the usual one.
    """
    places = found.starts[:, None] + np.arange(found.length)
    usual = places[found.usual]
    if places[-1, -1] >= found.end or (elements[places] != elements[usual]).any():
        return np.zeros(0, np.int64)
    is_further = np.ones(found.end, bool)
    is_further[: found.starts[0]] = False
    is_further[places.reshape(-1)] = False
    further: np.ndarray = np.flatnonzero(is_further)
    return further


def _shortest(sequence: "_Sequence", fewest: int) -> Repeats | None:
    """Return the repetitions of the shortest period of a sequence; None without one."""
    counts, first = sequence.counts, sequence.first
    order = np.lexsort((first, -counts))
    tried = dict[int, int]()
    loops = dict[int, list[Repeats]]()
    best: Repeats | None = None
    for element in order[counts[order] >= fewest - 1].tolist():
        count = int(counts[element])
        if best is not None and count < _AS_OFTEN * len(best.starts):
            break
        # The others that occur as often begin the same repetitions later, if they are in the loop.
        known = loops.setdefault(count, [])
        if tried.get(count, 0) == _MOST_TRIED or any(
            loop.starts[0] <= first[element] < loop.end for loop in known
        ):
            continue
        found = sequence.from_each(element, fewest)
        tried[count] = tried.get(count, 0) + 1
        if found is not None:
            known.append(found)
        if found is not None and (best is None or _covered(found) > _covered(best)):
            best = found
    return best


def _with_known(kinds: np.ndarray, begin: int, end: int) -> slice:
    """Return a part of a sequence with what is beside it and of a kind that is in it, too."""
    others = np.flatnonzero(~np.isin(kinds, kinds[begin:end]))
    before, after = others[others < begin], others[others >= end]
    return slice(
        int(before[-1]) + 1 if len(before) else 0, int(after[0]) if len(after) else len(kinds)
    )


def _covered(found: Repeats) -> int:
    return found.end - int(found.starts[0])


class _Sequence:
    """A sequence whose parts can be compared by a hash."""

    def __init__(self, elements: np.ndarray) -> None:
        self._elements = elements
        random = np.random.default_rng(0)
        self.counts = np.bincount(elements)
        values = random.integers(1, 2**63, len(self.counts), np.uint64)
        factor = random.integers(1, 2**63, dtype=np.uint64) | np.uint64(1)
        inverse = np.uint64(pow(int(factor), -1, 2**64))
        powers = np.full(len(elements), factor)
        powers[0] = 1
        powers = np.multiply.accumulate(powers)
        self._sums = np.concatenate([[np.uint64(0)], np.cumsum(values[elements] * powers)])
        unscaled = np.full(len(elements), inverse)
        unscaled[0] = 1
        self._unscaled = np.multiply.accumulate(unscaled)
        self._order = np.argsort(elements, kind="stable")
        self._ends = np.cumsum(self.counts)
        self.first = np.full(len(self.counts), len(elements))
        present = self.counts > 0
        self.first[present] = self._order[(self._ends - self.counts)[present]]

    def from_each(self, element: int, fewest: int) -> Repeats | None:
        """Return the repetitions that begin with each occurrence of an element, if they are."""
        last = int(self._ends[element])
        return self.from_starts(self._order[last - int(self.counts[element]) : last], fewest)

    def from_starts(self, starts: np.ndarray, fewest: int) -> Repeats | None:
        """Return the repetitions that begin at some places, ascending, if they are."""
        if len(starts) < fewest:
            return None
        ends = starts[1:]
        kinds, first, kind_of, number = np.unique(
            self._hashes(starts[:-1], ends),
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        usual = int(number.argmax())
        if number[usual] < _LEAST_EQUAL * len(ends) or len(kinds) > _MOST_KINDS:
            return None
        lengths = (ends - starts[:-1])[first]
        length = int(lengths[usual])
        counts = self._counts(starts[first[usual]], starts[first[usual]] + length)
        kind_of = kind_of.reshape(-1)
        last_kind = self._last_kind(int(starts[-1]), kinds, lengths)
        if last_kind is None:
            starts = starts[:-1]
        else:
            kind_of = np.append(kind_of, last_kind)
            ends = np.append(ends, starts[-1] + lengths[last_kind])
        differences = np.array(
            [
                0 if kind == usual else np.abs(self._counts(starts[row], ends[row]) - counts).sum()
                for kind, row in enumerate(first.tolist())
            ]
        )[kind_of]
        odd_one = 1 if length >= _LONG else 0
        similar = np.flatnonzero(differences <= max(_SIMILAR * length, odd_one))
        if len(similar) < fewest:
            return None
        chosen = _with_known(kind_of, int(similar[0]), int(similar[-1]) + 1)
        starts, ends = starts[chosen], ends[chosen]
        differences, is_usual = differences[chosen], kind_of[chosen] == usual
        share = _MOST_BESIDE if is_usual.mean() >= _NEARLY_ALL else MOST_DEVIATION
        most = max(share * (ends[-1] - starts[0]), odd_one)
        if differences.sum() > most or is_usual.mean() <= _LEAST_EQUAL:
            return None
        if (is_usual.sum() - 1) * length < _LEAST_REPEATED:
            return None
        return self._from_the_first(Repeats(starts, int(ends[-1]), length, int(is_usual.argmax())))

    def _from_the_first(self, found: Repeats) -> Repeats:
        """Return the repetitions from the first element that belongs to them."""
        first, end, length = int(found.starts[0]), found.end, found.length
        usual = int(found.starts[found.usual])
        tail = self._elements[usual : usual + length][::-1]
        before = self._elements[max(first - length, 0) : first][::-1]
        differ = np.flatnonzero(tail[: len(before)] != before)
        earlier = int(differ[0]) if differ.size else len(before)
        starts = found.starts - earlier
        if (self._hashes(starts, found.starts) != self._hashes(starts, found.starts)[0]).any():
            return found
        end -= earlier
        again = self._elements[end : end + length]
        if np.array_equal(again, self._elements[usual - earlier : usual - earlier + length]):
            starts, end = np.append(starts, end), end + length
        return Repeats(starts, end, length, found.usual)

    def _last_kind(self, start: int, kinds: np.ndarray, lengths: np.ndarray) -> int | None:
        """Return the kind of the last repetition, which anything may follow; None without one."""
        for kind in np.argsort(-lengths, kind="stable").tolist():
            end = start + int(lengths[kind])
            if end <= len(self._elements):
                (hashed,) = self._hashes(np.array([start]), np.array([end]))
                if hashed == kinds[kind]:
                    return int(kind)
        return None

    def _hashes(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        hashes: np.ndarray = (self._sums[ends] - self._sums[starts]) * self._unscaled[starts]
        return hashes

    def _counts(self, start: int, end: int) -> np.ndarray:
        return np.bincount(self._elements[start:end], minlength=len(self.counts))
