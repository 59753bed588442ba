"""The documentation site by the rules of axe-core, and on a phone."""

import pytest

from tests.browser.test_accessibility import AXE, RULES

pytestmark = pytest.mark.browser

# One page of each form: lists, a tutorial, tables, long tables, names, commands.
PAGES = (
    *("index", "tutorials/first_recording", "reference/compatibility", "reference/findings"),
    *("reference/generated/api_recording", "reference/generated/commands"),
)
# axe-core would load style sheets a second time, which pages of files refuse.
VIOLATED = """options => axe.run(document, {preload: false, ...options}).then(
    found => found.violations.map(each => each.id))"""
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit(page, site, scheme, size):
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)
    found = {}

    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        page.evaluate(AXE)
        whole = page.evaluate("document.documentElement.scrollWidth")
        found[name] = page.evaluate(VIOLATED, RULES[scheme]), whole <= width

    assert found == {name: ([], True) for name in PAGES}
