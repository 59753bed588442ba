"""What is written twice for a release, in the forms of several programs."""

import re
import tomllib

from tests.documents import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")


def test_the_conda_recipe_needs_what_the_wheel_needs():
    run = RECIPE.partition("  run:\n")[2].partition("\n\n")[0]
    needed = {re.sub(r"\s", "", line.strip(" -")) for line in run.splitlines()}
    project = PROJECT["project"]

    assert needed == {
        f"python{project['requires-python']}",
        *(re.sub(r"\s", "", each) for each in project["dependencies"]),
    }


def test_the_conda_recipe_has_the_version_of_the_next_release():
    [entry] = PROJECT["tool"]["dynamic-metadata"]

    assert f'default="{entry["next"]}.dev0"' in RECIPE
