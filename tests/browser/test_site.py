"""The documentation site by the rules of axe-core, and on a phone."""

from itertools import product

import pytest

from tests.browser.test_accessibility import AXE

pytestmark = pytest.mark.browser

# One page of each form: lists, a tutorial, tables, long tables, names, commands.
PAGES = (
    *("index", "tutorials/first_recording", "reference/compatibility", "reference/findings"),
    *("reference/generated/api_recording", "reference/generated/commands"),
)
# axe-core would load style sheets a second time, which pages of files refuse.
VIOLATED = (
    "axe.run(document, {preload: false}).then(found => found.violations.map(each => each.id))"
)
SCHEMES = ("light", "dark")
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_accessible_and_fit(page, site, name):
    page.goto((site / f"{name}.html").as_uri())
    page.evaluate(AXE)
    found, colours = {}, set()

    for scheme, (size, (width, height)) in product(SCHEMES, SIZES.items()):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        whole = page.evaluate("document.documentElement.scrollWidth")
        found[scheme, size] = page.evaluate(VIOLATED), whole <= width

    assert found == dict.fromkeys(found, ([], True))
    assert len(colours) == 2
