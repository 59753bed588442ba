"""Lines of the program whose values decide what it does next."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

# Lines before and after a line that are close to it.
_CLOSE = 8
# Statements that branch on the value of an expression.
_BRANCH = re.compile(r"\s*(while|if|elif|assert)\b(?P<condition>.*)")


def decides(recording: "RecordingData", stack: int) -> bool:
    """Return whether the program branches on what the line of a call stack computes.

    The line itself branches, or it assigns to a name by which a line close to it does.
    """
    number = recording.call_stacks.user_frame_number(stack)
    frames = recording.tables["frames"]
    row = frames["id"].index(number).as_py()
    if row < 0:
        return False
    columns = ("source", "assigned", "line", "context", "context_line")
    source, assigned, line, context, first = (frames[name][row].as_py() for name in columns)
    if _BRANCH.match(source):
        return True
    names = [re.escape(name) for name in assigned.split(", ") if name]
    if not names:
        return False
    used = re.compile(rf"\b({'|'.join(names)})\b")
    close = context.split("\n")[max(line - first - _CLOSE, 0) : line - first + _CLOSE + 1]
    branches = map(_BRANCH.match, close)
    return any(each is not None and used.search(each["condition"]) for each in branches)
