"""Tab completion in a real bash."""

import subprocess

import pytest

from tests.integration.commands.programs import GPUVIZ


def completions(words, folder):
    line = " ".join(words)
    script = f"""
    PATH={GPUVIZ.parent}:$PATH
    eval "$(_GPUVIZ_COMPLETE=bash_source gpuviz)"
    COMP_WORDS=({line} "")
    COMP_CWORD={len(words)}
    [[ "{line}" == *" -"* || "{line}" == *r ]] && COMP_WORDS=({line}) && COMP_CWORD={len(words) - 1}
    compopt() {{ echo compopt "$@"; }}
    _gpuviz_completion gpuviz
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gpuviz", "r"], ["report", "run"]),
        (["gpuviz", "stats", "--dev"], ["--device"]),
        (["gpuviz", "run", "--no-l"], ["--no-launch-sites", "--no-launch-blocks"]),
        (["gpuviz", "run"], ["compopt -o default", ""]),
        (["gpuviz", "info"], ["compopt -o default", ""]),
    ],
)
def test_tab_completes_verbs_options_and_files(tmp_path, words, expected):
    assert completions(words, tmp_path) == expected


def test_help_says_how_to_switch_it_on(tmp_path):
    done = subprocess.run(
        [GPUVIZ, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert "_GPUVIZ_COMPLETE=bash_source" in done.stdout
