"""``gpuviz prove``: runs a program under other settings, beside what is predicted of them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuviz.advice.replay.trace import Trace
from gpuviz.allocator.memory import SETTINGS_VARIABLE
from gpuviz.analysis.pools import allocator_beside
from gpuviz.analysis.statistics import statistics
from gpuviz.analysis.torch_alone import by_torch_alone
from gpuviz.analysis.what_if import RECORDED, SETTINGS_THAT_MATTER
from gpuviz.commands.output import say
from gpuviz.data.manifest import TORCH_ALLOCATOR
from gpuviz.errors import GpuvizError
from gpuviz.quantities import format_bytes, format_duration
from gpuviz.recording import Recording, load

# Of the reserved bytes; other settings would show nothing.
_LEAST_CHANGE = 0.05
_TORCH_VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
_LOADING = "CUDA_MODULE_LOADING"
_UNKNOWN = "not predicted"
# Options of ``gpuviz run`` that do what the findings of a rule ask for.
_OF_RULES = {"R17": "--pin-arrays", "R56": "--peer-access"}


@dataclass(frozen=True, slots=True)
class Change:
    """A change that needs no edit of the program.

    Attributes:
        name: As the user would make it.
        environment: Variables of the program's environment.
        options: Options of ``gpuviz run``.
        reserved: The predicted peak of reserved bytes; None if unknown.
        saved_ns: By how much less time it is predicted to take, in ns; 0 if unknown.
    """

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    reserved: int | None = None
    saved_ns: int = 0


def run(program: tuple[str, ...]) -> None:
    """Record a program as it is and under each change, and print what was predicted and measured.

    Raises:
        GpuvizError: The program fails, or does not use a GPU.
    """
    with tempfile.TemporaryDirectory(prefix="gpuviz-prove-") as folder:
        path = Path(folder, "recording.gpuviz")
        # The first run compiles kernels and fills caches.
        recorded(program, path)
        before = recorded(program, path)
        say(f"As it is: {_facts(before)}.")
        found = list(changes(before))
        for change in found:
            after = recorded(program, path, change)
            say(f"{change.name}\n   predicted: {_predicted(before, change)}")
            say(f"   measured:  {_difference(before, after)}")
        if not found:
            say("No setting is known that would change what this program needs.")


def recorded(program: tuple[str, ...], path: Path, change: Change | None = None) -> Recording:
    """Return the recording of a program under a change.

    Raises:
        GpuvizError: The program fails, or does not use a GPU.
    """
    change = change or Change("as it is")
    command = [sys.executable, "-m", "gpuviz", "run", "--quiet", "--force", "--output", str(path)]
    path.unlink(missing_ok=True)
    done = subprocess.run(  # noqa: S603 - the program
        [*command, *change.options, *program],
        env={**os.environ, **change.environment},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise GpuvizError(f"{change.name}: the program ended with {done.returncode}: {last}")
    if not path.exists():
        reason = done.stderr.strip() or "it allocated nothing"
        raise GpuvizError(f"{change.name}: the program was not recorded: {reason}")
    return load(path)


def changes(before: Recording) -> Iterator[Change]:
    """Yield the changes that may matter to a recorded program."""
    yield from _settings(before)
    streams = before.table("activities")["stream"].unique()
    if len(streams) > 1 and before.manifest.record_stream == "off":
        yield Change("gpuviz run --record-stream auto", options=("--record-stream", "auto"))
    yield from _options(before)
    if before.manifest.cupy:
        other = "LAZY" if os.environ.get(_LOADING, "LAZY") == "EAGER" else "EAGER"
        yield Change(f"{_LOADING}={other}", {_LOADING: other})


def _options(before: Recording) -> Iterator[Change]:
    """Yield the options that make the changes of findings, with what these predict.

    They change what CuPy does, so a simulated GPU would show nothing of them.
    """
    if before.manifest.simulated:
        return
    found = before.findings(small=True)
    for rule, option in _OF_RULES.items():
        saved_ns = sum(each.further_ns for each in found if each.rule == rule)
        if saved_ns:
            yield Change(f"gpuviz run {option} [{rule}]", options=(option,), saved_ns=saved_ns)


def _settings(before: Recording) -> Iterator[Change]:
    """Yield the settings of the allocator that a replay predicts to change what it reserves."""
    alone = by_torch_alone(before)
    is_torch = alone.manifest.allocator_name == TORCH_ALLOCATOR
    is_repeatable = is_torch or before.manifest.allocator == "caching"
    if not is_repeatable or allocator_beside(alone.tables) or not before.devices:
        return
    variable = _TORCH_VARIABLE if is_torch else SETTINGS_VARIABLE
    tried = [each for each in SETTINGS_THAT_MATTER if each]
    rows = {row["settings"]: row for row in before.what_if(tried).to_pylist()}
    reserved = rows[RECORDED]["peak_reserved"] or 0
    for settings in tried:
        row = rows[settings]
        if not row["num_ooms"] and abs(row["peak_reserved"] - reserved) > _LEAST_CHANGE * reserved:
            name = f"{variable}={settings}"
            yield Change(name, {variable: settings}, reserved=row["peak_reserved"])


def _predicted(before: Recording, change: Change) -> str:
    if change.saved_ns:
        return f"-{format_duration(change.saved_ns)}"
    if change.reserved is None:
        return _UNKNOWN
    return f"{_signed_bytes(change.reserved - _reserved(before))} reserved"


def _difference(before: Recording, after: Recording) -> str:
    reserved = _signed_bytes(_reserved(after) - _reserved(before))
    longer = Trace(after).working_ns - Trace(before).working_ns
    sign = "+" if longer >= 0 else "-"
    return f"{reserved} reserved, {sign}{format_duration(abs(longer))}"


def _facts(recording: Recording) -> str:
    time = format_duration(Trace(recording).working_ns)
    return f"{format_bytes(_reserved(recording))} reserved, {time} from first launch to last work"


def _reserved(recording: Recording) -> int:
    """Return the peak of reserved bytes of the first device."""
    devices = recording.devices[:1]
    return sum(statistics(recording, each)["reserved_bytes.all.peak"] for each in devices)


def _signed_bytes(change: int) -> str:
    return f"{'+' if change >= 0 else '-'}{format_bytes(abs(change))}"
