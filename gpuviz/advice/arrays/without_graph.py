"""When the arrays of a forward pass would be freed if autograd kept none of them."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpuviz.advice.arrays.device_blocks import DeviceBlocks


def ends_without_graph(
    device: "DeviceBlocks",
    blocks: np.ndarray,
    used: np.ndarray,
    known: np.ndarray,
    is_unknown: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places where blocks would be freed, and for which of them that is a guess.

    Kernels of libraries may not name the arrays that they use. Then a block is freed when the one
    after the next one is allocated, as in a chain of modules, but not before the last line that is
    known to use it. That is so, too, where this is the line that makes it: the functions that the
    line calls free it when they return.

    Args:
        device: All blocks.
        blocks: Those of a graph, in the order of their allocations.
        used: The place after the line that last uses each, or may.
        known: The last call that is known to use it, a row of ``api_calls``; -1 without one.
        is_unknown: Whether work that does not name it may have been the last to use it.
    """
    begin, end = device.begin[blocks], device.end[blocks]
    after_line, after_call = (
        np.where(known >= 0, np.clip(places, begin, end), begin)
        for places in (device.after_lines(known), device.after_calls(known))
    )
    made = device.after_lines(device.used.first[device.number[blocks]])
    is_within = after_line == np.minimum(made, end)
    in_chain = np.append(begin[2:], end[-2:])
    guess = np.minimum(np.maximum(np.where(is_within, after_call, after_line), in_chain), end)
    # Only what the program keeps itself can be used by work that does not name it.
    is_guess = (is_unknown | (used >= end)) & (guess < end)
    within = np.minimum(guess, used)
    return np.where(is_guess, guess, np.where(is_within, within, used)), is_guess
