"""Recordings of programs of other languages, with a driver and a CUPTI that need no GPU."""

import os
import subprocess
import sys
import sysconfig

import pytest

import gpuviz
from tests.integration.commands.programs import (
    GPUVIZ,
    SIMULATED,
    imitated_cuda,
    names,
    outcome,
    run,
    said,
)

# It calls the library that the variable names, as the driver does in the first call of cuInit.
PROGRAM = """
#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_set(const char* variable) { return getenv(variable) != NULL; }

int main(int count, char** arguments) {
    const char* const library = getenv("CUDA_INJECTION64_PATH");
    // gpuviz takes the CUPTI that is loaded.
    void (*launch)(int) = (void (*)(int))dlsym(dlopen("libcupti.so.13", RTLD_NOW), "fake_launch");
    if (count > 1 && strcmp(arguments[1], "idle") == 0) return 0;
    if (library != NULL) {
        void* const tool = dlopen(library, RTLD_NOW);
        int (*inject)(void) = (int (*)(void))dlsym(tool, "InitializeInjection");
        inject();
        inject();
    }
    launch(0);
    launch(0);
    if (fork() == 0) exit(0);
    wait(NULL);
    printf("%d %d %s %s\\n", is_set("CUDA_INJECTION64_PATH"), is_set("GPUVIZ_BINARY_RUN"),
           is_set("PYTHONHOME") ? getenv("PYTHONHOME") : "-", setlocale(LC_CTYPE, NULL));
    fflush(stdout);
    if (count > 1 && strcmp(arguments[1], "abort") == 0) abort();
    return 3;
}
"""


@pytest.fixture(scope="module")
def cuda(tmp_path_factory):
    """A folder with a driver and a CUPTI that need no GPU, and the program."""
    folder = imitated_cuda(tmp_path_factory.mktemp("imitations"))
    compiler = ["cc", "-o", folder / "program", "-xc", "-", "-ldl"]
    subprocess.run(compiler, input=PROGRAM, text=True, check=True)
    return folder


@pytest.fixture
def recorded(tmp_path, cuda):
    """What runs the program under ``gpuviz run``."""

    def recorded(*options, program=cuda / "program", arguments=(), environment=None):
        command = [GPUVIZ, "run", *options, program, *arguments]
        path = f"{cuda}{os.pathsep}{os.environ['PATH']}"
        variables = {"LD_LIBRARY_PATH": str(cuda), "PATH": path, **(environment or {})}
        return run(command, tmp_path, environment=variables)

    return recorded


def test_a_program_of_another_language_is_recorded_and_ends_as_it_would(tmp_path, cuda, recorded):
    done = recorded(arguments=["--size", 4])
    recording = gpuviz.load(tmp_path / "program.gpuviz")

    assert outcome(done) == (3, "0 0 - C\n", "")
    (line,) = said(done)
    assert line.startswith("wrote program.gpuviz (")
    assert "2 GPU activities" in line
    assert recording.is_complete
    assert recording.manifest.program == (str(cuda / "program"), "--size", "4")
    assert recording.kernels()["count"].to_pylist() == [2]
    assert names(tmp_path) == ["program.gpuviz"]


def test_a_program_is_found_by_its_name(tmp_path, recorded):
    done = recorded("--quiet", program="program")

    assert outcome(done) == (3, "0 0 - C\n", "")
    assert said(done) == []
    assert names(tmp_path) == ["program.gpuviz"]


def test_a_program_that_aborts_leaves_a_part_that_loads(tmp_path, recorded):
    done = recorded(arguments=["abort"])

    assert done.returncode == -6
    assert names(tmp_path) == ["program.gpuviz.part"]
    assert not gpuviz.load(tmp_path / "program.gpuviz.part").is_complete


def test_a_program_without_cuda_is_told_that_nothing_was_recorded(tmp_path, recorded):
    done = recorded(arguments=["idle"])

    assert outcome(done) == (0, "", "")
    assert said(done) == ["nothing was recorded: the program did not use CUDA"]
    assert names(tmp_path) == []


def test_a_program_that_runs_python_itself_is_told_how_it_is_recorded(tmp_path, recorded):
    python = sysconfig.get_config_var("INSTSONAME")
    done = recorded(environment={"LD_PRELOAD": f"{sysconfig.get_config_var('LIBDIR')}/{python}"})

    assert done.returncode == 3
    assert said(done)[0].startswith("not recorded: the program runs Python itself")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "variables", "sentence"),
    [
        (["--hazards", "--fail"], {}, "--fail needs a program of Python"),
        ([], {"CUDA_INJECTION64_PATH": "/opt/tool.so"}, "Another tool records the program"),
    ],
)
def test_what_cannot_be_recorded_stops_the_run_before_it_begins(
    tmp_path, recorded, options, variables, sentence
):
    done = recorded(*options, environment=variables)

    assert done.returncode == 1
    assert said(done)[0].startswith(sentence)
    assert names(tmp_path) == []


def test_a_launcher_of_another_language_starts_recorded_processes_of_python(tmp_path, recorded):
    (tmp_path / "train.py").write_text(SIMULATED + "step(1234)\n")
    done = recorded("--children", program="env", arguments=["EXTRA=1", sys.executable, "train.py"])

    assert done.returncode == 0
    (found,) = (tmp_path / "env.recordings").iterdir()
    events = gpuviz.load(found).table("memory_events")
    assert 1234 in events["requested_size"].to_pylist()
