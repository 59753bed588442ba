"""The documentation site: built without a warning, whole, and without anything from a network."""

import re

from scripts.generate_gallery import REPORTS
from tests.documents import PAGES, ROOT

LINKED = re.compile(r"""<a\b[^>]*\bhref="(?P<href>[^"]*\bviewer\.html)\"""")
# What a browser loads by itself; links may lead anywhere.
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="(?P<src>[^"]*)"|<link\b[^>]*>""")


def test_every_page_and_every_report_of_the_gallery_is_there(site):
    pages = [each.relative_to(ROOT / "docs") for each in PAGES if each.parent != ROOT]

    assert [str(each) for each in pages if not (site / each.with_suffix(".html")).exists()] == []
    assert {each.name for each in (site / "gallery").iterdir()} == REPORTS.keys()
    assert (site / "_images" / "report.webp").stat().st_size < 1_500_000


def test_the_viewer_is_there_and_pages_link_to_it(site):
    links = {
        str(page.relative_to(site)): (page.parent / found.group("href")).resolve()
        for page in site.rglob("*.html")
        for found in LINKED.finditer(page.read_text(encoding="utf-8"))
    }

    assert {"gallery.html", "how-to/sharing.html", "how-to/coming_from.html"} <= links.keys()
    assert {*links.values()} == {(site / "viewer.html").resolve()}
    viewer = (site / "viewer.html").read_text(encoding="utf-8")
    assert 'id="gpuviz-snapshot-reader"' in viewer
    assert len(viewer) < 1_500_000


def test_a_page_loads_nothing_from_a_network(site):
    loaded = [
        found.group("src") or found.group()
        for page in site.rglob("*.html")
        for found in LOADED.finditer(page.read_text(encoding="utf-8"))
    ]

    assert len(loaded) > 100
    assert [each for each in loaded if "//" in each] == []


def test_the_reference_has_the_docstring_of_a_name_and_the_columns_of_a_table(site):
    reference = site / "reference" / "generated"

    recordings = (reference / "api_recordings.html").read_text(encoding="utf-8")
    assert 'id="gpuviz.Recording.steady_state"' in recordings
    assert 'id="gpuviz.Recording.take_path"' not in recordings
    assert "free_requested" in (reference / "tables.html").read_text(encoding="utf-8")
