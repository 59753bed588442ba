"""Lines that run one after the other while the GPU waits, and the call that they belong to."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuviz.data.call_stacks import Frame
    from gpuviz.data.recording_data import RecordingData

    # Function, file and line of each call, outermost first.
    _Path = tuple[tuple[str, str, int], ...]

# Of the gaps of the one of two lines that has fewer: then they belong together.
_LEAST_COMMON = 0.5


@dataclass(frozen=True, slots=True)
class WorkGroup:
    """Lines that the host runs in the same gaps.

    Attributes:
        members: The numbers of the lines, ascending.
        call: The innermost call of the program that all of them are in, or the line itself if they
            are one; None if this call also contains the launches before and after them.
    """

    members: tuple[int, ...]
    call: "Frame | None"


def work_groups(
    recording: "RecordingData",
    stacks: "Sequence[int]",
    gaps: "Sequence[np.ndarray]",
    around: "Sequence[Sequence[tuple[int, int]]]",
) -> list[WorkGroup]:
    """Return which of some lines belong together.

    Two do if they run in the same gaps, or if one runs in the call that contains the others.

    Args:
        recording: The recording.
        stacks: A call stack of each line.
        gaps: For each line, the numbers of the gaps that it runs in.
        around: For each line and each of its gaps, the stacks of the calls before and after.
    """
    paths = [_path(recording, stack) for stack in stacks]
    groups = _in_same_gaps(gaps)
    calls = [_call(recording, paths, group, around) for group in groups]
    for number in sorted(range(len(groups)), key=lambda each: len(calls[each])):
        call = calls[number]
        if not call or not groups[number]:
            continue
        # To a line alone belong only its own runs, not all that it calls.
        longest = len(call) if len(groups[number]) == 1 else max(map(len, paths))
        for other, group in enumerate(groups):
            inside = all(
                paths[each][: len(call)] == call and len(paths[each]) <= longest for each in group
            )
            if other != number and group and inside:
                groups[number] |= group
                groups[other] = set()
    return [
        WorkGroup(tuple(sorted(group)), _frame(recording, stacks[min(group)], len(call)))
        for group, call in zip(groups, calls, strict=True)
        if group
    ]


def _in_same_gaps(gaps: "Sequence[np.ndarray]") -> list[set[int]]:
    """Return the sets of lines of which two at a time run in the same gaps."""
    groups: list[set[int]] = []
    for number, own in enumerate(gaps):
        near = [
            group
            for group in groups
            if any(
                len(np.intersect1d(own, gaps[other]))
                >= max(1, _LEAST_COMMON * min(len(own), len(gaps[other])))
                for other in group
            )
        ]
        groups = [each for each in groups if each not in near]
        groups.append({number}.union(*near))
    return groups


def _call(
    recording: "RecordingData",
    paths: "Sequence[_Path]",
    group: set[int],
    around: "Sequence[Sequence[tuple[int, int]]]",
) -> "_Path":
    """Return the path to the innermost common call; empty if it also contains the launches."""
    of_group = [paths[each] for each in sorted(group)]
    common = of_group[0]
    for path in of_group[1:]:
        length = next(
            (
                place
                for place, pair in enumerate(zip(common, path, strict=False))
                if pair[0] != pair[1]
            ),
            min(len(common), len(path)),
        )
        common = common[:length]
    if len(set(of_group)) == 1:
        return common
    pairs = Counter(pair for each in group for pair in around[each])
    inside = sum(
        count
        for pair, count in pairs.items()
        if all(_path(recording, stack)[: len(common)] == common for stack in pair)
    )
    return () if 2 * inside > pairs.total() else common


def _path(recording: "RecordingData", stack: int) -> "_Path":
    frames = recording.call_stacks.user_frames(stack)
    return tuple((frame.name, frame.filename, frame.line) for frame in reversed(frames))


def _frame(recording: "RecordingData", stack: int, depth: int) -> "Frame | None":
    """Return a frame of the program's own by its number from the outermost; None for the 0th."""
    frames = recording.call_stacks.user_frames(stack)
    return frames[len(frames) - depth] if depth else None
