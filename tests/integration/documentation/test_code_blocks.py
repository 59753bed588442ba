"""The code blocks of the documentation that need no GPU do what the documentation says."""

import pytest

from tests import documentation
from tests.documents import PAGES, blocks_of, name_of

# What blocks need, and where they run.
NEEDS = {
    "gpu": "tests/gpu/test_documentation.py",
    "torch": "tests/gpu/test_documentation.py",
    "numba": "tests/gpu/test_documentation.py",
    "cluster": "here",
    "named": "nowhere: the names of a cluster's workers",
    "workers": "nowhere: the names of a cluster's workers",
    "ray": "nowhere: Ray",
}
RUN = {"python", "ipython", "sh"}
LANGUAGES = RUN | {"sql", "text", ""}
WITH_CODE = [
    page
    for page in PAGES
    if {each.language for each in blocks_of(page)} & {"python", "sh", "ipython"}
]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page):
    here = {"cluster"}
    runs = [each.language for each in blocks_of(page) if set(each.needs.split()) <= here]

    assert documentation.run(page, here) == [each for each in runs if each in RUN]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_known_language_and_known_needs(page):
    blocks = list(blocks_of(page))
    needs = {need for each in blocks for need in each.needs.split()}

    assert needs <= NEEDS.keys()
    assert {each.language for each in blocks if not each.language.startswith("{")} <= LANGUAGES
