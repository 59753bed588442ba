"""R23: the default stream and other streams wait for each other, though they share no memory."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.replay.work_orders import BY_DEFAULT_STREAM
from gpuviz.advice.rule import Rule
from gpuviz.advice.waits.needless_orders import NeedlessOrders, needless_orders
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.advice.replay.schedule import Schedule

    # Title, reason, change, lines.
    _Texts = tuple[str, str, str, tuple[Line, ...]]

RULES = (
    Rule(
        "R23",
        "the default stream and others wait for each other",
        "these streams, and those that wait for them, use no common array of which one writes; or "
        "each operation on the default stream shares arrays with few of the other streams, which "
        "share none with each other: then only operations that use the same array keep their "
        "order, and one that uses arrays of several streams with all of these; synchronizations of "
        "the device separate what came before; one that copies to the host and one that copies "
        "from it may exchange data there, unless both use different pinned memory",
        "`with stream:` around what uses its arrays, or `non_blocking=True`",
    ),
)

_MOST_LINES = 5


def find(schedule: "Schedule") -> "Iterator[Finding]":
    """Find orders by the legacy default stream that no common memory needs.

    Trigger: work of the default stream and of blocking streams waits for each other, as CUDA
    defines it, and neither these streams nor those that wait for them share memory; see
    `gpuviz.advice.waits.sharing.Sharing`. If only the default stream shares memory with others, the
    orders of operations that use the same block stay, where one of them writes it, and those of an
    operation with each of several streams whose blocks it uses; see
    `gpuviz.advice.waits.needless_orders`. At least 1 % of the recording is saved.

    Saving: the recording's `Schedule`, replayed without the other orders. ``likely``, because it
    rests on the blocks that gpuviz sees among the arguments of kernels.
    """
    for orders in needless_orders(schedule, BY_DEFAULT_STREAM):
        title, reason, change, lines = (_shared if orders.is_mostly_shared else _apart)(
            schedule, orders
        )
        yield Finding(
            rule="R23",
            title=title,
            reason=(
                "CUDA runs work of the legacy default stream only after earlier work of all "
                f"blocking streams, and their later work only after it. {reason} the work would "
                f"end {format_duration(orders.saved_ns)} earlier."
            ),
            change=change,
            certainty="likely",
            device=orders.device,
            saved_ns=orders.saved_ns,
            lines=(*lines, *_waiting_lines(schedule, orders)),
            evidence=schedule.evidence(np.union1d(orders.before, orders.after)),
            schedule=orders.change,
        )


def _apart(_: "Schedule", orders: NeedlessOrders) -> "_Texts":
    """Return the texts of a finding about streams that share no memory."""
    return (
        (
            f"The default stream and other streams wait for each other {_times(orders)}, though "
            "they use different arrays."
        ),
        "Without this order",
        (
            "Create the streams with non_blocking=True, and order them after the default stream "
            "only where they begin to use its arrays."
        ),
        (),
    )


def _shared(schedule: "Schedule", orders: NeedlessOrders) -> "_Texts":
    """Return the texts of one about operations of the default stream that use others' arrays."""
    lines = _lines_on_default(schedule, orders)
    others = f" and {format_counted(len(lines) - 1, 'more line', 'more lines')}"
    which = text_of(lines[0]) + (others if len(lines) > 1 else "")
    return (
        (
            f"{which} on the default stream {'makes' if len(lines) == 1 else 'make'} other streams "
            f"wait for each other {_times(orders)}, though they use different arrays."
        ),
        "If only operations that use the same arrays waited for each other,",
        (
            f"Run {text_of(lines[0])} in the stream whose arrays it uses, with `with stream:`. Or "
            "create the streams with non_blocking=True, and let one wait for an event of the other "
            "where it uses its arrays: `other.wait_event(stream.record())`."
        ),
        lines,
    )


def _times(orders: NeedlessOrders) -> str:
    return format_counted(len(np.unique(orders.after)), "time", "times")


def _waiting_lines(schedule: "Schedule", orders: NeedlessOrders) -> tuple[Line, ...]:
    """Return the lines whose work waits, with how long any of it does, longest first."""
    recording, until = schedule.recording, schedule.end[orders.before]
    stacks = stacks_of(recording.tables, schedule.call[orders.after])
    numbers = line_numbers(recording, stacks)
    waited = {
        int(stacks[of_line[0]]): Intervals(
            (until - orders.waited_ns)[of_line], until[of_line]
        ).length
        for of_line in (np.flatnonzero(numbers == number) for number in np.unique(numbers))
    }
    longest = sorted(waited.items(), key=lambda each: -each[1])[:_MOST_LINES]
    return tuple(line_of(recording, stack, format_duration(time_ns)) for stack, time_ns in longest)


def _lines_on_default(schedule: "Schedule", orders: NeedlessOrders) -> tuple[Line, ...]:
    """Return the lines whose work on the default stream uses arrays of others, most work first."""
    recording = schedule.recording
    work = np.unique(orders.on_default[orders.is_shared])
    stacks = stacks_of(recording.tables, schedule.call[work])
    _, first, counts = np.unique(
        line_numbers(recording, stacks), return_index=True, return_counts=True
    )
    return tuple(
        line_of(
            recording,
            int(stacks[first[place]]),
            format_counted(int(counts[place]), "operation", "operations"),
        )
        for place in np.argsort(-counts, kind="stable")[:_MOST_LINES].tolist()
    )
