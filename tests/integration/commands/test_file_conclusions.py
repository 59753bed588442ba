"""The installed commands that print conclusions about files: findings, leaks and other settings."""

import json
import re

import pytest

import gpuviz
from tests.integration.commands.programs import GPUVIZ, run
from tests.unit.advice.kept_arrays import keeps
from tests.unit.advice.programs import recorded
from tests.unit.recording.leaking_programs import a_list

TITLE = (
    "32.0 MiB from `image = gpu.empty(32 * MIB)` is still allocated at the peak, where nothing "
    "uses it any more."
)


def test_findings_name_the_line_and_the_saving(tmp_path):
    recorded(keeps).save(tmp_path / "run.gpuviz")
    done = run([GPUVIZ, "findings", "run.gpuviz"], tmp_path)
    first, second, *_ = filter(None, done.stdout.splitlines())

    assert "of the peak of" in done.stdout
    assert first == (f"1. {TITLE} [R45, likely]")
    assert second == "   Saves 32.0 MiB of the peak."


def test_findings_are_facts_for_programs(tmp_path):
    recorded(keeps).save(tmp_path / "run.gpuviz")
    facts = json.loads(run([GPUVIZ, "findings", "--json", "run.gpuviz"], tmp_path).stdout)

    assert [(each["kind"], each["rule"], each["saved_bytes"]) for each in facts["findings"]] == [
        ("finding", "R45", 32 << 20),
        ("fact", "", 0),
        ("fact", "", 0),
    ]
    assert facts["unknown"] == []


def test_leaks_name_the_line_and_its_growth(tmp_path):
    kept = []
    recorded(lambda gpu: a_list(gpu, kept)).save(tmp_path / "run.gpuviz")
    done = run([GPUVIZ, "leaks", "run.gpuviz"], tmp_path)
    (row,) = json.loads(run([GPUVIZ, "leaks", "--json", "run.gpuviz"], tmp_path).stdout)

    assert "keeps 1.00 MiB more with each iteration." in done.stdout
    assert "24.0 MiB: work (" in done.stdout
    assert (row["growth_bytes"], row["use"]) == (1 << 20, "unused")


def small_before_large(gpu):
    small = [gpu.empty(16 << 20) for _ in range(8)]
    del small
    return [gpu.empty(32 << 20) for _ in range(4)]


def test_what_if_compares_settings_and_prints_the_line_to_paste(tmp_path):
    recorded(small_before_large).save(tmp_path / "run.gpuviz")
    done = run([GPUVIZ, "what-if", "run.gpuviz", "expandable_segments:True"], tmp_path)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]

    assert lines == [
        "settings reserved allocated unused failed retries driver calls",
        "recorded 256 MiB 128 MiB 0 % 0 0 12 (733 µs)",
        "expandable_segments:True 140 MiB 128 MiB 8.6 % 0 0 7 (315 µs)",
        "expandable_segments:True reserves 140 MiB instead of 256 MiB:",
        'gpuviz.set_allocator_settings("expandable_segments:True")',
    ]


def test_what_if_names_the_first_failure_and_what_fits(tmp_path):
    recorded(parts_of_a_segment).save(tmp_path / "run.gpuviz")
    command = [GPUVIZ, "what-if", "run.gpuviz", "--capacity", "320MiB"]
    done = run([*command, "", "expandable_segments:True", "cudaMallocAsync"], tmp_path)
    *_, failure, conclusion, line = done.stdout.splitlines()

    assert re.fullmatch(
        r"PyTorch's defaults: 1 request fails, the first after [\d.]+ [mµ]?s\.", failure
    )
    assert conclusion == (
        "With expandable_segments:True, which reserves 240 MiB, no request fails:"
    )
    assert line == '  gpuviz.set_allocator_settings("expandable_segments:True")'


def parts_of_a_segment(gpu):
    segment = gpu.empty(240 << 20)
    del segment
    blocks = [gpu.empty(60 << 20) for _ in range(4)]
    blocks[0] = blocks[2] = None
    return [*blocks, gpu.empty(100 << 20)]


def test_the_recording_of_a_setting_is_written(tmp_path):
    recorded(small_before_large).save(tmp_path / "run.gpuviz")
    command = [GPUVIZ, "what-if", "run.gpuviz", "cupy", "--json", "-o", "cupy.gpuviz"]
    facts = json.loads(run(command, tmp_path).stdout)
    stats = gpuviz.load(tmp_path / "cupy.gpuviz").memory_stats()

    assert [row["settings"] for row in facts] == ["recorded", "cupy"]
    assert stats["reserved_bytes.all.peak"] == facts[1]["peak_reserved"] == 256 << 20
    assert run(command, tmp_path).returncode == 1  # the file exists


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["foo:1"], "foo"),
        (["--capacity", "much"], "--capacity much is not a size"),
        (["--device", "3"], "the recording has no device 3"),
        (["-o", "x.gpuviz"], "name exactly one"),
    ],
)
def test_what_if_explains_what_it_does_not_accept(tmp_path, arguments, message):
    recorded(small_before_large).save(tmp_path / "run.gpuviz")
    done = run([GPUVIZ, "what-if", "run.gpuviz", *arguments], tmp_path)

    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
