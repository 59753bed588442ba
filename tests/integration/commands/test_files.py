"""The installed commands that read files: convert, view, stats, info and report."""

import json
import shutil
from pathlib import Path

import pytest

import gpuviz
from gpuviz import commands
from gpuviz.allocator.summary import memory_summary_table
from gpuviz.commands.quantities import parse_range, parse_size
from gpuviz.errors import GpuvizError
from tests.integration.commands.programs import GPUVIZ, PYTHON, run, said
from tests.unit.advice.kept_arrays import keeps
from tests.unit.advice.programs import recorded
from tests.unit.report.recordings import make_recording

RECORDINGS = Path(commands.__file__).parent / "recordings"
TRAINING = Path(commands.__file__).parent / "training" / "layers.gpuviz"


@pytest.fixture
def folder(tmp_path):
    make_recording().save(tmp_path / "run.gpuviz")
    return tmp_path


@pytest.fixture
def browser(tmp_path):
    """An environment whose browser logs the pages it opens, and the path of the log."""
    note = tmp_path / "opened"
    program = tmp_path / "browser"
    program.write_text(f"#!/bin/sh\necho \"$1\" >> '{note}'\n")
    program.chmod(0o755)
    return {"BROWSER": str(program)}, note


def tables_of(path):
    return {name: table for name, table in gpuviz.load(path).tables.items() if table.num_rows}


def contents(path):
    files = path.iterdir() if path.is_dir() else [path]
    return {file.name.removeprefix("export-"): file.read_bytes() for file in files}


def test_a_recording_becomes_a_report_and_a_recording_again(folder):
    there = run([GPUVIZ, "convert", "run.gpuviz", "run.html"], folder)
    back = run([GPUVIZ, "convert", "run.html", "back.gpuviz"], folder)

    assert (there.stdout, back.stdout) == ("Wrote run.html\n", "Wrote back.gpuviz\n")
    assert tables_of(folder / "back.gpuviz") == tables_of(folder / "run.gpuviz")


def test_a_part_of_a_recording_becomes_one(folder):
    run([GPUVIZ, "convert", "run.gpuviz", "part.gpuviz", "--range", "100us:300us"], folder)

    whole = gpuviz.load(folder / "run.gpuviz")
    assert tables_of(folder / "part.gpuviz") == {
        name: table for name, table in whole.window(100_000, 300_000).tables.items() if table
    }


def test_what_a_file_is_does_not_depend_on_its_name(folder):
    (folder / "run.gpuviz").rename(folder / "run.txt")
    done = run([GPUVIZ, "convert", "run.txt", "copy", "--format", "gpuviz"], folder)

    assert done.returncode == 0
    assert tables_of(folder / "copy") == tables_of(folder / "run.txt")


def test_a_file_in_the_way_is_kept_unless_forced(folder):
    (folder / "mine.gpuviz").write_text("mine")
    refused = run([GPUVIZ, "convert", "run.gpuviz", "mine.gpuviz"], folder)
    kept = (folder / "mine.gpuviz").read_text()
    forced = run([GPUVIZ, "convert", "run.gpuviz", "mine.gpuviz", "--force"], folder)

    assert (refused.returncode, kept, forced.returncode) == (1, "mine", 0)
    assert said(refused) == [
        "mine.gpuviz exists; choose another name, or use --force to replace it."
    ]
    assert tables_of(folder / "mine.gpuviz") == tables_of(folder / "run.gpuviz")


@pytest.mark.parametrize("name", ["run.pftrace", "run.json", "run.arrow", "run.parquet"])
def test_files_of_other_tools_are_those_of_export(folder, name):
    run([GPUVIZ, "convert", "run.gpuviz", name], folder)
    exported = gpuviz.load(folder / "run.gpuviz").export(folder / f"export-{name}")

    assert contents(folder / name) == contents(exported)
    assert contents(exported) != {}


def test_a_folder_in_the_way_is_kept_unless_forced(folder):
    (folder / "run.arrow").mkdir()
    refused = run([GPUVIZ, "convert", "run.gpuviz", "run.arrow"], folder)
    kept = list((folder / "run.arrow").iterdir())
    forced = run([GPUVIZ, "convert", "run.gpuviz", "run.arrow", "--force"], folder)

    assert (refused.returncode, kept, forced.returncode) == (1, [], 0)
    assert contents(folder / "run.arrow") != {}


def test_a_name_that_tells_no_format_is_answered_with_those_that_do(folder):
    done = run([GPUVIZ, "convert", "run.gpuviz", "run.xyz"], folder)

    assert done.returncode == 1
    assert "run.xyz has no known suffix" in said(done)[0]
    assert ".pftrace" in said(done)[0]


def test_an_unknown_format_is_a_usage_error(folder):
    done = run([GPUVIZ, "convert", "run.gpuviz", "run.xyz", "--format", "xyz"], folder)

    assert done.returncode == 2
    assert "torch_snapshot" in done.stderr


def test_view_opens_the_report_of_a_recording(folder, browser):
    environment, note = browser
    done = run([GPUVIZ, "view", "run.gpuviz"], folder, environment=environment)
    written = Path(done.stdout.removeprefix("Wrote ").rstrip("\n"))

    assert done.returncode == 0
    assert note.read_text() == f"{written.as_uri()}\n"
    assert tables_of(written) == tables_of(folder / "run.gpuviz")


def test_view_opens_the_page_of_two_recordings(folder, browser):
    environment, note = browser
    shutil.copyfile(folder / "run.gpuviz", folder / "again.gpuviz")
    done = run([GPUVIZ, "view", "run.gpuviz", "again.gpuviz"], folder, environment=environment)
    written = Path(done.stdout.removeprefix("Wrote ").rstrip("\n"))

    assert done.returncode == 0
    assert note.read_text() == f"{written.as_uri()}\n"
    assert "No difference." in written.read_text()


def test_view_opens_a_report_as_it_is(folder, browser):
    environment, note = browser
    run([GPUVIZ, "convert", "run.gpuviz", "run.html"], folder)
    done = run([GPUVIZ, "view", "run.html"], folder, environment=environment)

    assert (done.returncode, done.stdout) == (0, "")
    assert note.read_text() == f"{(folder / 'run.html').as_uri()}\n"


def test_report_opens_what_it_wrote_if_asked(folder, browser):
    environment, note = browser
    files = ["run.gpuviz", "--open"]
    done = run([GPUVIZ, "report", *files], folder, environment=environment)

    assert (done.returncode, done.stdout) == (0, "Wrote run.html\n")
    assert note.read_text() == f"{(folder / 'run.html').as_uri()}\n"


def test_stats_is_the_table_of_memory_summary(folder):
    recording = gpuviz.load(folder / "run.gpuviz")
    [device] = recording.devices
    done = run([GPUVIZ, "stats", "run.gpuviz"], folder)
    short = run([GPUVIZ, "stats", "run.gpuviz", "--abbreviated", "--device", device], folder)

    assert done.stdout == memory_summary_table(recording.memory_stats(), device)
    assert short.stdout == memory_summary_table(recording.memory_stats(), device, abbreviated=True)


def test_peak_prints_the_levels_and_their_facts(tmp_path):
    recorded(keeps).save(tmp_path / "run.gpuviz")
    done = run([GPUVIZ, "peak", "run.gpuviz"], tmp_path)
    facts = json.loads(run([GPUVIZ, "peak", "run.gpuviz", "--json"], tmp_path).stdout)

    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0].startswith("largest operation 80.0 MiB +80.0 MiB The arrays that ")
    assert lines[2].startswith("requested 112 MiB +32.0 MiB The bytes that ")
    assert lines[3] == "allocated 112 MiB The same blocks with their sizes rounded."
    assert facts == {"0": gpuviz.load(tmp_path / "run.gpuviz").peak_chain().to_pylist()}


def test_peak_names_the_lines_that_hold_it(tmp_path):
    done = run([GPUVIZ, "peak", RECORDINGS / "conjugate_gradient.gpuviz"], tmp_path)

    moment, *held = done.stdout.splitlines()[9:]
    assert moment == "At the peak of allocated bytes, at 17.2 ms:"
    (matrix,) = held
    assert matrix.split(maxsplit=3)[:3] == ["62.5", "MiB", "_poisson_matrix"]
    assert matrix.endswith(
        'sparse.kron(square, one, format="csr") + sparse.kron(plane, line, format="csr")'
    )


def test_the_peak_of_a_training_has_its_phase_and_what_the_memory_is(tmp_path):
    done = run([GPUVIZ, "peak", TRAINING], tmp_path)

    [said_of_it] = [line for line in done.stdout.splitlines() if " at the peak in the " in line]
    assert said_of_it.startswith("97.6 MiB at the peak in the backward pass of `blocks.2`: ")
    assert "activations 8.51 MiB" in said_of_it


@pytest.mark.parametrize("verb", ["stats", "peak"])
def test_a_device_that_is_not_in_the_recording_is_answered_with_those_that_are(folder, verb):
    done = run([GPUVIZ, verb, "run.gpuviz", "--device", 7], folder)

    assert done.returncode == 1
    assert said(done) == ["run.gpuviz has no device 7; its devices are 0."]


def test_info_for_programs_has_what_the_recording_has(folder):
    recording = gpuviz.load(folder / "run.gpuviz")
    facts = json.loads(run([GPUVIZ, "info", "--json", "run.gpuviz"], folder).stdout)
    stats = recording.memory_stats()

    assert facts["bytes"] == (folder / "run.gpuviz").stat().st_size
    assert facts["allocator"] == "gpuviz caching allocator"
    assert facts["duration_ns"] == recording.duration_ns
    assert facts["rows"]["memory_events"] == recording.table("memory_events").num_rows
    assert facts["devices"][0]["allocated_bytes"] == {
        "peak": stats["allocated_bytes.all.peak"],
        "end": stats["allocated_bytes.all.current"],
    }


def test_the_module_is_the_command(folder):
    done = run([PYTHON, "-m", "gpuviz", "--version"], folder)

    assert done.stdout == f"gpuviz {gpuviz.__version__}\n"


def test_output_that_nobody_reads_to_its_end_is_no_error(folder):
    done = run(["bash", "-c", f"'{GPUVIZ}' info --json run.gpuviz | true"], folder)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("verb", ["info", "stats", "view"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"<html></html>", b"\x80\x04N."])
def test_a_file_that_is_no_recording_is_one_sentence_or_a_page(folder, browser, verb, content):
    (folder / "other").write_bytes(content)
    done = run([GPUVIZ, verb, "other"], folder, environment=browser[0])

    assert done.returncode == (0 if verb == "view" and b"html" in content else 1)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:2", (10**9, 2 * 10**9)),
        ("0:0.5s", (0, 5 * 10**8)),
        ("1.5ms:20us", None),
        ("350ms:0.4s", (35 * 10**7, 4 * 10**8)),
        ("1µs:2min", (1000, 120 * 10**9)),
        ("7ns:8 ns", (7, 8)),
        ("1", None),
        (":", None),
        ("a:b", None),
        ("1:1", None),
        ("1:2h", None),
    ],
)
def test_ranges_are_read_with_their_units(text, expected):
    if expected is None:
        with pytest.raises(GpuvizError, match="--range"):
            parse_range(text)
    else:
        assert parse_range(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5000000", 5_000_000),
        ("20MB", 20_000_000),
        ("1.5GiB", 3 << 29),
        ("512 KiB", 512 << 10),
        ("1b", 1),
        ("0", None),
        ("big", None),
        ("-5MB", None),
    ],
)
def test_sizes_are_read_with_their_units(text, expected):
    if expected is None:
        with pytest.raises(GpuvizError, match="--max-size"):
            parse_size(text)
    else:
        assert parse_size(text) == expected


@pytest.mark.parametrize(
    "verb",
    [
        "convert",
        "demo",
        "diff",
        "doctor",
        "hazards",
        "info",
        "prove",
        "report",
        "run",
        "stats",
        "view",
        "viewer",
        "what-if",
    ],
)
def test_help_of_every_verb_has_an_example(folder, verb):
    done = run([GPUVIZ, verb, "-h"], folder)

    assert done.returncode == 0
    assert f"$ gpuviz {verb} " in done.stdout.replace("\n", " ")
