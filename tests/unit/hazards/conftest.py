"""A program of two streams."""

import pytest

from tests.unit.hazards.two_streams import Program


@pytest.fixture
def program():
    return Program()
