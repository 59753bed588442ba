"""``gpuviz run``: runs a program like ``python`` and records it."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import click

from gpuviz.commands.run_options import RunOptions
from gpuviz.commands.startup import each_process
from gpuviz.commands.startup import sitecustomize as startup
from gpuviz.errors import GpuvizError
from gpuviz.formats.output_path import (
    RECORDING_SUFFIX,
    check_output,
    check_part_free,
    check_recording_name,
    check_report_name,
)
from gpuviz.recorder.prevention import RecordStream

FOLDER_SUFFIX = ".recordings"
_ELF = b"\x7fELF"


def default_output(program: tuple[str, ...], *, children: bool = False) -> Path:
    """Return the default name of a program's recording, such as ``train.gpuviz``.

    Args:
        program: The arguments of ``python``.
        children: Whether it is a folder of the recordings of several processes.
    """
    first = program[0]
    if first.startswith("-m"):
        name = (first[2:] or "".join(program[1:2])).removesuffix(".__main__")
    elif first.startswith("-c"):
        name = "command"
    else:
        name = "stdin" if first == "-" else Path(first).resolve().stem
    return Path(f"{name}{FOLDER_SUFFIX if children else RECORDING_SUFFIX}")


def run(program: tuple[str, ...], options: RunOptions, *, fail: bool = False) -> NoReturn:
    """Replace this process by ``python PROGRAM``, or wait for it if ``fail`` to judge it.

    Raises:
        GpuvizError: The recording or the report cannot be written.
    """
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    binary = _found_binary(program[0])
    if options.children:
        command = (binary, *program[1:]) if binary else (sys.executable, *program)
        _run_each_process(command, options)
    if binary:
        raise GpuvizError(
            f"{program[0]} is a compiled program, and only Python programs can be recorded. If it "
            "starts Python processes, use --children."
        )
    _check_output(options)
    if options.report:
        check_report_name(Path(options.report))
        check_output(Path(options.report), force=options.force)
    environment = dict(os.environ)
    if "PYTHONPATH" in environment:
        environment[startup.PYTHONPATH] = environment["PYTHONPATH"]
    paths = [str(Path(startup.__file__).parent), environment.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if fail:
        from gpuviz.commands.judged_run import judged_run

        judged_run(program, options, environment)
    environment[startup.OPTIONS] = options.to_json()
    os.execve(sys.executable, [sys.executable, *program], environment)  # noqa: S606 - the program


def _found_binary(program: str) -> str:
    """Return the absolute path of a compiled (ELF) program; empty for any other."""
    found = program if Path(program).exists() else shutil.which(program)
    if not found:
        return ""
    try:
        with Path(found).open("rb") as file:
            return str(Path(found).absolute()) if file.read(len(_ELF)) == _ELF else ""
    except OSError:
        return ""


def _run_each_process(command: tuple[str, ...], options: RunOptions) -> NoReturn:
    """Replace this process by a command, and record it and its children if they run Python."""
    folder = Path(options.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise GpuvizError(f"{folder} is a file; --children needs a folder.") from None
    _check_writable(folder)
    environment = {each_process.FOLDER: str(folder), each_process.OPTIONS: options.to_json()}
    os.execve(command[0], command, os.environ | environment)  # noqa: S606


def _check_output(options: RunOptions) -> None:
    path = Path(options.output)
    check_recording_name(path)
    check_output(path, force=options.force or options.numbered)
    if not options.numbered and not options.force:
        check_part_free(path, remedy="choose another name, or use --force to remove it.")
    _check_writable(path.parent)


def _check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise GpuvizError(f"The folder {folder} is not writable.")


def options_of(  # noqa: PLR0913 - a value for each option
    program: tuple[str, ...],
    *,
    output: Path | None,
    children: bool,
    fail: bool,
    report: Path | None,
    live: bool,
    force: bool,
    quiet: bool,
    max_events: int,
    observe: bool,
    no_stacks: bool,
    no_streams: bool,
    no_launch_sites: bool,
    no_launch_blocks: bool,
    no_host_samples: bool,
    budget: str | None,
    api_calls: bool,
    no_graph_nodes: bool,
    hazards: bool,
    forbid_default_stream: bool,
    record_stream: RecordStream,
    poison: bool,
    quarantine: int,
    shared_pool: bool,
    pin_arrays: bool,
    peer_access: bool,
) -> RunOptions:
    """Return the options of the command line as `RunOptions`.

    Raises:
        UsageError: Two options contradict each other.
    """
    if children:
        _check_free_of("--children", {"--report": report is not None, "--live": live})
        _check_free_of("--children", {"--fail": fail, "--force": force})
    left_out = {
        "--no-streams": no_streams,
        "--no-stacks": no_stacks,
        "--no-launch-sites": no_launch_sites,
    }
    if forbid_default_stream:
        _check_free_of("--forbid-default-stream", left_out)
    if hazards:
        _check_free_of("--hazards", {**left_out, "--no-launch-blocks": no_launch_blocks})
    invisible = {
        "--observe": observe,
        "--no-streams": no_streams,
        "--no-launch-sites": no_launch_sites,
        "--no-launch-blocks": no_launch_blocks,
    }
    if record_stream != "off":
        _check_free_of("--record-stream", invisible)
    if poison:
        _check_free_of("--poison", invisible)
    if budget is not None:
        _check_budget(
            budget,
            {
                "--no-streams": no_streams,
                "--no-launch-sites": no_launch_sites,
                "--hazards": hazards,
                "--forbid-default-stream": forbid_default_stream,
                "--record-stream": record_stream != "off",
                "--poison": poison,
            },
        )
    if quarantine:
        _check_free_of("--quarantine", {"--observe": observe})
    if shared_pool:
        _check_free_of("--shared-pool", {"--observe": observe})
    return RunOptions(
        output=str((output or default_output(program, children=children)).absolute()),
        children=children,
        numbered=output is None and not force,
        report="" if report is None else str(report.absolute()),
        force=force,
        live=live,
        quiet=quiet,
        max_events=max_events,
        allocator="observe" if observe else "caching",
        streams=not no_streams,
        stacks=not no_stacks,
        launch_sites=not no_launch_sites,
        launch_blocks=not no_launch_blocks,
        host_samples=not no_host_samples,
        budget=budget,
        api_calls=api_calls,
        graph_nodes=not no_graph_nodes,
        hazards=hazards,
        forbid_default_stream=forbid_default_stream,
        record_stream=record_stream,
        poison=poison,
        quarantine=quarantine,
        shared_pool=shared_pool,
        pin_arrays=pin_arrays,
        peer_access=peer_access,
    )


def _check_budget(budget: str, left_out: Mapping[str, bool]) -> None:
    from gpuviz.recorder.budget import share_of

    _check_free_of("--budget", left_out)
    try:
        share_of(budget)
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None


def _check_free_of(name: str, left_out: Mapping[str, bool]) -> None:
    given = [option for option, is_given in left_out.items() if is_given]
    if given:
        raise click.UsageError(f"{name} contradicts {' and '.join(given)}.")
