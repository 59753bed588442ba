"""``python -m tests.litmus.fuzz COUNT [SEED]``: the engine against the oracle on random programs.

Exits 0 only if the engine reports everything that it must and nothing that it must not.
"""

import json
import sys
import time

from tests.litmus import engine, oracle
from tests.litmus.comparison import differences
from tests.litmus.program import program
from tests.litmus.random_objects import Fields
from tests.litmus.random_programs import random_program


def disagreements(value: Fields) -> list[str]:
    """Return where the engine's report of a program differs from the oracle's verdict."""
    judged = program(value)
    required, possible = oracle.judge(judged)
    return differences(engine.judge(judged), required, possible)


def main(arguments: list[str]) -> int:
    """Compare random programs, and print the first that differs; return the exit status."""
    count, first = map(int, [*arguments, *("1000", "0")[len(arguments) :]])
    begin = time.monotonic()
    hazardous = 0
    for seed in range(first, first + count):
        value = random_program(seed)
        lines = disagreements(value)
        if lines:
            print(json.dumps(value, indent=1))
            print("\n".join(lines))
            return 1
        hazardous += bool(engine.judge(program(value)))
    seconds = time.monotonic() - begin
    print(f"{count} programs, {hazardous} with hazards, no difference, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
