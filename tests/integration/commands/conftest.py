"""A folder for programs."""

import pytest

from tests.integration.commands.programs import TWO_STEPS


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(TWO_STEPS)
    return tmp_path
