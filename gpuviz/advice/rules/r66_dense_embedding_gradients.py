"""R66: dense gradients of embeddings of which a step uses few rows."""

from collections import Counter
from collections.abc import Iterator

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.advice.training.embedding_gradients import DenseGradient, EmbeddingGradients
from gpuviz.quantities import (
    format_bytes,
    format_counted,
    format_duration,
    format_names,
    format_share,
)

RULES = (
    Rule(
        "R66",
        "dense gradients of embeddings",
        "in at least three steps, a gradient of an `nn.Embedding` is as large as the table, though "
        "the entries that the forward passes of a step look up are at most a quarter of its rows, "
        "and no other layer adds to it; the saving assumes that the gradients, the optimizer's "
        "temporary arrays for them, and the work that fills and uses them shrink to the share of "
        "these rows, and that a step of SGD launches only what they need",
        "`nn.Embedding(..., sparse=True)` and an optimizer that takes sparse gradients",
    ),
)

# Optimizers that take sparse gradients, and what they do not take at the same time.
_SPARSE = {"Adagrad": "weight decay", "SGD": "momentum or weight decay"}
_ADAM = {"Adam", "AdamW"}
_MOST_NAMES, _MOST_LINES = 3, 5


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find embeddings whose gradients are mostly zeros.

    Trigger: see `gpuviz.advice.training.embedding_gradients.EmbeddingGradients`. Processes that
    exchange gradients are left out: NCCL does not take sparse ones.

    Saving: the decrease of the peak if these gradients, and the temporary arrays that the optimizer
    makes for them, had a row for each entry that a step looks up. The recording's `Schedule`,
    replayed with the kernels that fill the gradients shorter by the share of the other rows, and
    the optimizer's by their share of its bytes, and without `EmbeddingGradients.needless` launches.
    What else the host does for a sparse gradient is not predicted. What SparseAdam computes is not
    what Adam does: ``possible``, as with any optimizer but Adagrad and SGD without momentum.
    """
    if device.training is None or device.recording.tables["collectives"].num_rows:
        return
    gradients = EmbeddingGradients(device, device.training)
    if gradients.found:
        yield _finding(device, gradients)


def _finding(device: DeviceBlocks, gradients: EmbeddingGradients) -> Finding:
    found, change, schedule = gradients.found, gradients.change(), device.schedule
    duration = gradients.durations()
    spent = format_duration(int((schedule.duration - duration).sum()))
    at_peak = change.blocks[device.at_peak[change.blocks]]
    held = int(device.size[at_peak].sum())
    holds = "of the peak are these gradients and the optimizer's temporary arrays for them."
    of_peak = f" {format_bytes(held)} {holds}" if held else ""
    names = [f"`{each.module}` {format_bytes(each.bytes)}" for each in found]
    most = format_share(max(each.kept_share for each in found))
    all_bytes = format_bytes(sum(each.bytes for each in found))
    is_exact = gradients.optimizers == ["Adagrad"] or gradients.is_plain_sgd
    is_exact &= not gradients.is_used_elsewhere
    needless, following = gradients.needless()
    less = format_counted(int(needless.sum()), "launch", "launches")
    hidden = "As far as the host is the slower of the two, only the launches save time"
    launches = f", and {less}. {hidden}" if needless.any() else ""
    faster = ScheduleChange(
        duration=duration, without_wait=needless, without_gap=following, instant=needless
    )
    return Finding(
        rule="R66",
        title=(
            f"The gradients of {format_counted(len(found), 'embedding')}, {all_bytes}, have a row "
            f"for every entry, though a step uses at most {most} of them."
        ),
        reason=(
            "A backward pass makes the gradient of an embedding as large as its table: "
            f"{format_names(names, _MOST_NAMES)}. Filling the rows that a step does not use with "
            f"zeros, and the optimizer's work on them, take {spent} on the GPU{launches}.{of_peak}"
        ),
        change=_advice(gradients),
        certainty="likely" if is_exact else "possible",
        device=device.device,
        saved_ns=schedule.saved_alone(faster),
        lines=_lines(device, found),
        evidence=device.lines.evidence(change.blocks),
        lifetimes=change,
        schedule=faster,
    )


def _lines(device: DeviceBlocks, found: list[DenseGradient]) -> tuple[Line, ...]:
    """Return the lines that look the entries up, with the bytes of the gradients."""
    stacks: dict[tuple[str, str], int] = {}
    sizes = Counter[tuple[str, str]]()
    for each in found:
        stack = int(device.stack[each.blocks[0]])
        site = device.recording.call_stacks.call_site(stack)
        stacks.setdefault(site, stack)
        sizes[site] += each.bytes
    return tuple(
        Line(*site, format_bytes(size), stacks[site])
        for site, size in sizes.most_common(_MOST_LINES)
    )


def _advice(gradients: EmbeddingGradients) -> str:
    taking = [each for each in gradients.optimizers if each in _SPARSE]
    others = [each for each in gradients.optimizers if each and each not in _SPARSE]
    sentences = [
        f"{each} supports sparse gradients, but not with {_SPARSE[each]} or `fused=True`."
        for each in taking
    ]
    if "SGD" in taking and not gradients.is_plain_sgd:
        sentences.append(
            "SGD seems to use one of them here; without it, training gives other results."
        )
    if others:
        do = "do" if others[1:] else "does"
        refusing = "Adam and AdamW do" if set(others) <= _ADAM else f"{format_names(others)} {do}"
        sentences.append(
            f"{refusing} not support sparse gradients: give the parameters of these embeddings to "
            "a second optimizer, such as `torch.optim.SparseAdam`, which changes only these rows."
        )
    if "" in gradients.optimizers:
        sentences.append(
            "The optimizer must support sparse gradients, as `SGD`, `Adagrad` and `SparseAdam` of "
            "`torch.optim` do."
        )
    if gradients.optimizers != ["SGD"]:
        sentences.append(
            "For a sparse gradient, an optimizer sorts and adds up its rows, with dozens of "
            "launches: where the GPU waits for the host, a step may take longer."
        )
    if gradients.is_used_elsewhere:
        sentences.append(
            "Anything else that uses the gradients must support sparse ones too. "
            "`clip_grad_norm_` does not: pass it only the other parameters."
        )
    return (
        "Create these embeddings with `nn.Embedding(..., sparse=True)`, or pass that to "
        "`F.embedding`, so that gradients have only the rows that a step uses. "
        f"{' '.join(sentences)}"
    )
