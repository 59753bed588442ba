"""Which of the two a reader sees: the live view, or the picture that is saved beside it."""

import pytest
from playwright.sync_api import Page

from gpuviz.notebook.fallback import Fallback

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("state", "is_seen"),
    [("recording", False), ("waiting", False), ("cut", False), ("absent", True), ("", True)],
)
def test_the_picture_is_seen_where_the_live_view_has_nothing(page: Page, state, is_seen):
    fallback = Fallback(lambda: None)
    live = f'<div class="{fallback.live_class}"><b data-state="{state}">live</b></div>'
    page.set_content(f"{live if state else ''}{fallback._bundle()['text/html']}")

    assert page.get_by_text("nothing is recorded yet").is_visible() == is_seen
