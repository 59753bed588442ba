"""``python -m tests.conformance FILE...``: exits 0 only when every file matches in full."""

import sys
from pathlib import Path

from tests.conformance.comparison import compare
from tests.conformance.golden import Golden
from tests.conformance.replay import replay


def main(paths: list[str]) -> int:
    """Print one line for each file and its first difference; return the exit status."""
    if not paths:
        print("usage: python -m tests.conformance FILE...", file=sys.stderr)
        return 2
    failed = False
    for path in paths:
        try:
            golden = Golden.read(Path(path))
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        counts = compare(golden, replay(golden))
        print(f"{golden.name}: {' '.join(str(count) for count in counts)}")
        differences = [count.first_difference for count in counts if count.first_difference]
        if differences:
            print(f"  first difference: {differences[0]}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
