"""The rules and their documentation."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuviz.advice import rules

ROOT = Path(__file__).parents[2]
MODULES = [each.name for each in pkgutil.iter_modules(rules.__path__)]


def test_the_documentation_of_the_rules_is_up_to_date():
    command = [sys.executable, "-m", "scripts.generate_findings", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", MODULES)
def test_a_module_describes_the_rules_whose_findings_it_makes(name):
    module = importlib.import_module(f"gpuviz.advice.rules.{name}")
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    code = [part for part in tree.body if not ast.unparse(part).startswith("RULES = ")]
    used = set(re.findall(r"'(R\d\d)'", "\n".join(map(ast.unparse, code))))

    assert {each.name for each in module.RULES} == used
    assert f"R{name[1:3]}" in used
