"""What gpuviz says about functions and kernels of CuPy that are made again and again (R47)."""

import numpy as np

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.remade_functions import RemadeFunction
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import MOST_SHOWN
from gpuviz.data.columns import plain
from gpuviz.quantities import format_duration

_WHY = {
    True: "traces the Python function and generates its source again",
    False: "prepares the kernel again",
}
_CHANGE = {
    True: "Decorate the function once, at module level, so that CuPy keeps what it traced. Pass "
    "what it uses of the enclosing function as arguments.",
    False: "Create the kernel once, at module level, and pass what changes as arguments.",
}


def remade_finding(schedule: Schedule, found: RemadeFunction) -> Finding:
    """Return the finding about a function or kernel that a line gets anew each time."""
    recording, made = schedule.recording, found.made
    shorter = np.zeros(len(schedule.called), np.int64)
    shorter[found.calls] = found.host_ns
    total = int(found.host_ns.sum())
    less = ScheduleChange(shorter_gap=shorter, at_most_ns=total)
    line = line_of(recording, found.stack, format_duration(total))
    launched = np.isin(schedule.call, found.calls)
    rows = np.sort(schedule.rows[launched])[:MOST_SHOWN]
    begin = plain(recording.tables["api_calls"]["time"])[found.calls]
    what = "fused function" if made.is_fused else "kernel"
    by = f"`{made.maker}` makes it" if made.name else f"It makes the {what}"
    each = format_duration(total // len(found.calls))
    return Finding(
        rule="R47",
        title=f"{text_of(line)} gets a new {what} each of the {found.count} times it runs.",
        reason=f"{by} anew before each call, so that CuPy {_WHY[made.is_fused]}, until it finds "
        f"the compiled code in its cache: {each} on average, {format_duration(total)} in total. "
        "The time is that between CUDA calls, as far as samples of the host are in this line.",
        change=_CHANGE[made.is_fused],
        certainty="likely",
        device=recording.devices[0],
        saved_ns=schedule.saved_alone(less),
        schedule=less,
        lines=(line,),
        evidence=Evidence("activities", tuple(rows.tolist()), (int(begin.min()), int(begin.max()))),
    )
