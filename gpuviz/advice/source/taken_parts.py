"""How much of an array the text of a program takes by a subscript of constants."""

import ast

from gpuviz.advice.source.conditions import statement_text
from gpuviz.advice.source.parsed_text import is_ellipsis, number_in, parsed, parts_of_index
from gpuviz.data.recording_data import RecordingData


def tree_of_line(recording: RecordingData, stack: int) -> ast.Module | None:
    """Return the syntax tree of the line of a call stack, or of the statement that it belongs to.

    None if neither can be understood.
    """
    frame = recording.call_stacks.user_frame(stack)
    tree = None if frame is None else parsed(frame.source.strip())
    return parsed(statement_text(recording, stack)) if tree is None else tree


def most_taken(index: ast.expr) -> float | None:
    """Return which share of an array an index takes at most, as far as its constants show.

    None if it may repeat elements, as arrays of indices do, or take any, as masks do. The length of
    an axis is only known to be what an index needs: it may be 1 for ``[0]``, but not for ``[1]``.
    Of an axis that a step goes over, it is taken to be a multiple of the step.
    """
    share = 1.0
    for part in parts_of_index(index):
        number = number_in(part)
        if number is not None:
            share /= number + 1 if number >= 0 else -number
        elif isinstance(part, ast.Slice):
            share *= _of_slice(part)
        elif not is_ellipsis(part) and not _is_new_axis(part):
            return None
    return share


def _is_new_axis(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is None


def _of_slice(part: ast.Slice) -> float:
    """Return which share of an axis a slice takes at most.

    PyTorch has no negative steps, with which that is not known here.
    """
    step = 1 if part.step is None else number_in(part.step)
    if step is None or step < 1:
        return 1
    first, last = number_in(part.lower), number_in(part.upper)
    if first is None or last is None or last <= first or (first < 0) != (last < 0):
        return 1 / step
    # Of a longer axis it is less, and of a shorter one as well, since the end is missing there.
    longest = last if last > 0 else -first
    return min(1 / step, (last - first) / longest)
