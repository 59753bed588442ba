"""Rounds that each update what the one before has left, such as a sum of all arrays of a list."""

from functools import cached_property

import numpy as np

from gpuviz.advice.arrays.elementwise import READ
from gpuviz.advice.reductions.reduction_rounds import Rounds
from gpuviz.advice.reductions.reduction_times import written_before
from gpuviz.advice.reductions.reduction_uses import Uses
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.data.columns import distinct, plain


class Accumulation(Rounds):
    """Rounds with a state: one array that all of them update, or one that each makes of the last.

    If the rounds use the arrays in the order in which these were made, and nothing else uses the
    state meanwhile, each round can follow the making of its array.

    Args:
        uses: All uses of blocks.
        blocks: Those that a line has kept.
        has_begun: Whether the first of them is what the state begins with, and has no round.
    """

    def __init__(self, uses: Uses, blocks: np.ndarray, *, has_begun: bool = False) -> None:
        blocks = blocks[np.argsort(uses.begin[blocks], kind="stable")]
        super().__init__(uses, blocks[has_begun:])
        self._first = blocks[:has_begun]
        # What is filled before the first round may be the state.
        if len(self.blocks):
            before = self._time[self._time < self._edges[0]]
            self._starts[0] = before.max(initial=self._window[0])

    def could_be_sooner(self, *, is_repeated: bool) -> bool:
        """Return whether each round could have been done when its array was made."""
        is_in_order = bool((np.diff(self._device.begin[self.blocks]) > 0).all())
        return (
            is_in_order
            and self._are_made_by_work()
            and len(self._state) > 0
            and self._is_state_apart()
            and super().could_be_sooner(is_repeated=is_repeated)
        )

    def _are_made_by_work(self) -> bool:
        """Return whether work has made the arrays, in the thread that also runs the rounds.

        What a loop only uploads is better uploaded later, and another thread may be a queue's.
        """
        device, tables = self._device, self._device.recording.tables
        number = device.number[self.blocks]
        needed = device.call_times[device.needed.first[number]]
        made = plain(tables["memory_events"]["thread"])[device.used.blocks.alloc[number]]
        used = plain(tables["api_calls"]["thread"])[device.used.last[number]]
        return bool((needed < self._edges[0]).all() and (made == used).all())

    def change(self) -> Change:
        """Return the lifetimes of the arrays, and of what the rounds make, if these were sooner."""
        device, arrays, after = self._device, super().change(), self._after_loop()
        made = np.flatnonzero(self._maker >= 0)
        of_round = self._maker[made]
        until = np.append(after, 0)[of_round + 1] + 1
        until = np.where(of_round + 1 < len(after), until, device.end[made])
        until = np.where(np.isin(made, self._state), until, after[of_round] + 1)
        since = self._begun_later()
        ends = np.where(np.isin(since, self._updated), device.end[since], after[0] + 1)
        first = self.reduced[: len(self.reduced) - len(self.blocks)]
        return Change(
            np.concatenate([first, arrays.blocks, made, since]),
            np.concatenate(
                [device.begin[first], arrays.begin, after[of_round], np.full(len(since), after[0])]
            ),
            np.concatenate([np.full(len(first), arrays.begin[0]), arrays.end, until, ends]),
        )

    @property
    def reduced(self) -> np.ndarray:
        """The blocks that the rounds reduce, and the one that only the beginning state takes."""
        of_first = np.isin(self._place, self._first)
        begins = np.isin(self._place, self._state) & (self._time < self._edges[1])
        is_taken = of_first.any() and np.isin(self._call[of_first], self._call[begins]).all()
        is_taken &= not np.isin(self._first, self._state).any()
        return np.append(self._first, self.blocks) if is_taken else self.blocks

    @cached_property
    def _of_others(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The touches of other blocks by rounds: their blocks, their rounds, and whether they read.

        What follows the rounds counts as one more.
        """
        of_round = self._reducing_round(self._time)
        of_round[self._time >= self._edges[-1]] = len(self.blocks)
        rows = np.flatnonzero((of_round >= 0) & (self._of_kept < 0) & (self._place >= 0))
        is_read = self._device.used.mode[self._rows[rows]] == READ
        return self._place[rows], of_round[rows], is_read

    @cached_property
    def _maker(self) -> np.ndarray:
        """The round that makes each block; -1 of those that none makes."""
        place, of_round, _ = self._of_others
        starts = np.append(self._starts[: len(self.blocks)], np.iinfo(np.int64).max)
        is_own = self._uses.begin[place] >= starts[of_round]
        maker = np.full(len(self._device.size), -1)
        maker[place[is_own]] = of_round[is_own]
        return maker

    @cached_property
    def _updated(self) -> np.ndarray:
        """The blocks that rounds change and that none of them makes."""
        place, of_round, is_read = self._of_others
        is_changed = ~is_read & (self._maker[place] < 0) & (of_round < len(self.blocks))
        return distinct(place[is_changed])

    @cached_property
    def _state(self) -> np.ndarray:
        """What rounds leave to the next one, and what the first of them begins with."""
        place, of_round, _ = self._of_others
        maker = self._maker[place]
        passed = place[(maker >= 0) & (of_round == maker + 1)]
        is_new = self._uses.begin[place] > self._window[0]
        seeds = place[is_new & (of_round == 0) & (maker < 0)]
        return distinct(np.concatenate([self._updated, passed, seeds]))

    def _begun_later(self) -> np.ndarray:
        """Return the blocks of the state that are made between the arrays and the first round."""
        begin = self._uses.begin[self._state]
        later: np.ndarray = self._state[(begin > self._window[0]) & (begin < self._starts[0])]
        return later

    def _is_state_apart(self) -> bool:
        """Return whether nothing but the rounds uses the state until the last one.

        What fills it before the first round can do so before the arrays are made, too.
        """
        device, state = self._device, self._state
        if (device.is_shared | device.is_used_at_any_time)[state].any():
            return False
        passed = state[(self._maker[state] >= 0) & (self._maker[state] + 2 < len(self._edges))]
        ends = device.used.blocks.end[device.number[passed]]
        if ((ends < 0) | (ends > self._edges[self._maker[passed] + 2])).any():
            return False
        is_meanwhile = self._time < self._edges[-1]
        others = np.isin(self._place, state) & is_meanwhile
        others &= self._reducing_round(self._time) < 0
        if (self._time[others] >= self._edges[0]).any():
            return False
        if not np.isin(self._place[others], self._begun_later()).all():
            return False
        # What else these calls touch is only read, and was there before the arrays.
        rows = np.flatnonzero(np.isin(self._call, self._call[others]))
        rows = rows[~np.isin(self._place[rows], state)]
        if (self._place[rows] < 0).any() or (device.used.mode[self._rows[rows]] != READ).any():
            return False
        place = self._place[rows]
        written = written_before(device, self._rows, place, self._time[rows])
        return bool((np.maximum(written, self._uses.begin[place]) < self._window[0]).all())
