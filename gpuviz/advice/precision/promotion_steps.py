"""Which kinds of arrays in double precision follow from others, and from which lines."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    """The steps of a program that make arrays in double precision, by kinds of arrays.

    Attributes:
        starts: Which kinds are the first.
        pairs: Kinds, and those that are made with them.
        needs: Kinds, and those that are as precise as them.
        cut: Kinds that do not follow.
    """

    starts: np.ndarray
    pairs: np.ndarray
    needs: np.ndarray
    cut: np.ndarray

    def reached(self) -> np.ndarray:
        """Return which kinds follow from the first ones alone."""
        may_follow = np.ones(len(self.starts), bool)
        may_follow[self.cut] = False
        while True:
            reached = self._following(self.starts, may_follow)
            lacking = self._lacking(reached)
            if not len(lacking):
                return reached
            may_follow[lacking] = False

    def with_origins(self, kind: int, site: np.ndarray, suits: np.ndarray) -> "Steps":
        """Return the steps that start from the lines of which an operand is computed.

        They are the same if what meets the operand needs nothing else in double precision, or not
        all of that follows from these lines.

        Args:
            kind: The operand's kind.
            site: The line that makes each kind.
            suits: Which kinds are cheap to convert where they are made.
        """
        may_follow = np.ones(len(self.starts), bool)
        may_follow[self.cut] = False
        if not len(self._lacking(self._following(self.starts, may_follow))):
            return self
        origins = self._origins(kind, site)
        if not len(origins) or not suits[origins].all():
            return self
        starts = self.starts.copy()
        starts[origins] = True
        reached = self._following(starts, may_follow)
        is_all = reached[kind] and not len(self._lacking(reached))
        return replace(self, starts=starts) if is_all else self

    def _origins(self, kind: int, site: np.ndarray) -> np.ndarray:
        """Return the kinds of the lines that use no others, of those that a kind needs."""
        is_needed = np.zeros(len(self.starts), bool)
        is_needed[kind] = True
        while True:
            more = self.needs[0, is_needed[self.needs[1]]]
            if is_needed[more].all():
                break
            is_needed[more] = True
        source, made = self.needs
        of_others = np.unique(site[made[site[source] != site[made]]])
        return np.flatnonzero(is_needed & ~np.isin(site, of_others))

    def _following(self, starts: np.ndarray, may_follow: np.ndarray) -> np.ndarray:
        reached: np.ndarray = starts & may_follow
        while True:
            more = self.pairs[1, reached[self.pairs[0]] & may_follow[self.pairs[1]]]
            if reached[more].all():
                return reached
            reached[more] = True

    def _lacking(self, reached: np.ndarray) -> np.ndarray:
        """Return the kinds of which something stays in double precision that they need."""
        lacking: np.ndarray = self.needs[1, reached[self.needs[1]] & ~reached[self.needs[0]]]
        return lacking
