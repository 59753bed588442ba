"""A JAX program whose loop XLA makes graphs of, which it builds node by node and changes."""

import importlib.util
import os
import subprocess
import sys

import pytest

import gpuviz

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no jax"),
]
PROGRAM = """
import jax, jax.numpy as jnp

def step(state, amplitude):
    before, now = state
    padded = jnp.pad(now, 1)
    after = 2 * now - before + 0.1 * (padded[2:, 1:-1] + padded[:-2, 1:-1] - 2 * now)
    after = after.at[4, 4].add(amplitude)
    return (now, after), after[6, ::4]

def simulate(speed, amplitudes):
    start = (jnp.zeros((64, 64)), speed * jnp.ones((64, 64)))
    segment = jax.checkpoint(lambda state, values: jax.lax.scan(step, state, values))
    return jax.lax.scan(segment, start, amplitudes.reshape(10, 40))[1].sum()

update = jax.jit(jax.value_and_grad(simulate))
for _ in range(10):
    value, slope = update(1e-3, jnp.ones(400))
print(float(value), float(slope))
"""


def test_a_program_of_jax_that_launches_graphs_is_recorded_and_does_not_crash(tmp_path):
    (tmp_path / "waves.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "gpuviz", "run", "-o", "waves.gpuviz", "waves.py"]
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}

    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert gpuviz.load(tmp_path / "waves.gpuviz").table("activities").num_rows > 0
