"""What findings predict, and what following them saves: ``python -m tests.gpu.measured_findings``.

Each program runs as written and as its finding proposes, first unrecorded for its time and peak,
then recorded for its findings. Prints a table, and how far the predictions are off; the exit code
is 1 if an expected finding is not among the first three, or stays when its advice was followed.
Arguments are the rules whose programs run; all without one.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import cupy as cp

import gpuviz
from gpuviz.advice.arrays.device_blocks import device_blocks
from gpuviz.advice.arrays.joins import joins
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.dominant import dominant
from gpuviz.recording import Recording
from tests.gpu.measured_programs import PROGRAMS, Program

MIB = 1 << 20
ROUNDS = 5
FIRST = 3
NEAR = 0.2


def measured(program: Callable[[], object]) -> tuple[float, int]:
    """Return the seconds and the bytes of the peak of a program that is not recorded."""
    program()
    seconds = []
    for _ in range(ROUNDS):
        cp.cuda.Device().synchronize()
        gpuviz.reset_peak_memory_stats()
        began = time.perf_counter()
        program()
        cp.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), gpuviz.max_memory_allocated()


def recorded(program: Callable[[], object]) -> Recording:
    """Return the recording of a program whose kernels are compiled."""
    with gpuviz.record() as recorder:
        program()
        cp.cuda.Device().synchronize()
    return recorder.recording


def copies_of(recording: Recording) -> str:
    """Return what was recorded of copies that join arrays, for a program whose joins are missed."""
    lines = []
    for device in device_blocks(recording):
        found = joins(device)
        parts = [
            f"{int(device.requested[part]):,} of {int(device.requested[target]):,} B"
            for part, target in zip(found.part.tolist(), found.target.tolist(), strict=True)
        ]
        lines.append(f"    device {device.device}: {len(parts)} joined: {'; '.join(parts[:8])}")
        names = recording.kernels().to_pylist()[:8]
        lines += [f"    {row['count']} x {row['name']}" for row in names]
    touched = recording.table("launch_blocks").slice(0, 12).to_pylist()
    lines += [f"    {row}" for row in touched]
    return "\n".join(lines) or "    no memory or no uses were recorded"


@dataclass(frozen=True, eq=False, slots=True)
class Judged:
    """What a program's finding predicts, and what following it saves.

    Attributes:
        name: The program's name.
        is_right: Whether its findings are right.
        chosen: Its finding; None if it is missing, or if there should be none.
        saved_s: By how much the changed program is faster.
        saved_bytes: By how much its peak is lower.
    """

    name: str
    is_right: bool
    chosen: Finding | None
    saved_s: float = 0.0
    saved_bytes: int = 0

    @property
    def errors(self) -> list[float]:
        """How far the predictions are off, for bytes and for time."""
        if self.chosen is None:
            return []
        bytes_ = self.chosen.saved_bytes, self.saved_bytes
        time_s = self.chosen.saved_ns / 1e9, self.saved_s
        return [said / true - 1 if true else 1.0 for said, true in (bytes_, time_s) if said]


def judged(program: Program) -> Judged:
    """Print the row of a program, and return its judgement."""
    plain_s, plain_bytes = measured(program.plain)
    recording = recorded(program.plain)
    found = recording.findings()
    first = [each.rule for each in found[:FIRST]]
    texts = [f"{_name(program.plain):28} {program.rule or '-':4} {1e3 * plain_s:8.2f}"]
    chosen = next((each for each in found[:FIRST] if each.rule == program.rule), None)
    found_s, found_bytes = 0.0, 0
    if program.fixed is None:
        is_right = not {"R18", "R29", "R41", "R46", "R54", "R57", "R63"} & set(first)
        texts.append(f"ms, {first}")
    else:
        fixed_s, fixed_bytes = measured(program.fixed)
        rest = [each.rule for each in recorded(program.fixed).findings()]
        is_right = chosen is not None and program.rule not in rest
        texts.append(f"-> {1e3 * fixed_s:.2f} ms ({recording.duration_ns / 1e6:.2f} recorded),")
        found_s, found_bytes = plain_s - fixed_s, plain_bytes - fixed_bytes
        texts.append(_row(chosen, found_s, found_bytes))
        texts.append(f"{first}, then {rest[:FIRST]}")
    result = Judged(_name(program.plain), is_right, chosen, found_s, found_bytes)
    texts += [f"{error:+.0%}" for error in result.errors]
    show(" ".join([*texts, "" if is_right else " WRONG"]).rstrip())
    show(f"    {' '.join(each.text for each in dominant(recording))}")
    if not is_right:
        show("".join(f"    {each.rule}: {each.title}\n" for each in recording.findings(small=True)))
    if program.rule == "R46" and chosen is None:
        show(copies_of(recording))
    return result


def _name(program: Callable[[], object]) -> str:
    plain = program.func if isinstance(program, partial) else program
    return getattr(plain, "__name__", "")


def show(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _row(chosen: Finding | None, saved_s: float, saved_bytes: int) -> str:
    if chosen is None:
        return f"missed, saves {1e3 * saved_s:.2f} ms, {saved_bytes / MIB:.1f} MiB"
    return (
        f"predicted {chosen.saved_ns / 1e6:.2f} ms, {chosen.saved_bytes / MIB:.1f} MiB, measured "
        f"{1e3 * saved_s:.2f} ms, {saved_bytes / MIB:.1f} MiB"
    )


def judgements(*rules: str) -> Iterator[Judged]:
    """Judge all programs, or those of some rules."""
    cp.cuda.set_allocator(gpuviz.malloc)
    yield from (judged(each) for each in PROGRAMS if not rules or each.rule in rules)


def main(*rules: str) -> int:
    """Judge all programs, or those of some rules."""
    results = list(judgements(*rules))
    errors = [abs(error) for each in results for error in each.errors]
    if errors:
        within = sum(error <= NEAR for error in errors)
        show(f"{within} of {len(errors)} within {NEAR:.0%}, median {statistics.median(errors):.1%}")
    return 0 if all(each.is_right for each in results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
