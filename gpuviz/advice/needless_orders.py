"""Orders between streams that no common memory needs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.constraints import BY_DEFAULT_STREAM, BY_EVENT
from gpuviz.advice.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.schedule import Schedule, ScheduleChange


@dataclass(frozen=True, eq=False, slots=True)
class NeedlessOrders:
    """Pairs of activities of a device whose order no common memory needs.

    Attributes:
        device: Ordinal.
        before: The activities that end first.
        after: For each, the one that waits for it.
        waited_ns: How long it waited for the first, after its launch and the work before it on its
            stream.
        change: The schedule without these orders.
        saved_ns: What that saves.
    """

    device: int
    before: "NDArray[Any]"
    after: "NDArray[Any]"
    waited_ns: "NDArray[Any]"
    change: "ScheduleChange"
    saved_ns: int


def needless_orders(schedule: "Schedule", reason: int) -> "Iterator[NeedlessOrders]":
    """Yield the orders of a kind that take at least 1 % of the recording, for each device.

    Args:
        schedule: The recording's schedule.
        reason: `BY_EVENT` or `BY_DEFAULT_STREAM`.
    """
    rows, before, after = schedule.orders(reason)
    shared = sharing(schedule) if len(rows) else None
    if shared is None:
        return
    _, *orders = schedule.orders(BY_DEFAULT_STREAM, BY_EVENT)
    is_needless = ~shared.between(before, after, np.stack(orders))
    ready = np.maximum(schedule.launch_begin(), _previous_end(schedule))
    waited = schedule.end[before] - ready[after]
    for device in schedule.recording.devices:
        chosen = is_needless & (schedule.device[after] == device)
        change = schedule.without(rows[chosen])
        saved_ns = schedule.saved_alone(change) if chosen.any() else 0
        late = chosen & (waited > 0)
        if saved_ns >= schedule.relevant_ns and late.any():
            yield NeedlessOrders(device, before[late], after[late], waited[late], change, saved_ns)


def _previous_end(schedule: "Schedule") -> "NDArray[Any]":
    """Return when the previous activity of the same stream ended; 0 without one."""
    order = np.lexsort((schedule.begin, schedule.stream))
    before, after = order[:-1], order[1:]
    same = schedule.stream[before] == schedule.stream[after]
    ends = np.zeros_like(schedule.begin)
    ends[after[same]] = schedule.end[before[same]]
    return ends
