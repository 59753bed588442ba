"""Messages of gpuviz in programs that configure logging, and in those that do not."""

import subprocess
import sys

import pytest

PROGRAM = """\
import logging, sys
import gpuviz

{configure}
gpu = gpuviz.SimulatedGPU(real_time=False)
recorder = gpuviz.record(device=gpu, hazards=True)
recorder.start()
s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
with s:
    a = gpu.empty(1 << 20)
    gpu.launch("write", writes=[a], duration=1e-3, share=0.1)
with t:
    gpu.launch("read", reads=[a], duration=1e-3, share=0.1)
gpu.synchronize()
"""
FORMAT = "logging.basicConfig(level='{level}', format='%(levelname)s [%(name)s] %(message)s')"


def stderr(configure):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(configure=configure)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


def test_a_program_without_logging_shows_warnings_on_stderr():
    text = stderr("")

    assert text.startswith("gpuviz: 1 hazard between streams")
    assert "Recording started" not in text


def test_a_program_with_logging_gets_the_messages_of_its_level():
    everything = stderr(FORMAT.format(level="INFO"))
    warnings = stderr(FORMAT.format(level="WARNING"))

    assert everything.startswith("INFO [gpuviz] Recording started: in memory\n")
    assert warnings.startswith("WARNING [gpuviz] 1 hazard between streams")
    assert warnings in everything


@pytest.mark.parametrize("level", ["ERROR", "CRITICAL"])
def test_the_logger_can_be_silenced(level):
    assert stderr(f"logging.getLogger('gpuviz').setLevel('{level}')") == ""
