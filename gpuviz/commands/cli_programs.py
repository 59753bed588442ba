"""The verbs that run programs, and their options."""

from pathlib import Path
from typing import Any

import click

from gpuviz.commands.help import Command
from gpuviz.commands.options import (
    FILE,
    ProgramCommand,
    complete_files,
    examples,
    recording_options,
    verb,
)
from gpuviz.commands.quantities import parse_size
from gpuviz.commands.signals import raise_swallowed


@click.command(cls=Command)
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


@click.command(cls=ProgramCommand, options_metavar="[OPTIONS]")
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
    # The alarm that raises it again would survive exec and end the program.
    raise_swallowed()
    command.run(program, chosen, fail=fail)


@click.command(cls=ProgramCommand, options_metavar="[OPTIONS]")
@click.argument(
    "program",
    nargs=-1,
    type=click.UNPROCESSED,
    required=True,
    shell_complete=complete_files,
    metavar="SCRIPT|-m MODULE|-c CODE [ARGS]...",
)
@examples("gpuviz prove train.py --steps 5")
@verb
def prove() -> None:
    """Run a program under other settings, and print what was predicted and measured.

    It runs twice as it is, and once with each setting that may matter: of the allocator, of record
    stream, and of the loading of kernels. Its output is not shown.
    """
