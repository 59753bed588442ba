"""The verbs of the command ``gpuviz``, and their options."""

import sys

import click

from gpuviz.commands.cli_programs import demo, prove, run
from gpuviz.commands.help import Group
from gpuviz.commands.options import FILE, FORMATS, examples, verb


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='In bash, `eval "$(_GPUVIZ_COMPLETE=bash_source gpuviz)"` enables completion with Tab. '
    "For other shells, use zsh_source or fish_source.",
)
@click.version_option(package_name="gpuviz", message="%(prog)s %(version)s")
def commands() -> None:
    """See what CuPy and PyTorch programs do to GPU memory and CUDA streams."""


for each in (demo, run, prove):
    commands.add_command(each)


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
@verb
def report() -> None:
    """Write a recording as one HTML file that opens offline."""


@commands.command()
@click.argument("file", type=FILE)
@click.argument("after", type=FILE, required=False)
@examples("gpuviz view run.gpuviz", "gpuviz view before.gpuviz after.gpuviz")
@verb
def view() -> None:
    """Open a recording in a browser, or two side by side with what differs."""


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
@verb
def viewer() -> None:
    """Write a page that shows the recordings, reports and PyTorch snapshots dropped on it.

    Nothing needs to be installed to use it, and it sends nothing. It shows findings, iterations,
    what-if and the summary of reports only, which contain them.
    """


@commands.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--all", "everything", is_flag=True, help="Also what saves little.")
@examples("gpuviz findings run.gpuviz", "gpuviz findings --json run.gpuviz | jq .findings")
@verb
def findings() -> None:
    """Print what costs memory or time, and what to change."""


@commands.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@examples("gpuviz hazards run.gpuviz", "gpuviz hazards --json run.gpuviz | jq .hazards")
@verb
def hazards() -> None:
    """Print unordered operations on the same memory, and what to change."""


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
@verb
def diff() -> None:
    """Print what changed from one recording to another.

    The exit code is 2 if a recording or a limit cannot be used.
    """


@commands.command()
@click.argument("sources", type=FILE, nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option("-o", "--output", type=FILE, required=True, help="File to write.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@examples(
    "gpuviz merge ranks -o all.gpuviz",
    "gpuviz merge rank0.gpuviz rank1.gpuviz.part -o all.gpuviz",
)
@verb
def merge() -> None:
    """Write the recordings of several processes as one, on one time axis."""


@commands.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@examples("gpuviz leaks run.gpuviz")
@verb
def leaks() -> None:
    """Print the lines whose memory grows with each iteration."""


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
@verb
def what_if() -> None:
    """Print the memory of a recorded program under other settings of the allocator.

    SETTINGS are those of PyTorch's allocator, such as max_split_size_mb:128, or cupy for CuPy's
    pool, or cudaMallocAsync; by default, those that matter.
    """


@commands.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@examples("gpuviz info run.gpuviz", "gpuviz info --json run.gpuviz | jq .devices")
@verb
def info() -> None:
    """Print the main facts of a recording."""


@commands.command()
@click.argument("file", type=FILE)
@click.option("--device", type=int, help="Only this device, by ordinal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@examples("gpuviz peak run.gpuviz")
@verb
def peak() -> None:
    """Print what makes up the peak of memory, level by level."""


@commands.command()
@click.argument("file", type=FILE)
@click.option("--device", type=int, help="Only this device, by ordinal.")
@click.option("--abbreviated", is_flag=True, help="Leave out the lines for each pool.")
@examples("gpuviz stats run.gpuviz --device 0")
@verb
def stats() -> None:
    """Print the table of torch.cuda.memory_summary for the end of a recording."""


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
@verb
def convert() -> None:
    """Write a recording, or a part of it, in another format; that of IN is detected."""


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
