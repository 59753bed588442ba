"""The sections of a report: the same values as HTML and as the table that a browser draws."""

import re
from html import unescape
from math import isnan
from pathlib import Path

import pytest

import gpuviz
from gpuviz.present.markup import parts_html, section_html
from gpuviz.present.section import Bar, Cell, Row, Section, hint, items, of_bytes, table, text
from gpuviz.present.section_table import ANY_DEVICE, section_table
from gpuviz.report.page import build_page
from gpuviz.report.sections import sections_table

SHIPPED = sorted((Path(gpuviz.__file__).parent / "commands" / "recordings").glob("*.gpuviz"))
HOSTILE = "</td><script>alert(1)</script>\udcff"


def visible(html: str) -> str:
    """Return the texts in HTML, without code marks and repeated spaces."""
    texts = unescape(re.sub(r"<[^>]*>", " ", html)).replace("`", " ")
    return " ".join(texts.split())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_page_without_javascript_has_every_text_that_the_browser_draws(path):
    recording = gpuviz.load(path)
    page = visible(build_page(recording).partition("<script")[0])

    rows = sections_table(recording).to_pylist()

    rows = [row for row in rows if row["texts"] != ["Show one iteration"]]
    texts = [each for row in rows for name in ("texts", "codes", "places") for each in row[name]]
    assert len(texts) > 100
    assert [each for each in texts if " ".join(each.replace("`", " ").split()) not in page] == []


def test_the_report_s_file_has_its_sections(tmp_path):
    recording = gpuviz.load(SHIPPED[0])

    back = gpuviz.load(recording.report(tmp_path / "run.html"))

    # As text, since an absent number is not equal to itself.
    shown = sections_table(recording).to_pylist()
    assert repr(back.table("sections").to_pylist()) == repr(shown)
    assert recording.table("sections").num_rows == 0


def test_texts_of_a_recording_stay_text():
    cell = Cell(HOSTILE, code=HOSTILE, place=HOSTILE, hover=HOSTILE)
    parts = (text(HOSTILE), hint(HOSTILE), items([cell]), table(HOSTILE, [HOSTILE], [Row((cell,))]))

    page = section_html(Section("name", HOSTILE, parts), 0)

    assert "<script" not in page
    assert visible(page).count("alert(1)") == 10
    assert page.encode("utf-8")


def test_a_row_with_a_bar_has_one_more_column_than_cells():
    rows = [Row((Cell("a"), of_bytes(1 << 20)), bar=Bar(0.25, 0.5, "program")), (Cell("b"), "")]
    shown = table("Sizes", ("Name", "Bytes"), rows)

    page = parts_html([shown], "h4")

    assert re.findall(r"<th scope[^>]*>(.*?)</th>", page) == ["Name", "Bytes", "Bar"]
    assert page.count("<td") == 6
    assert page.count("<svg") == 1
    assert 'x="0.2500" width="0.5000"' in page


def test_each_row_of_a_section_is_a_row_of_the_table():
    first = Row((Cell("1", 1, place="first"),), window=(5, 9), more=(Cell("below", code="f()"),))
    section = Section("steps", "Steps", (text("Two."), table("Steps", ["Step"], [first])), 2)

    found = section_table([(0, [section]), (ANY_DEVICE, [Section("about", "About", ())])])

    rows = found.to_pylist()
    assert [row["kind"] for row in rows] == ["text", "table", "row", "more"]
    assert {row["title"] for row in rows} == {"Steps 2"}
    assert (rows[2]["texts"], rows[2]["values"], rows[2]["places"]) == (["1"], [1.0], ["first"])
    assert (rows[2]["begin"], rows[2]["end"], rows[0]["end"]) == (5, 9, -1)
    assert (rows[3]["texts"], rows[3]["codes"]) == (["below"], ["f()"])
    assert isnan(rows[3]["values"][0])
