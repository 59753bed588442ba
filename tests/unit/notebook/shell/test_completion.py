"""Tab completion after the magics."""

import pytest
from IPython.core.completer import provisionalcompleter


def words(shell, line):
    """Return the completions of the last word of a line."""
    with provisionalcompleter():
        found = shell.shell.Completer.completions(line, len(line))
        return {(line[: each.start] + each.text).split()[-1] for each in list(found)}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%gpuviz st", ["start", "stop", "status"]),
        ("%gpuviz start --no", ["--no-stacks", "--no-streams"]),
        ("%gpuviz start --no-stacks --no", ["--no-streams"]),
        ("%gpuviz report --re", ["--redact"]),
        ("%%gpuviz --re", ["--report", "--record-stream"]),
        ("%%gpuviz --simulated g", ["gpu"]),
        ("%gpuviz start --simulated gpu", ["gpu"]),
        ("%gpuviz start --record-stream ", ["auto", "off", "report"]),
        ("%%gpuviz --record-stream re", ["report"]),
        ("recording = %gpuviz sto", ["stop"]),
        ("x = 1\n%gpuviz sto", ["stop"]),
        ("  %gpuviz  report  --re", ["--redact"]),
    ],
)
def test_commands_options_and_names_of_simulated_gpus_are_offered_alone(shell, line, offered):
    shell.run("gpus, start_value, no_stacks, report_path = [gpu], 1, 2, 3")

    assert words(shell, line) == set(offered)


def test_the_commands_are_offered_before_the_first_letter(shell):
    assert {"start", "stop", "dashboard"} <= words(shell, "%gpuviz ")
    assert words(shell, "%gpuviz ") & {"and", "gpu", "start_value"} == set()


@pytest.mark.parametrize("line", ["", "%gpuviz", "%%gpuviz", "%%gpuviz\n", "\n%gpuviz start\n"])
def test_where_no_word_of_a_magic_is_due_python_is_completed_without_an_error(shell, line, capsys):
    with provisionalcompleter():
        found = {each.text for each in shell.shell.Completer.completions(line, len(line))}

    assert capsys.readouterr().err == ""
    assert found >= ({line} if line.endswith("gpuviz") else {"abs", "print"})


def test_files_are_still_offered(shell, tmp_path, monkeypatch):
    (tmp_path / "run.gpuviz").write_text("")
    monkeypatch.chdir(tmp_path)

    assert "run.gpuviz" in words(shell, "%gpuviz save ru")


def test_nothing_is_offered_once_the_extension_is_unloaded(shell):
    before = words(shell, "%gpuviz start --no")
    shell.run("%unload_ext gpuviz")

    assert before == {"--no-stacks", "--no-streams"}
    assert words(shell, "%gpuviz start --no").isdisjoint(before)
    assert shell.shell.Completer.custom_matchers == []


def test_loading_the_extension_again_offers_everything_once(shell):
    shell.run("%reload_ext gpuviz")

    assert len(shell.shell.Completer.custom_matchers) == 1
