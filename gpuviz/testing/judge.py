"""Verdicts on a test's recording, as text with the lines that are responsible."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gpuviz.data.columns import plain
from gpuviz.hazards.known import unknown
from gpuviz.present.text import hazards_text
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration
from gpuviz.testing.leaks import Owners, leaks
from gpuviz.testing.marks import HazardLimit, LeakLimit, Limits, MemoryLimit, SynchronizationLimit
from gpuviz.testing.measures import own_peak, reserved_peak

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_MOST_ROWS = 5


class Judge:
    """Judges one recording.

    Args:
        recording: The recording of the test.
        end_ns: When the test ended, on the recording's clock.
        known: The call stacks of the blocks that existed at the recording's start.
        depth: How many calls of each call stack to show.
        has_streams: Whether GPU activities were recorded.
    """

    def __init__(
        self,
        recording: "Recording",
        end_ns: int,
        known: Owners,
        *,
        depth: int,
        has_streams: bool,
    ) -> None:
        self._recording = recording
        self._end_ns = end_ns
        self._known = known
        self._depth = depth
        self._has_streams = has_streams

    def problems(self, limits: Limits) -> list[str]:
        """Return a text for each limit that the test exceeds, or that cannot be judged."""
        found = [
            *map(self._memory, limits.of(MemoryLimit)),
            *map(self._leaks, limits.of(LeakLimit)),
            *map(self._synchronizations, limits.of(SynchronizationLimit)),
            *map(self._hazards, limits.of(HazardLimit)),
        ]
        return [text for text in found if text]

    def peak_lines(self, device: int | None = None) -> str:
        """Return the lines that hold most of the memory of the test at its peak."""
        peak = own_peak(self._recording, device)
        if not peak.by_stack:
            return ""
        rows = self._rows(peak.by_stack)
        return f"At the peak of allocated bytes, at {format_duration(peak.time_ns)}:\n{rows}"

    def _memory(self, limit: MemoryLimit) -> str:
        where = "" if limit.device is None else f" on device {limit.device}"
        if limit.reserved:
            size, what = reserved_peak(self._recording, limit.device), "Reserved GPU memory"
        else:
            size, what = own_peak(self._recording, limit.device).bytes, "GPU memory of the test"
        if size <= limit.limit:
            return ""
        over = format_bytes(size - limit.limit)
        return (
            f"{limit.mark}: {what}{where} was {format_bytes(size)} at its peak, {over} more than "
            f"allowed.\n\n{self.peak_lines(limit.device)}".rstrip()
        )

    def _leaks(self, limit: LeakLimit) -> str:
        over = [
            leak
            for leak in leaks(self._recording, self._known)
            if leak.bytes > limit.limit and (not limit.filter_fn or limit.filter_fn(leak.stack))
        ]
        if not over:
            return ""
        stacks = format_counted(len(over), "call stack")
        rows = self._rows({leak.id: leak.bytes for leak in over})
        return (
            f"{limit.mark}: {stacks} of the test left more GPU memory allocated than the limit.\n\n"
            f"Still allocated at the end:\n{rows}"
        )

    def _synchronizations(self, limit: SynchronizationLimit) -> str:
        if not self._has_streams:
            return self._without_streams(limit)
        waits = self._recording.derived["host_waits"]
        chosen = plain(waits["time"]) <= self._end_ns
        counts = Counter(plain(waits["stack"])[chosen].tolist())
        total = counts.total()
        if total <= limit.limit:
            return ""
        times = format_counted(total, "time")
        rows = self._rows(dict(counts.most_common()), format_count)
        return f"{limit.mark}: the host waited for the GPU {times}.\n\nWaits by line:\n{rows}"

    def _hazards(self, limit: HazardLimit) -> str:
        if not self._has_streams:
            return self._without_streams(limit)
        if not self._recording.tables["activities"].num_rows:
            return ""
        found = [each for each in self._recording.hazards() if each.tier in limit.tiers]
        if reason := unknown(self._recording):
            return f"{limit.mark} cannot be judged: {reason}"
        if not found:
            return ""
        shown = hazards_text(self._recording, found[:_MOST_ROWS])
        count = format_counted(len(found), "hazard")
        return f"{limit.mark}: {count} between streams.\n\n{shown}"

    def _without_streams(self, limit: SynchronizationLimit | HazardLimit) -> str:
        reason = " ".join(self._recording.notes) or "GPU activities were not recorded."
        return f"{limit.mark} cannot be judged: {reason}"

    def _rows(self, by_stack: Mapping[int, int], form: Callable[[int], str] = format_bytes) -> str:
        """Return a row for each place, as deep as asked for, largest first."""
        sums = Counter[str]()
        for stack, value in by_stack.items():
            sums[self._place(stack)] += value
        rows = sums.most_common()
        shown = [f"{form(value):>12}  {place}" for place, value in rows[:_MOST_ROWS]]
        if len(rows) > _MOST_ROWS:
            rest = sum(value for _, value in rows[_MOST_ROWS:])
            places = format_counted(len(rows) - _MOST_ROWS, "other place")
            shown.append(f"{form(rest):>12}  in {places}")
        return "\n".join(shown)

    def _place(self, stack: int) -> str:
        """Return the line of the program that a stack belongs to, and the calls around it."""
        stacks = self._recording.call_stacks
        site, source = stacks.call_site(stack)
        frames, user = stacks.frames(stack), stacks.user_frame(stack)
        callers = frames[frames.index(user) + 1 :] if user in frames else []
        calls = [f"{'':>14}called by {each.site}" for each in callers[: self._depth - 1]]
        return "\n".join([f"{site}  {source}".rstrip(), *calls])
