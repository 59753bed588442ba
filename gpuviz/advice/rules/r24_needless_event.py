"""R24: a stream waits for an event of another stream, though they share no memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.work_orders import BY_EVENT
from gpuviz.advice.rule import Rule
from gpuviz.advice.waits.needless_orders import NeedlessOrders, needless_orders
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.launches import calls_of, stacks_of
from gpuviz.data.columns import plain
from gpuviz.quantities import format_counted, format_duration

RULES = (
    Rule(
        "R24",
        "needless waits for events",
        "the same, for `wait_event`",
        "wait only for work whose arrays the stream uses",
    ),
)

_MOST_LINES = 5


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find waits for events that no common memory needs.

    Trigger: streams wait for events of others (``stream_waits``), and neither these streams nor
    those that wait for them share memory; see `gpuviz.advice.waits.sharing.Sharing`. At least 1 %
    of the recording is saved.

    Saving: the recording's `Schedule`, replayed without these orders. ``likely``, because it rests
    on the blocks that gpuviz sees among the arguments of kernels.
    """
    for orders in needless_orders(schedule, BY_EVENT):
        lines = _lines(schedule, orders)
        which = text_of(lines[0]) if len(lines) == 1 else f"{text_of(lines[0])} and other lines"
        count = format_counted(len(np.unique(orders.after)), "time", "times")
        yield Finding(
            rule="R24",
            title=(
                f"{which} {'orders' if len(lines) == 1 else 'order'} streams that use different "
                "arrays."
            ),
            reason=(
                f"{count} a stream waits for an event of another one whose arrays neither it nor "
                "any stream that waits for it uses. Without these waits the work would end "
                f"{format_duration(orders.saved_ns)} earlier."
            ),
            change=(
                "Wait only for events of work whose results the stream uses, or whose arrays it "
                "overwrites."
            ),
            certainty="likely",
            device=orders.device,
            saved_ns=orders.saved_ns,
            lines=lines,
            evidence=schedule.evidence(np.union1d(orders.before, orders.after)),
            schedule=orders.change,
        )


def _lines(schedule: Schedule, orders: NeedlessOrders) -> tuple[Line, ...]:
    """Return the lines that make the streams wait, most waits first."""
    tables = schedule.recording.tables
    waits = derived(schedule.recording)["stream_waits"]
    pairs: Any = [schedule.stream[each].astype(np.int64) for each in (orders.before, orders.after)]
    needless = np.unique((pairs[0] << 32) | pairs[1])
    recorded, waiting = (
        plain(waits[name]).astype(np.int64) for name in ("recorded_stream", "waiting_stream")
    )
    rows = plain(waits["wait"])[np.isin((recorded << 32) | waiting, needless)]
    launches = plain(tables["synchronizations"]["correlation"])[rows]
    stacks = stacks_of(tables, calls_of(tables, launches))
    _, first, counts = np.unique(
        line_numbers(schedule.recording, stacks), return_index=True, return_counts=True
    )
    return tuple(
        line_of(
            schedule.recording,
            int(stacks[first[place]]),
            format_counted(int(counts[place]), "wait"),
        )
        for place in np.argsort(-counts, kind="stable")[:_MOST_LINES].tolist()
    )
