"""Sphinx's configuration of the documentation site; ``scripts/docs`` builds it."""

import sys
from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx

from gpuviz.report.viewer import write_viewer

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts import generate_gallery, generate_reference  # noqa: E402 - it is found by the line above

# Files of the repository that are pages here, by their links.
PROJECT = {
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
}

project = "gpuviz"
author = "The gpuviz developers"
release = metadata.version("gpuviz")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["build"]
default_role = "py:obj"
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"
highlight_language = "text"
html_theme = "furo"
html_title = f"gpuviz {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False


def _link_pages(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Make links to files outside of ``docs`` links to the pages that show them."""
    up = "../" * docname.count("/")
    for name, page in PROJECT.items():
        source[0] = source[0].replace(f"]({up}../{name}", f"]({up}project/{page}.md")


def _write_reference(app: Sphinx) -> None:
    generate_reference.write(Path(app.srcdir) / "reference" / "generated")


# What screen readers and keyboards need and the theme leaves out.
ACCESSIBLE = {
    'class="caption" role="heading"': 'class="caption" role="heading" aria-level="2"',
    '<aside class="sidebar-drawer"': '<aside class="sidebar-drawer" aria-label="Pages"',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
}


def _finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = before = page.read_text(encoding="utf-8")
        for written, accessible in ACCESSIBLE.items():
            text = text.replace(written, accessible)
        if text != before:
            page.write_text(text, encoding="utf-8")
    generate_gallery.write(Path(app.outdir) / "gallery")
    write_viewer(Path(app.outdir) / "viewer.html", overwrite=True)


def _escape_bars(*arguments: list[str]) -> None:
    *_, lines = arguments
    lines[:] = [line.replace("|", r"\|") if "``" not in line else line for line in lines]


def setup(app: Sphinx) -> None:
    """Connect what is written before a build, and what changes the pages that it reads."""
    app.connect("builder-inited", _write_reference)
    app.connect("build-finished", _finish)
    app.connect("source-read", _link_pages)
    app.connect("autodoc-process-docstring", _escape_bars)
