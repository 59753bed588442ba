"""The figures of the documentation are those that the benchmarks saved."""

import json

from scripts import generate_performance


def test_the_tables_of_the_documentation_are_those_that_were_measured():
    text = generate_performance.DOCUMENT.read_text(encoding="utf-8")

    assert generate_performance.generated(text) == text


def test_every_saved_measurement_has_a_table():
    text = generate_performance.DOCUMENT.read_text(encoding="utf-8")
    saved = sorted(generate_performance.MEASURED.glob("*.json"))

    assert [each.stem for each in saved if f"<!-- measured: {each.stem} -->" not in text] == []
    assert {tuple(json.loads(each.read_text())) for each in saved} == {("date", "machine", "rows")}
