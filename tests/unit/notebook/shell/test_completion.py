"""Tab completion after the magics."""

import pytest
from IPython.core.completer import provisionalcompleter


def words(shell, line):
    """Return the completions of the last word of a line."""
    with provisionalcompleter():
        found = shell.shell.Completer.completions(line, len(line))
        return {(line[: each.start] + each.text).split()[-1] for each in found}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%gpuviz st", ["start", "stop", "status"]),
        ("%gpuviz start --no", ["--no-stacks", "--no-streams"]),
        ("%gpuviz start --no-stacks --no", ["--no-streams"]),
        ("%gpuviz report --re", ["--redact"]),
        ("%%gpuviz --re", ["--report"]),
        ("%%gpuviz --simulated g", ["gpu"]),
        ("%gpuviz start --simulated gpu", ["gpu"]),
    ],
)
def test_commands_options_and_names_of_simulated_gpus_are_offered(shell, line, offered):
    shell.run("gpus = [gpu]")
    others = {"gpus", "--no-stacks", "dashboard", "--redact"}

    assert words(shell, line) & {*offered, *others} == set(offered)


def test_files_are_still_offered(shell, tmp_path, monkeypatch):
    (tmp_path / "run.gpuviz").write_text("")
    monkeypatch.chdir(tmp_path)

    assert "run.gpuviz" in words(shell, "%gpuviz save ru")


def test_nothing_is_offered_once_the_extension_is_unloaded(shell):
    before = set(shell.shell.strdispatchers["complete_command"].strs)
    shell.run("%unload_ext gpuviz")

    after = set(shell.shell.strdispatchers["complete_command"].strs)
    assert before - after == {"%gpuviz", "%%gpuviz"}
