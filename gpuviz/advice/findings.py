"""All findings of a recording, ranked by what they save."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from gpuviz.advice.arrays.device_blocks import DeviceBlocks, device_blocks
from gpuviz.advice.arrays.peak_chain import uses, uses_of
from gpuviz.advice.finding import Finding
from gpuviz.advice.judged import judged
from gpuviz.advice.processes import findings_of_processes
from gpuviz.advice.replay.compensation import compensated, recorded_evidence
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.reserved.reserved_memory import ReservedMemory, reserved_memory
from gpuviz.advice.rule import LEAST_BYTES
from gpuviz.advice.rules import (
    r03_longer_than_used,
    r11_allocator_settings,
    r15_stranded_on_streams,
    r16_parked_by_record_stream,
    r40_unordered_operations,
    r72_cached_by_another_library,
)
from gpuviz.advice.scale import Scale, is_bound, most_first
from gpuviz.analysis.processes import processes
from gpuviz.analysis.seen_part import seen_part
from gpuviz.analysis.steady_state import steady_ns, steady_states
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_duration

if TYPE_CHECKING:
    from gpuviz.advice.work_rules import MemoryRule, TimeRule

AllocatorRule = Callable[[ReservedMemory], Iterable[Finding]]


# Findings at the start of the list, of as many rules if there are.
_FIRST = 3
# Rules that say what others cause, as pageable copies and waits keep streams apart, and those that
# are easier to follow than a larger change: a conversion, or a line before a loop, than a kernel
# for a whole expression.
_BESIDE = ("R33", "R44", "R57")
# Rules that say to keep the arrays that their work fills.
_KEEPING = ("R29",)


def allocator_rules() -> tuple[AllocatorRule, ...]:
    """Return the rules about what the allocator reserves, each in the file named after it."""
    return (
        r11_allocator_settings.find,
        r15_stranded_on_streams.find,
        r16_parked_by_record_stream.find,
    )


def findings(recording: RecordingData, *, small: bool = False) -> tuple[Finding, ...]:
    """Return what is wrong or costs memory or time, and what to change; most saving first.

    What may make results wrong comes before everything that saves something, and a change that
    trades time for memory after all others. Times and savings are those of the program as if it had
    not been recorded, if that is known; see `gpuviz.advice.replay.compensation.compensated`.

    Args:
        recording: The recording.
        small: Whether to include what saves less than 1 % of the peak (and 8 MiB) or of the time,
            or saves no time and less memory than that after the findings before it.
    """
    if processes(recording):
        merged = findings_of_processes(recording, partial(findings, small=small), small=small)
        return tuple(sorted(merged, key=is_trade))
    part = seen_part(recording)
    if part is not recording:
        return _of_part(recording, part, small=small)
    unrecorded = compensated(recording)
    scale = Scale(unrecorded)
    least_bytes = 0 if small else LEAST_BYTES
    found = [
        *(_recorded(recording, each) for each in _about_work(unrecorded, scale, small=small)),
        *_about_reserved_memory(recording, least_bytes),
    ]
    shown = [scale.with_peak(each) for each in found if small or scale.is_relevant(each)]
    ranked = most_first(shown, scale.share)
    return (*judged(r40_unordered_operations.find, recording), *varied(ranked))


def _of_part(recording: RecordingData, part: RecordingData, *, small: bool) -> tuple[Finding, ...]:
    """Return findings of a recording with streams in windows.

    Those about time are of one window, and say so. Which work uses an array is not known between
    windows, so that of memory only what the allocator reserves is judged.
    """
    unrecorded = compensated(part)
    scale, schedule = Scale(unrecorded), Schedule(unrecorded)
    of_time, _ = _work_rules()
    times = [each for rule in of_time for each in judged(rule, schedule)]
    begin, end = (format_duration(edge) for edge in part.time_range)
    found = [
        replace(
            each,
            reason=f"From {begin} to {end}, when streams were recorded: {each.reason}",
            evidence=None if each.evidence is None else replace(each.evidence, rows=()),
        )
        for each in (_recorded(part, each) for each in _in_time(schedule, times))
    ]
    found += _about_reserved_memory(recording, 0 if small else LEAST_BYTES)
    shown = [scale.with_peak(each) for each in found if small or scale.is_relevant(each)]
    return tuple(varied(most_first(shown, scale.share)))


def _recorded(recording: RecordingData, finding: Finding) -> Finding:
    """Return a finding with where the recording shows it."""
    if finding.evidence is None:
        return finding
    return replace(finding, evidence=recorded_evidence(recording, finding.evidence))


def is_trade(finding: Finding) -> bool:
    """Return whether the change of a finding always costs something else than it saves."""
    known = _trades(allocator_rules())
    if finding.rule not in known:
        of_time, of_memory = _work_rules()
        known = _trades((*of_time, *of_memory))
    return known.get(finding.rule, False)


@cache
def _trades(finds: tuple[Callable[..., object], ...]) -> dict[str, bool]:
    """Return which rules of some functions always cost something else, by name."""
    rules = (rule for find in finds for rule in sys.modules[find.__module__].RULES)
    return {rule.name: rule.is_trade for rule in rules}


def _work_rules() -> "tuple[tuple[TimeRule, ...], tuple[MemoryRule, ...]]":
    """Return the rules about time and those about memory."""
    # Not at import, because there are many, and a recording of memory alone needs none.
    from gpuviz.advice.work_rules import memory_rules, time_rules

    return time_rules(), memory_rules()


def varied(ranked: Sequence[Finding], first: int = _FIRST) -> list[Finding]:
    """Return findings with trades last, and each rule once among the first few if it can be.

    Other findings of a rule that is among the first few come before any trade, and before what
    saves time of the warm-up.
    """
    chosen: list[Finding] = []
    ranked = sorted(ranked, key=is_trade)
    for each in ranked:
        is_new = each.rule not in {other.rule for other in chosen}
        is_last = each.is_of_warm_up or is_trade(each)
        if len(chosen) < first and is_new and not is_last:
            chosen.append(each)
    shown = {id(each) for each in chosen}
    others = [each for each in ranked if id(each) not in shown]
    return [*chosen, *others]


def _about_work(recording: RecordingData, scale: Scale, *, small: bool) -> Iterator[Finding]:
    """Yield the findings about time and arrays with what each saves after the ones before it."""
    if not recording.tables["activities"].num_rows:
        return
    schedule, (of_time, _) = Schedule(recording), _work_rules()
    found = [each for rule in of_time for each in judged(rule, schedule)]
    devices = device_blocks(recording, schedule)
    uses.keep(recording, uses_of(devices))
    for each in found:
        if each.rule in _KEEPING and each.evidence and (small or scale.is_relevant(each)):
            for device in devices:
                device.keep_filled_by(each.evidence.rows)
    found += [each for device in devices for each in _about_memory(device)]
    found = _with_warm_up(recording, found)
    found = [each for each in found if small or scale.is_relevant(each)]
    found = _in_time(schedule, found)
    ranked = [each for each in found if each.lifetimes is None]
    for device in devices:
        of_device = [each for each in found if each.lifetimes and each.device == device.device]
        of_device.sort(key=lambda finding: -finding.saved_bytes)
        of_device += _of_the_rest(device, [each for each in of_device if not is_trade(each)])
        of_device.sort(key=lambda finding: (is_trade(finding), -finding.saved_bytes))
        ranked += _in_sequence(device, of_device)
    yield from (each for each in ranked if small or _adds_something(each, scale))


def _with_warm_up(recording: RecordingData, found: list[Finding]) -> list[Finding]:
    """Return findings with whether all that they save is time before the steady state."""
    begins = {each.device: each.from_ns for each in steady_states(recording)}
    return [
        replace(each, is_of_warm_up=True)
        if each.saved_ns
        and not each.saved_bytes
        and each.evidence is not None
        and each.evidence.table != "memory_events"
        and each.evidence.window[1] <= begins.get(each.device, -1)
        else each
        for each in found
    ]


def _about_memory(device: DeviceBlocks) -> Iterator[Finding]:
    """Yield the findings about a device's memory, with the bytes that each alone saves.

    One that changes lifetimes saves bytes or time.
    """
    _, of_memory = _work_rules()
    for rule in of_memory:
        for found in judged(rule, device):
            saved = 0 if found.lifetimes is None else device.replay.saving(found.lifetimes)
            if found.lifetimes is None or saved or found.saved_ns:
                yield replace(found, saved_bytes=saved)


def _adds_something(finding: Finding, scale: Scale) -> bool:
    """Return whether a finding saves something after those before it, or is worth saying beside."""
    return finding.rule in _BESIDE or scale.adds_something(finding)


def _in_time(schedule: Schedule, found: list[Finding]) -> list[Finding]:
    """Return the findings with the time that each saves after the ones with a larger saving.

    What bounds all savings of a kind comes after the findings that name a cause. Of two that save
    about the same, the one that is easier to follow comes first, as in `time_rules`.
    """
    steady = max(steady_ns(schedule.recording), 1)
    ranked = most_first(found, lambda each: each.saved_ns / steady)
    numbers = {id(each): number for number, each in enumerate(found)}
    order = [numbers[id(each)] for each in sorted(ranked, key=is_bound)]
    changes = {number: found[number].schedule for number in order}
    changed = {number: change for number, change in changes.items() if change is not None}
    further = dict(zip(changed, schedule.saved_in_sequence(list(changed.values())), strict=True))
    return [
        replace(
            each,
            further_ns=min(further.get(number, each.saved_ns), each.saved_ns),
            schedule=None,
            working_ns=schedule.covered_ns if each.is_of_warm_up else schedule.working_ns,
        )
        for number, each in enumerate(found)
    ]


def _about_reserved_memory(recording: RecordingData, least_bytes: int) -> Iterator[Finding]:
    for device in reserved_memory(recording, least_bytes):
        for rule in allocator_rules():
            yield from judged(rule, device)
    yield from judged(r72_cached_by_another_library.find, recording)


def _in_sequence(device: DeviceBlocks, found: list[Finding]) -> Iterator[Finding]:
    """Yield the findings with the bytes that each saves after the ones before it."""
    peak, changes = device.peak.bytes, list["Change"]()
    for finding in found:
        changes += [finding.lifetimes] if finding.lifetimes else []
        after = device.replay.peak_after(changes)
        yield replace(finding, further_bytes=max(peak - after, 0))
        peak = min(peak, after)


def _of_the_rest(device: DeviceBlocks, found: Sequence[Finding]) -> Iterator[Finding]:
    """Return what several lines together save after the findings about single ones."""
    changes = [each.lifetimes for each in found if each.lifetimes is not None]
    return r03_longer_than_used.find(device, changes)
