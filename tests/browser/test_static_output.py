"""Visibility of the live view and of the picture saved with it."""

import pytest
from playwright.sync_api import Page

from gpuviz.notebook.static_output import StaticOutput

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("state", "is_seen"),
    [("recording", False), ("waiting", False), ("cut", False), ("absent", True), ("", True)],
)
def test_the_picture_is_seen_where_the_live_view_has_nothing(page: Page, state, is_seen):
    static_output = StaticOutput(lambda: None)
    live = f'<div class="{static_output.live_class}"><b data-state="{state}">live</b></div>'
    page.set_content(f"{live if state else ''}{static_output._bundle()['text/html']}")

    assert page.get_by_text("nothing has been recorded yet").is_visible() == is_seen
