"""The command ``gpuviz``: finds the verb, and prints errors as one sentence."""

import gc
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from gpuviz.commands.help import Group
from gpuviz.commands.options import (
    FILE,
    FORMATS,
    ProgramCommand,
    complete_files,
    examples,
    recording_options,
)
from gpuviz.commands.output import say, show_error
from gpuviz.commands.quantities import parse_range, parse_size

# A shell's exit code for a program ended by a signal: 128 plus the number.
_BY_SIGNAL = 128
# Some libraries swallow an exception that a signal handler raises during their imports, and Python
# itself does in a callback of the garbage collector.
_RAISE_AGAIN_S = 0.25
# The exceptions that `_end` has raised, the latest last.
_raised: list[BaseException] = []
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='In bash, `eval "$(_GPUVIZ_COMPLETE=bash_source gpuviz)"` enables completion with Tab. '
    "For other shells, use zsh_source or fish_source.",
)
@click.version_option(package_name="gpuviz", message="%(prog)s %(version)s")
def commands() -> None:
    """See what CuPy and PyTorch programs do to GPU memory and CUDA streams."""


@commands.command()
@click.option("--workload", default="kmeans", show_default=True, help="Program to show.")
@click.option("--list", "list_only", is_flag=True, help="List the programs and exit.")
@click.option("--tour", is_flag=True, help="Write the tour instead, a notebook: tour.ipynb.")
@click.option("--output", type=FILE, help="Write the report here instead of opening it.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@examples(
    "gpuviz demo",
    "gpuviz demo --workload fft_filter --output run.html",
    "gpuviz demo --tour && jupyter lab tour.ipynb",
)
def demo(  # noqa: PLR0913 - a value for each option
    *, workload: str, list_only: bool, tour: bool, output: Path | None, force: bool, no_open: bool
) -> None:
    """Record an example CuPy program, or replay a recording of it without a GPU."""
    from gpuviz.commands import demo as command

    if tour:
        command.write_tour(output or Path("tour.ipynb"), force=force)
        return
    if list_only:
        command.print_workloads()
        return
    command.run(workload, output=output, force=force, open_browser=not no_open)


@commands.command(cls=ProgramCommand, options_metavar="[OPTIONS]")
@click.option("-o", "--output", type=FILE, help="File to record to; NAME.gpuviz by default.")
@click.option(
    "--children",
    is_flag=True,
    help="Record each process that the program starts, too, to a file each in the folder OUTPUT; "
    "NAME.recordings by default.",
)
@click.option("--report", type=FILE, help="Also write an HTML report when the program ends.")
@click.option("--live", is_flag=True, help="Show headline numbers in the terminal while it runs.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--quiet", is_flag=True, help="Print only warnings.")
@click.option("--hazards", is_flag=True, help="Look for unordered operations on the same memory.")
@click.option(
    "--forbid-default-stream", is_flag=True, help="Look for work on the legacy default stream."
)
@click.option(
    "--record-stream",
    type=click.Choice(["off", "report", "auto"]),
    default="off",
    show_default=True,
    help="Whether freed memory is reused only after other streams that use it; report only counts.",
)
@click.option(
    "--poison",
    is_flag=True,
    help="Fill freed memory, look for later writes to it, and guard pinned memory.",
)
@click.option(
    "--budget",
    metavar="PERCENT",
    help="Share of the time that recording streams may cost, as in 2%: they are recorded in "
    "windows.",
)
@click.option("--quarantine", metavar="SIZE", help="Hold back freed memory, as in 256MiB.")
@click.option(
    "--shared-pool",
    is_flag=True,
    help="Let torch allocate from gpuviz's pool, too; its own statistics then do not work.",
)
@click.option(
    "--pin-arrays",
    is_flag=True,
    help="Let NumPy allocate arrays in pinned memory after the import of CuPy. Copies then return "
    "at once: what the program writes to their sources meanwhile may arrive instead.",
)
@click.option(
    "--peer-access", is_flag=True, help="Let CuPy's GPUs access each other's memory directly."
)
@click.option(
    "--fail",
    is_flag=True,
    help="Exit with 3 if a hazard is certain or probable (latent ones do not count), or if work "
    "is on the forbidden default stream; with 4 if that cannot be judged. A program's own failure "
    "comes first.",
)
@recording_options
@click.argument(
    "program",
    nargs=-1,
    type=click.UNPROCESSED,
    required=True,
    shell_complete=complete_files,
    metavar="SCRIPT|-m MODULE|-c CODE [ARGS]...",
)
@examples(
    "gpuviz run train.py --steps 5",
    "gpuviz run --report run.html -m my_package.train",
    "gpuviz run --observe --output pool.gpuviz train.py",
    "gpuviz run --hazards --fail train.py",
    "gpuviz run --hazards --record-stream auto train.py",
    "gpuviz run --children --output ranks launch.py",
)
def run(*, program: tuple[str, ...], fail: bool, quarantine: str | None, **options: Any) -> None:
    """Run a program like `python` and record it.

    Options come before the program, and its own arguments after it. Output, tracebacks and exit
    code are the program's own, too. Recording starts at the first allocation of CuPy or Numba,
    when PyTorch or JAX first uses the GPU, or when Warp, PyCUDA or cuda.core is imported.
    """
    from gpuviz.commands import run as command

    if fail and not (options["hazards"] or options["forbid_default_stream"]):
        raise click.UsageError("--fail needs --hazards or --forbid-default-stream.")
    held = 0 if quarantine is None else parse_size(quarantine, "--quarantine")
    chosen = command.options_of(program, quarantine=held, fail=fail, **options)
    if _raised:
        # Swallowed so far. The alarm that raises it again would survive exec and end the program.
        raise _raised[-1]
    command.run(program, chosen, fail=fail)


@commands.command()
@click.argument("file", type=FILE)
@click.option("-o", "--output", type=FILE, help="HTML file to write; NAME.html by default.")
@click.option(
    "--redact", is_flag=True, help="Remove paths, source lines, names and the command line."
)
@click.option("--range", "window", metavar="START:END", help="Only this time range, as in 1.5s:2s.")
@click.option("--max-size", metavar="SIZE", help="Remove detail until it fits, as in 20MB.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option("--open", "open_browser", is_flag=True, help="Open it in a browser.")
@examples(
    "gpuviz report run.gpuviz",
    "gpuviz report run.gpuviz -o public.html --redact --range 1.5s:1.8s --max-size 5MB",
)
def report(*, window: str | None, max_size: str | None, **options: Any) -> None:
    """Write a recording as one HTML file that opens offline."""
    from gpuviz.commands import report as command

    command.run(
        window=None if window is None else parse_range(window),
        max_size=None if max_size is None else parse_size(max_size),
        **options,
    )


@commands.command()
@click.argument("file", type=FILE)
@click.argument("after", type=FILE, required=False)
@examples("gpuviz view run.gpuviz", "gpuviz view before.gpuviz after.gpuviz")
def view(*, file: Path, after: Path | None) -> None:
    """Open a recording in a browser, or two side by side with what differs."""
    from gpuviz.commands import view as command

    command.run(file, after)


@commands.command()
@click.option(
    "-o",
    "--output",
    type=FILE,
    default="viewer.html",
    show_default=True,
    help="HTML file to write.",
)
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@examples("gpuviz viewer -o page.html")
def viewer(*, output: Path, force: bool) -> None:
    """Write a page that shows the recordings, reports and PyTorch snapshots dropped on it.

    Nothing needs to be installed to use it, and it sends nothing. It shows findings, iterations,
    what-if and the summary of reports only, which contain them.
    """
    from gpuviz.commands import viewer as command

    command.run(output, force=force)


@commands.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--all", "everything", is_flag=True, help="Also what saves little.")
@examples("gpuviz findings run.gpuviz", "gpuviz findings --json run.gpuviz | jq .findings")
def findings(*, file: Path, as_json: bool, everything: bool) -> None:
    """Print what costs memory or time, and what to change."""
    from gpuviz.commands import findings as command

    command.run(file, as_json=as_json, everything=everything)


@commands.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@examples("gpuviz hazards run.gpuviz", "gpuviz hazards --json run.gpuviz | jq .hazards")
def hazards(*, file: Path, as_json: bool) -> None:
    """Print unordered operations on the same memory, and what to change."""
    from gpuviz.commands import hazards as command

    command.run(file, as_json=as_json)


@commands.command()
@click.argument("before", type=FILE)
@click.argument("after", type=FILE)
@click.option("-o", "--output", type=FILE, help="Write an HTML page instead of text.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option(
    "--fail-on", metavar="LIMITS", help="Exit with 1 if more than this is worse: peak:5%,time:20ms."
)
@click.option(
    "--finding",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Print only whether the saving of this finding of BEFORE came true; `gpuviz findings` "
    "numbers them.",
)
@examples(
    "gpuviz diff before.gpuviz after.gpuviz",
    "gpuviz diff before.gpuviz after.gpuviz -o diff.html --fail-on peak:5%,kernels:0",
    "gpuviz diff before.gpuviz after.gpuviz --finding 1",
)
def diff(*, before: Path, after: Path, **options: Any) -> None:
    """Print what changed from one recording to another.

    The exit code is 2 if a recording or a limit cannot be used.
    """
    from gpuviz.commands import diff as command

    command.run(before, after, **options)


@commands.command(cls=ProgramCommand, options_metavar="[OPTIONS]")
@click.argument(
    "program",
    nargs=-1,
    type=click.UNPROCESSED,
    required=True,
    shell_complete=complete_files,
    metavar="SCRIPT|-m MODULE|-c CODE [ARGS]...",
)
@examples("gpuviz prove train.py --steps 5")
def prove(*, program: tuple[str, ...]) -> None:
    """Run a program under other settings, and print what was predicted and measured.

    It runs twice as it is, and once with each setting that may matter: of the allocator, of record
    stream, and of the loading of kernels. Its output is not shown.
    """
    from gpuviz.commands import prove as command

    command.run(program)


@commands.command()
@click.argument("sources", type=FILE, nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option("-o", "--output", type=FILE, required=True, help="File to write.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@examples(
    "gpuviz merge ranks -o all.gpuviz",
    "gpuviz merge rank0.gpuviz rank1.gpuviz.part -o all.gpuviz",
)
def merge(*, sources: tuple[Path, ...], output: Path, force: bool) -> None:
    """Write the recordings of several processes as one, on one time axis."""
    from gpuviz.commands import merge as command

    command.run(sources, output=output, force=force)


@commands.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@examples("gpuviz leaks run.gpuviz")
def leaks(*, file: Path, as_json: bool) -> None:
    """Print the lines whose memory grows with each iteration."""
    from gpuviz.commands import leaks as command

    command.run(file, as_json=as_json)


@commands.command("what-if")
@click.argument("file", type=FILE)
@click.argument("settings", nargs=-1)
@click.option("--capacity", metavar="SIZE", help="Memory of the GPU, as in 24GiB.")
@click.option("--device", type=int, help="Ordinal; the recording's first device by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", type=FILE, help="Write the recording of one SETTING here.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@examples(
    "gpuviz what-if run.gpuviz",
    "gpuviz what-if run.gpuviz expandable_segments:True cupy --capacity 24GiB",
    "gpuviz what-if run.gpuviz expandable_segments:True -o expandable.gpuviz",
)
def what_if(*, file: Path, capacity: str | None, **options: Any) -> None:
    """Print the memory of a recorded program under other settings of the allocator.

    SETTINGS are those of PyTorch's allocator, such as max_split_size_mb:128, or cupy for CuPy's
    pool, or cudaMallocAsync; by default, those that matter.
    """
    from gpuviz.commands import what_if as command

    room = None if capacity is None else parse_size(capacity, "--capacity")
    command.run(file, capacity=room, **options)


@commands.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@examples("gpuviz info run.gpuviz", "gpuviz info --json run.gpuviz | jq .devices")
def info(*, file: Path, as_json: bool) -> None:
    """Print the main facts of a recording."""
    from gpuviz.commands import info as command

    command.run(file, as_json=as_json)


@commands.command()
@click.argument("file", type=FILE)
@click.option("--device", type=int, help="Only this device, by ordinal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@examples("gpuviz peak run.gpuviz")
def peak(*, file: Path, device: int | None, as_json: bool) -> None:
    """Print what makes up the peak of memory, level by level."""
    from gpuviz.commands import peak as command

    command.run(file, device, as_json=as_json)


@commands.command()
@click.argument("file", type=FILE)
@click.option("--device", type=int, help="Only this device, by ordinal.")
@click.option("--abbreviated", is_flag=True, help="Leave out the lines for each pool.")
@examples("gpuviz stats run.gpuviz --device 0")
def stats(*, file: Path, device: int | None, abbreviated: bool) -> None:
    """Print the table of torch.cuda.memory_summary for the end of a recording."""
    from gpuviz.commands import stats as command

    command.run(file, device=device, abbreviated=abbreviated)


@commands.command()
@click.argument("file", type=FILE, metavar="IN")
@click.argument("output", type=FILE, metavar="OUT")
@click.option(
    "--format",
    type=click.Choice(list(FORMATS)),
    help="Format to write; by default from the suffix of OUT.",
)
@click.option("--range", "window", metavar="START:END", help="Only this time range, as in 1.5s:2s.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@examples(
    "gpuviz convert run.gpuviz.part run.gpuviz",
    "gpuviz convert snapshot.pickle run.gpuviz",
    "gpuviz convert run.gpuviz run.pftrace",
    "gpuviz convert run.html step.gpuviz --range 1.5s:1.8s",
)
def convert(*, file: Path, output: Path, **options: Any) -> None:
    """Write a recording, or a part of it, in another format; that of IN is detected."""
    from gpuviz.commands import convert as command

    command.run(file, output, **options)


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--try", "attempt", is_flag=True, help="Also use the GPU and make a short recording.")
@click.option("--calibrate", is_flag=True, help="Likewise, and print what recording costs a call.")
@examples("gpuviz doctor", "gpuviz doctor --try", "gpuviz doctor --calibrate")
def doctor(*, as_json: bool, attempt: bool, calibrate: bool) -> None:
    """Report whether this machine can record, and what limits it.

    The exit code is 1 if recording is impossible. Without --try and --calibrate the GPU is not
    used.
    """
    from gpuviz.commands import doctor as command

    if not command.run(as_json=as_json, attempt=attempt, calibrate=calibrate):
        sys.exit(1)


def main() -> NoReturn:
    """Run the command line; a failure is one sentence on stderr and exit code 1."""
    from gpuviz.errors import GpuvizError

    for number in (signal.SIGTERM, signal.SIGINT):
        # The child process of a shell's `&` ignores Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    sys.unraisablehook = _show_swallowed
    sys.meta_path.insert(0, _WithoutPandas())
    # Imports create many objects and hardly any garbage.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        commands(prog_name="gpuviz", standalone_mode=False)
    except click.ClickException as error:
        is_help = isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ()))
        show_error(error, err=not is_help)
        sys.exit(error.exit_code)
    except click.Abort:
        _fail("interrupted", _BY_SIGNAL + signal.SIGINT)
    except Exception as error:
        _end_as_signalled(error)
        if isinstance(error, GpuvizError):
            _fail(str(error))
        if isinstance(error, OSError):
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.exit(0)


class _WithoutPandas:
    """Blocks the import of pandas, which no command needs and which takes pyarrow half a second."""

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> None:
        if fullname in {"pandas", "dateutil"}:
            raise ModuleNotFoundError(fullname)


def _end(number: int, _frame: object) -> None:
    """Raise an exception, so that no partial file is left, and again if it was swallowed."""
    signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, _RAISE_AGAIN_S)
    if number == signal.SIGALRM and _signalled(sys.exception()) is not None:
        return  # it is being handled
    if number != signal.SIGALRM:
        is_interrupt = number == signal.SIGINT
        _raised.append(KeyboardInterrupt() if is_interrupt else SystemExit(_BY_SIGNAL + number))
    raise _raised[-1]


def _signalled(error: BaseException | None) -> BaseException | None:
    """Return what a signal raised before an error, or as the error, if it did."""
    while error is not None and error not in _raised:
        error = error.__context__
    return error


def _show_swallowed(unraisable: Any) -> None:
    if _signalled(unraisable.exc_value) is None:
        sys.__unraisablehook__(unraisable)


def _end_as_signalled(error: BaseException) -> None:
    """Exit if a signal came first: a library may fail when it cleans up after one."""
    match _signalled(error):
        case KeyboardInterrupt():
            _fail("interrupted", _BY_SIGNAL + signal.SIGINT)
        case SystemExit(code=code):
            sys.exit(code)


def _fail(sentence: str, code: int = 1) -> NoReturn:
    say(f"gpuviz: {sentence}", err=True)
    sys.exit(code)
