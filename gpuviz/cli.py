"""The command ``gpuviz``: finds the verb and turns errors into one sentence each."""

import sys
from pathlib import Path
from typing import NoReturn

import click

# Files are checked by the readers and writers, whose errors say more than click's.
FILE = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpuviz")
def commands() -> None:
    """See what CuPy programs do to GPU memory."""


@commands.command()
@click.option("--workload", default="kmeans", show_default=True, help="Program to show.")
@click.option("--list", "list_only", is_flag=True, help="Print the programs and stop.")
@click.option("--output", type=FILE, help="Write the report here instead of opening it.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def demo(
    *, workload: str, list_only: bool, output: Path | None, force: bool, no_open: bool
) -> None:
    """Record a CuPy program, or replay a recording of one where there is no GPU."""
    from gpuviz.commands import demo as command

    if list_only:
        command.print_workloads()
        return
    command.run(workload, output=output, force=force, open_browser=not no_open)


@commands.command()
@click.argument("file", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="HTML file to write.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
def report(*, file: Path, output: Path, force: bool) -> None:
    """Write a recording as one HTML file that opens offline."""
    from gpuviz.commands import report as command

    command.run(file, output=output, force=force)


@commands.command()
@click.argument("file", type=FILE)
def info(*, file: Path) -> None:
    """Print the facts of a recording on one screen."""
    from gpuviz.commands import info as command

    command.run(file)


def main() -> NoReturn:
    """Run the command line; a failure is one sentence on stderr and exit code 1."""
    from gpuviz.errors import GpuvizError

    try:
        commands()
    except GpuvizError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    sys.exit(0)


def _fail(sentence: str) -> NoReturn:
    click.echo(f"gpuviz: {sentence}", err=True)
    sys.exit(1)
