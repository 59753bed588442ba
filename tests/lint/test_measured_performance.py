"""The figures of the documentation are those that the benchmarks saved, or were transcribed."""

import json
import re

from scripts import generate_performance

TEXT = generate_performance.DOCUMENT.read_text(encoding="utf-8")
FIGURE = re.compile(r"\d[\d.,]* ?(?:[nµm]?s|[KMG]i?B|B|%|x|times)\b|\d %")


def test_the_tables_of_the_documentation_are_those_that_were_measured():
    assert generate_performance.generated(TEXT) == TEXT


def test_no_figure_is_typed_by_hand():
    written = generate_performance.MARKED.sub("", TEXT)

    assert "| --- |" not in written
    assert FIGURE.findall(written) == []


def test_every_measurement_has_a_table_and_what_is_transcribed_was_not_saved():
    saved = sorted(generate_performance.MEASURED.glob("*.json"))
    earlier = json.loads(generate_performance.EARLIER.read_text(encoding="utf-8"))
    marks = [mark[1].split() for mark in generate_performance.MARKED.findall(TEXT)]
    are_saved = generate_performance.are_saved

    assert sorted(earlier) == sorted(names[0] for names in marks if not are_saved(names))
    assert {each.stem for each in saved} <= {name for names in marks for name in names}
    assert {tuple(json.loads(each.read_text())) for each in saved} == {
        ("command", "date", "machine", "rows")
    }
    assert {tuple(each) for each in earlier.values()} == {
        ("command", "date", "machine", "header", "rows")
    }
    assert {
        (len(row), len(each["header"])) for each in earlier.values() for row in each["rows"]
    } == {(len(each["header"]),) * 2 for each in earlier.values()}
