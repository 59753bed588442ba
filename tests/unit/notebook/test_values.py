"""What recordings, findings and tables look like in a notebook."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import gpuviz
from gpuviz import commands
from gpuviz.advice.finding import Finding, Findings
from gpuviz.notebook.values import MOST_ROWS, table_html, table_text
from gpuviz.present.conclusions_html import notebook_list
from gpuviz.quantities import format_bytes, format_duration, format_share
from tests.unit.recording.from_activities import Timeline

RECORDINGS = Path(commands.__file__).parent / "recordings"
MIB = 1 << 20
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def recording():
    return gpuviz.load(RECORDINGS / "kmeans.gpuviz")


@pytest.fixture
def shell(ipython):
    gpuviz.load_ipython_extension(ipython)
    yield ipython
    gpuviz.unload_ipython_extension(ipython)


def words(html):
    """Return the text of HTML."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def shown(shell, value):
    """Return what a shell shows of a value, by MIME type."""
    return shell.display_formatter.format(value)[0]


def rows_of(html):
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_a_recording_shows_its_headline_and_a_picture(recording):
    html = recording._repr_html_()
    busy = format_share(recording.steady_state().busy)

    assert words(html).startswith(
        f"gpuviz peak 161 MiB; nothing still allocated; GPU busy {busy}; took 214 ms."
    )
    assert html.count("<img ") == 1


def test_a_recording_without_anything_says_so():
    assert "The recording used no GPU memory" in words(Timeline().recording()._repr_html_())


def test_findings_show_what_they_save(recording):
    found = recording.findings()
    html = found._repr_html_()

    assert isinstance(found, Findings)
    assert found == tuple(found)
    assert html.count("<summary>") >= len(found)
    assert words(html).startswith(f"{words(notebook_list(found[:1]))[:20]}")
    assert words(found[0]._repr_html_()) == words(notebook_list(found[:1]))


@pytest.mark.parametrize(
    "value_of",
    [
        lambda recording: recording,
        lambda recording: recording.findings(),
        lambda recording: recording.findings()[0],
        lambda recording: gpuviz.diff(recording, recording),
        lambda _recording: gpuviz.holders(),
    ],
)
def test_the_html_of_a_value_is_a_plain_string(recording, value_of):
    # marimo shows an error instead of a string of a subclass, such as marked HTML.
    assert type(value_of(recording)._repr_html_()) is str


def test_findings_are_sentences_in_a_terminal(recording):
    found = recording.findings()
    first, *_, last = repr(found).split("\n")
    one = str(found[0]).split("\n")

    assert first == f"1. {found[0].title} [{found[0].rule}, {found[0].certainty}]"
    assert last.startswith("   ")
    assert repr(found).count("\n\n") == len(found) - 1
    assert (one[0], one[-1]) == (
        first.removeprefix("1. "),
        repr(Findings(found[:1])).split("\n")[-1],
    )
    assert repr(found[0]) == f"<Finding {found[0].rule}: {found[0].title}>"
    assert repr(Findings()).startswith("Nothing was found that would save 1 %")


def test_findings_in_a_terminal_cannot_control_it():
    finding = Finding("R45", "One \x1b[2J", "Reason.", "Change.", "certain", 0)

    assert "\x1b" not in repr(Findings([finding])) + str(finding)


def test_no_findings_say_that_nothing_was_found():
    assert words(Findings()._repr_html_()).startswith("Nothing was found that would save 1 %")


def test_long_lists_of_findings_are_folded():
    one = Finding("R45", "One `<b>`", "Reason.", "Change.", "certain", 0, saved_bytes=MIB)
    few = notebook_list([one] * 3)
    many = notebook_list([one] * 5, "Of the first 2.50 s:", ["Unknown."])

    assert "more findings" not in few
    assert "<summary>2 more findings</summary>" in many
    assert "<div>Unknown.</div>" in many
    assert "<div>Of the first 2.50 s:</div>" in many
    assert "<b>" not in many


def test_what_a_setting_saves_is_in_front_of_its_finding():
    finding = Finding(
        "R11", "A setting.", "Reason.", "Change.", "likely", 0, saved_reserved_bytes=116 * MIB
    )

    assert words(notebook_list([finding])).startswith("116 MiB A setting.")


def test_a_table_of_a_recording_shows_bytes_and_times_with_their_units(shell, recording):
    lines = recording.lines()
    head, first, *others = rows_of(shown(shell, lines)["text/html"])
    row = dict(zip(head, first, strict=True))

    assert row["source"] == "distances = cp.square(differences).sum(axis=2)"
    assert (row["live bytes"], row["total count"]) == ("68.0 MiB", "1,080")
    assert (row["kernel"], row["idle"]) == ("53.1 ms", "1.06 ms")
    assert len(others) == MOST_ROWS - 1
    assert f"the first {MOST_ROWS} of {lines.num_rows} rows" in shown(shell, lines)["text/html"]
    assert shown(shell, pa.table({"time": [1]}))["text/plain"].startswith("pyarrow.Table")


def test_a_table_of_events_shows_times_sizes_addresses_and_ids(shell, recording):
    events = recording.table("memory_events")
    head, first, *_ = rows_of(shown(shell, events)["text/html"])
    row = dict(zip(head, first, strict=True))
    raw = events.slice(0, 1).to_pylist()[0]

    assert row["time"] == format_duration(raw["time"])
    assert row["size"] == format_bytes(raw["size"])
    assert row["address"] == hex(raw["address"])
    assert row["thread"] == str(raw["thread"])


def test_a_table_is_text_of_the_terminals_width_in_a_terminal(shell, recording, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    events = recording.table("memory_events")
    head, first, *rest, extent = shown(shell, events)["text/plain"].split("\n")

    assert head.split() == ["time", "action", "address", "size", "requested", "size"]
    assert hex(events["address"][0].as_py()) in first.split()
    assert max(map(len, [head, first, *rest])) <= 70
    assert extent.startswith(
        f"the first {MOST_ROWS} of 14,790 rows; more columns: device, framework"
    )


def test_a_narrow_table_leaves_out_ids_before_other_columns():
    stack = pa.array([7], pa.uint32())
    table = pa.table({"source": ["x = f()"], "stack": stack, "live_bytes": [1 << 20]})

    assert table_text(table, 20) == (
        "source   live bytes\nx = f()    1.00 MiB\n1 row; more columns: stack"
    )


def test_a_table_in_a_terminal_cannot_control_it():
    table = pa.table({"name": ["one\x1b[2J"], "size": [1 << 20]})

    assert table_text(table, 80) == "name            size\none\\x1b[2J  1.00 MiB\n1 row"


@pytest.mark.parametrize(
    "name", ["sites", "kernels", "copies", "synchronizations", "what_if", "peak_chain"]
)
def test_every_table_of_a_recording_has_a_row_for_each_of_its_own(shell, recording, name):
    table = getattr(recording, name)()
    head, *rows = rows_of(shown(shell, table)["text/html"])

    assert len(head) == table.num_columns
    assert len(rows) == min(table.num_rows, MOST_ROWS)
    assert all(len(row) == len(head) for row in rows)


def test_tables_of_other_libraries_look_as_before(shell):
    assert "text/html" not in shown(shell, pa.table({"time_ns": [1]}))


def test_without_the_extension_tables_are_text_again(recording, ipython):
    gpuviz.load_ipython_extension(ipython)
    gpuviz.unload_ipython_extension(ipython)

    assert "text/html" not in shown(ipython, recording.lines())


def test_texts_of_a_recording_are_escaped():
    table = pa.table({"name": [HOSTILE], HOSTILE: [1], "sites": [[HOSTILE]]})

    assert "<img" not in table_html(table)
    assert table_html(table).count("&lt;img") == 3


def test_what_is_unknown_is_left_empty():
    table = pa.table({"driver_ns": pa.array([None], pa.int64()), "count": [2]})

    assert rows_of(table_html(table))[1] == ["", "2"]
