"""Call stacks of cells and of kernels."""

import json
from collections.abc import Iterator
from textwrap import dedent

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel

from tests.unit.ipython_shells import new_shell
from tests.unit.recorder.captured_stacks import PROBE


@pytest.fixture
def shell(monkeypatch) -> Iterator[InteractiveShell]:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # IPython warns if it is another Python's
    with new_shell() as shell:
        yield shell


def run_cell(shell, text):
    result = shell.run_cell(dedent(text), store_history=True)
    result.raise_error()
    return shell.user_ns["found"]


def test_a_cell_is_named_as_its_user_knows_it(shell, probe):
    shell.user_ns["probe"] = probe
    run_cell(shell, "found = None\n\ndef helper():\n    return probe()\n")

    found = run_cell(shell, "# second\nfound = helper()")

    assert found == [
        ("helper", "In [1]", 4, 1, "return probe()"),
        ("<module>", "In [2]", 2, 2, "found = helper()"),
    ]


def test_the_same_cell_run_again_is_another_cell(shell, probe):
    shell.user_ns["probe"] = probe

    first = run_cell(shell, "found = probe()")
    second = run_cell(shell, "found = probe()")

    assert first == [("<module>", "In [1]", 1, 1, "found = probe()")]
    assert second == [("<module>", "In [2]", 1, 2, "found = probe()")]


def test_the_body_of_a_cell_magic_is_the_cell(shell, probe):
    shell.user_ns["probe"] = probe
    shell.register_magic_function(
        lambda _, body: shell.run_cell(body) and None, magic_kind="cell", magic_name="inner"
    )

    found = run_cell(shell, "%%inner\ndef work():\n    return probe()\nfound = work()\n")

    assert found == [
        ("work", "In [1]", 2, 1, "return probe()"),
        ("<module>", "In [1]", 3, 1, "found = work()"),
    ]


def test_a_kernel_shows_cells_and_nothing_of_jupyter():
    manager, client = start_new_kernel()
    try:
        shown = []
        for cell in (
            PROBE,
            "def work():\n    return capture()",
            "import json\nprint(json.dumps(work()))",
        ):
            client.execute_interactive(
                cell,
                timeout=60,
                output_hook=lambda message: shown.append(message["content"].get("text")),
            )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)

    text = next(text for text in shown if text)
    assert json.loads(text) == [
        ["work", "In [2]", 2, 2, "return capture()"],
        ["<module>", "In [3]", 2, 3, "print(json.dumps(work()))"],
    ]
