"""R23: the default stream and other streams wait for each other, though they share no memory."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.constraints import BY_DEFAULT_STREAM
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.needless_orders import needless_orders
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.advice.schedule import Schedule

RULES = (
    Rule(
        "R23",
        "the default stream and others wait for each other",
        "these streams, and those that wait for them, use no common array of which one writes; "
        "synchronizations of the device separate what came before; one that copies to the host and"
        " one that copies from it may exchange data there",
        "`non_blocking=True`",
    ),
)


def find(schedule: "Schedule") -> "Iterator[Finding]":
    """Find orders by the legacy default stream that no common memory needs.

    Trigger: work of the default stream and of blocking streams waits for each other, as CUDA
    defines it, and neither these streams nor those that wait for them share memory; see
    `gpuviz.advice.sharing.Sharing`. At least 1 % of the recording is saved.

    Saving: the recording's `Schedule`, replayed without these orders. ``likely``, because it rests
    on the blocks that gpuviz sees among the arguments of kernels.
    """
    recording = schedule.recording
    for orders in needless_orders(schedule, BY_DEFAULT_STREAM):
        count = len(np.unique(orders.after))
        stacks = stacks_of(recording.tables, schedule.call[orders.after])
        yield Finding(
            rule="R23",
            title=(
                "The default stream and other streams wait for each other "
                f"{format_counted(count, 'time', 'times')}, though they use different arrays."
            ),
            reason=(
                "CUDA runs work of the legacy default stream only after earlier work of all "
                "blocking streams, and their later work only after it. Without this order the work "
                f"would end {format_duration(orders.saved_ns)} earlier."
            ),
            change=(
                "Create the streams with non_blocking=True, and order them after the default "
                "stream only where they begin to use its arrays."
            ),
            certainty="likely",
            device=orders.device,
            saved_ns=orders.saved_ns,
            lines=longest_lines(recording, stacks, orders.waited_ns),
            evidence=schedule.evidence(np.union1d(orders.before, orders.after)),
            schedule=orders.change,
        )
