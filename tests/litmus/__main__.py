"""``python -m tests.litmus FILE...``: exits 0 only when every program is judged as expected."""

import sys
from pathlib import Path

from tests.litmus.comparison import differences
from tests.litmus.engine import judge
from tests.litmus.program import Program, read


def main(paths: list[str]) -> int:
    """Print what was expected and found in each program; return the exit status."""
    if not paths:
        print("usage: python -m tests.litmus FILE...", file=sys.stderr)
        return 2
    wrong = count = 0
    for path in paths:
        try:
            programs = read(Path(path))
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr)
            wrong += 1
            continue
        count += len(programs)
        wrong += sum(not is_right(program) for program in programs)
    print(f"{count} programs, {wrong} wrong" if wrong else f"{count} programs, all right")
    return 1 if wrong or not count else 0


def is_right(program: Program) -> bool:
    """Judge a program, print expected and found, and return whether they match."""
    try:
        found = judge(program)
    except ValueError as error:
        print(error, file=sys.stderr)
        return False
    found_differences = differences(found, program.hazards, program.also)
    print(f"{'WRONG' if found_differences else 'right'} {program.name}")
    for title, hazards in (("expected", program.hazards), ("found", found)):
        print(f"  {title}: {'; '.join(map(str, hazards)) or 'nothing'}")
    for line in found_differences:
        print(f"  {line}")
    return not found_differences


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
