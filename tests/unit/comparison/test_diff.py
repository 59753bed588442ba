"""Differences of two recordings: of programs with and without edits, and of random ones."""

import json
import linecache

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.commands import cli
from gpuviz.comparison.alignment import CodeLine, align
from gpuviz.comparison.kernels import KernelTimes, changed_kernels
from gpuviz.comparison.limits import parse_limits
from gpuviz.errors import GpuvizError
from tests.examples import examples

PROGRAM = """\
def work(gpu):
    images = gpu.empty(64 << 20)
    scratch = gpu.empty(8 << 20)
    for _ in range(20):
        gpu.launch("blur", reads=[images], writes=[scratch], duration=100e-6)
    gpu.copy_to_host(scratch)
    gpu.synchronize()
"""


def recorded(source, name="program.py"):
    """Return the recording of a program's function `work`, as if it were in a file."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names = {}
    exec(compile(source, name, "exec"), names)  # noqa: S102
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        names["work"](gpu)
    return recorder.recording


@pytest.fixture(scope="module")
def before():
    return recorded(PROGRAM)


def added_up(found):
    peaks = [each.peak(0).bytes for each in (found.before, found.after)]
    return sum(found.waterfall["change"].to_pylist()), peaks[1] - peaks[0]


def test_a_recording_against_itself_has_no_differences(before):
    found = gpuviz.diff(before, before)

    assert found.is_empty
    assert found.notes == ()
    assert repr(found) == "<Diff: no difference>"


def test_an_edited_line_comes_first_with_both_texts(before):
    after = recorded(PROGRAM.replace("empty(64", "empty(96"))

    row = gpuviz.diff(before, after).waterfall.to_pylist()[0]

    assert (row["status"], row["change"]) == ("edited", 32 << 20)
    assert row["before_source"] == "images = gpu.empty(64 << 20)"
    assert row["source"] == "images = gpu.empty(96 << 20)"


def test_lines_above_do_not_matter(before):
    after = recorded("import math\n\n\n" + PROGRAM)

    assert gpuviz.diff(before, after).waterfall.num_rows == 0


def test_a_new_line_and_one_that_is_gone(before):
    added = recorded(PROGRAM.replace("    for", "    more = gpu.empty(4 << 20)\n    for"))

    there = gpuviz.diff(before, added).waterfall.to_pylist()
    back = gpuviz.diff(added, before).waterfall.to_pylist()

    assert [(row["status"], row["change"]) for row in there] == [("new", 4 << 20)]
    assert [(row["status"], row["change"]) for row in back] == [("gone", -4 << 20)]


def test_kernels_that_are_slower_renamed_or_more(before):
    slower = gpuviz.diff(before, recorded(PROGRAM.replace("100e-6", "150e-6")))
    renamed = gpuviz.diff(before, recorded(PROGRAM.replace('"blur"', '"mean"')))
    more = gpuviz.diff(before, recorded(PROGRAM.replace("range(20)", "range(30)")))

    assert slower.kernels["status"].to_pylist() == ["slower"]
    assert slower.kernels["change_ns"].to_pylist() == [20 * 50_000]
    statuses = dict(zip(*(renamed.kernels[n].to_pylist() for n in ("name", "status")), strict=True))
    assert statuses == {"blur": "gone", "mean": "new"}
    assert more.kernels["status"].to_pylist() == ["more launches"]


def test_time_is_a_claim_only_with_enough_launches_and_separate_intervals():
    few = KernelTimes(7, 700, 100), KernelTimes(7, 1400, 200)
    meeting = KernelTimes(50, 5000, 100, 90, 121), KernelTimes(50, 6000, 130, 120, 140)
    small = KernelTimes(50, 5000, 100, 100, 100), KernelTimes(50, 5150, 103, 103, 103)
    apart = KernelTimes(50, 5000, 100, 90, 110), KernelTimes(50, 6000, 130, 120, 140)

    def statuses(pair):
        return [row["status"] for row in changed_kernels({"k": pair[0]}, {"k": pair[1]})]

    assert [statuses(pair) for pair in (few, meeting, small)] == [[], [], []]
    assert statuses(apart) == ["slower"]
    assert statuses(apart[::-1]) == ["faster"]


def test_copies_and_waits_that_are_more():
    twice = PROGRAM.replace("    gpu.sync", "    gpu.copy_to_host(scratch)\n    gpu.sync")

    found = gpuviz.diff(recorded(PROGRAM), recorded(twice))

    copies = found.copies.to_pylist()
    assert [(row["before_count"], row["after_count"]) for row in copies] == [(1, 2)]
    assert copies[0]["after_bytes"] == 2 * (8 << 20)
    assert found.waits.num_rows == 1


sizes = st.integers(1, 64 << 20)


@st.composite
def any_source(draw):
    """The source of a program that allocates and frees on several lines."""
    lines = ["def work(gpu):"]
    for number, size in enumerate(draw(st.lists(sizes, min_size=1, max_size=8))):
        lines.append(f"    x{number} = gpu.empty({size})")
        if draw(st.booleans()):
            lines.append(f"    x{draw(st.integers(0, number))} = None")
    return "\n".join(lines) + "\n"


@examples(200)
@given(one=any_source(), other=any_source())
def test_the_changes_of_the_lines_add_up_to_that_of_the_peak(one, other):
    found = gpuviz.diff(recorded(one, "one.py"), recorded(other, "other.py"))

    total, change = added_up(found)
    assert total == change


def test_equal_lines_are_aligned_in_their_order():
    def lines(*numbers):
        return [CodeLine("a.py", number, "f", "x = g()") for number in numbers]

    pairs = align(lines(1, 2), lines(5, 6, 7))

    assert [(p.before and p.before.line, p.after and p.after.line) for p in pairs] == [
        (1, 5),
        (2, 6),
        (None, 7),
    ]


def test_what_cannot_be_compared_is_said(before):
    empty = gpuviz.Recording({}, before.manifest)

    notes = " ".join(gpuviz.diff(before, empty).notes)

    assert "Device 0 is only in the recording before" in notes
    assert "no GPU activities" in notes
    assert "no call stacks" in notes


@pytest.fixture(scope="module")
def files(before, tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    after = recorded(PROGRAM.replace("empty(64", "empty(96"))
    return before.save(folder / "before.gpuviz"), after.save(folder / "after.gpuviz")


def run(*arguments):
    return CliRunner().invoke(cli.commands, ["diff", *map(str, arguments)])


@pytest.mark.parametrize(
    ("limits", "code"),
    [("peak:5%", 1), ("peak:50%", 0), ("peak:31MiB", 1), ("peak:32MiB,kernels:0", 0)],
)
def test_limits_decide_on_the_exit_code(files, limits, code):
    assert run(*files, "--fail-on", limits).exit_code == code


def test_what_cannot_be_used_exits_with_2(files, tmp_path):
    damaged = tmp_path / "damaged.gpuviz"
    damaged.write_bytes(b"nothing")

    for arguments in (
        (files[0], tmp_path / "missing.gpuviz"),
        (files[0], damaged),
        (*files, "--fail-on", "peak:5 parsecs"),
        (*files, "-o", files[0]),
    ):
        assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("text", ["", "peak", "peak:", "peak:-1", "speed:5%", "time:5MB", "a:b:c"])
def test_a_limit_that_cannot_be_parsed_is_an_error(text):
    with pytest.raises(GpuvizError, match="limit"):
        parse_limits(text)


def test_a_finding_is_followed_by_its_number_in_the_list_of_findings(tmp_path):
    source = """\
def work(gpu):
    image = gpu.empty(64 << 20)
    blurred = gpu.empty(64 << 20)
    gpu.launch("blur", reads=[image], writes=[blurred], duration=1e-3)
    edges = gpu.empty(64 << 20)
    gpu.launch("edges", reads=[blurred], writes=[edges], duration=1e-3)
"""
    before = recorded(source, "unused.py").save(tmp_path / "before.gpuviz")
    after = recorded(source.replace("    edges", "    del image\n    edges"), "deleted.py")
    files = before, after.save(tmp_path / "after.gpuviz")
    listed = CliRunner().invoke(cli.commands, ["findings", "--json", str(before)])
    said = json.loads(listed.output)["findings"]
    outputs = [run(*files, "--finding", number).output for number in range(1, len(said) + 2)]

    assert [each["kind"] for each in said] == ["finding", *["fact"] * (len(said) - 1)]
    assert said[0]["title"] in outputs[0]
    assert "64.0 MiB predicted, 64.0 MiB saved" in outputs[0]
    assert all("asks for no change" in each for each in outputs[1:-1])
    assert f"has {len(said)} findings, so none is number {len(said) + 1}" in outputs[-1]
    assert run(*files, "--finding", 1, "-o", "page.html").exit_code == 2


def test_the_text_names_the_line(files):
    printed = run(*files).output

    assert "edited  work (program.py:2)  images = gpu.empty(96 << 20)" in printed


def test_the_page_escapes_what_comes_from_the_program(before, tmp_path):
    hostile = PROGRAM.replace('"blur"', '"<script>blur</script>"').replace("8 <<", "9 <<")
    found = gpuviz.diff(before, recorded(hostile))

    page = found.report(tmp_path / "diff.html").read_text()

    assert "&lt;script&gt;blur" in page
    assert "<script>" not in page
    assert "scratch = gpu.empty(9 &lt;&lt; 20)" in page
    assert "Peak before" in found._repr_html_()
    with pytest.raises(gpuviz.errors.RecordingExistsError):
        found.report(tmp_path / "diff.html")
