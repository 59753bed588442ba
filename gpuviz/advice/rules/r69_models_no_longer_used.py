"""R69: models that the program does not use any more are still allocated at the peak."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import durations
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R69",
        "models that are no longer used",
        "in a training, parameters, gradients or optimizer states are allocated at the peak "
        "after the last work that uses them has ended, and newer parameters, which are used later, "
        "have been made since; at least two of these kinds are among them; parameters count if "
        "they are of several models, used one after the other: a single one may be the best so far",
        "drop all references to earlier models and their optimizers, such as in a list",
    ),
)

_KINDS = {
    "parameters": CATEGORIES.index("parameter"),
    "gradients": CATEGORIES.index("gradient"),
    "optimizer states": CATEGORIES.index("optimizer_state"),
}
_LEAST_KINDS = 2


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find what is left at the peak of models whose successors are trained.

    Trigger: the last work that uses some parameters, gradients or optimizer states has ended before
    parameters are made that are used after the peak. They are freed after it. Gradients live as
    long as their parameters. A single kind may have other reasons, and so may the parameters of a
    single model: until a better one is found, the program may need them for its result.

    Saving: the decrease of the peak if all of them were freed after their last use.
    """
    if device.training is None:
        return
    category, ended = device.training.category, _ended(device)
    of_models = np.isin(category, list(_KINDS.values())) & device.at_peak & device.is_freed
    of_models &= ~device.is_initial & ~device.is_used_at_any_time & device.is_seen
    of_models &= (device.last_known >= 0) & (device.stack != 0)
    is_used = of_models & (category == _KINDS["parameters"]) & (ended > device.peak_place)
    newest = np.flatnonzero(is_used & (device.begin == device.begin[is_used].max(initial=-1)))
    blocks = np.flatnonzero(of_models & (ended < device.begin[newest].max(initial=-1)))
    is_parameter = category[blocks] == _KINDS["parameters"]
    if not _are_of_several(device.begin[blocks[is_parameter]], ended[blocks[is_parameter]]):
        blocks = blocks[~is_parameter]
    kinds = [name for name, code in _KINDS.items() if (category[blocks] == code).any()]
    if len(kinds) >= _LEAST_KINDS:
        yield _finding(device, blocks, ended[blocks], newest, kinds)


def _are_of_several(begin: np.ndarray, ended: np.ndarray) -> bool:
    """Return whether some parameters were made after the last work that uses others."""
    return bool(begin.max(initial=-1) > ended.min(initial=np.iinfo(np.int64).max))


def _ended(device: DeviceBlocks) -> np.ndarray:
    """Return the place after which the last work that uses each block has ended.

    Also that on other streams, such as those that cuDNN uses itself.
    """
    used, activities = device.used, device.recording.tables["activities"]
    ends = plain(activities["time"]) + durations(activities, device.recording.bounds)
    rows = np.flatnonzero((device.place[used.block] >= 0) & (used.activity >= 0))
    latest = np.full(len(device.size), -1, np.int64)
    np.maximum.at(latest, device.place[used.block[rows]], ends[used.activity[rows]])
    ended: np.ndarray = np.clip(
        np.maximum(device.after_known_line, device.after_times(latest)), device.begin, device.end
    )
    return ended


def _finding(
    device: DeviceBlocks,
    blocks: np.ndarray,
    ended: np.ndarray,
    newest: np.ndarray,
    kinds: list[str],
) -> Finding:
    lines, newer = device.lines.lines_of(blocks), device.lines.line_of(newest)
    no_longer = "used" if "parameters" in kinds else "trained"
    return Finding(
        rule="R69",
        title=f"Models that are no longer {no_longer} hold "
        f"{format_bytes(int(device.size[blocks].sum()))} at the peak: {', '.join(kinds[:-1])} and "
        f"{kinds[-1]}.",
        reason=f"Their last work had ended when {named(newer.site, newer.source)} made the model "
        "that is used now.",
        change="Drop all references to earlier models and their optimizers: variables, and lists "
        "that collect them beside the results. Of the best model, keep a copy of its "
        "`state_dict()`, which has no gradients, or save it.",
        certainty="likely",
        device=device.device,
        lines=lines,
        evidence=device.lines.evidence(blocks),
        lifetimes=Change(blocks, device.begin[blocks], ended),
    )
