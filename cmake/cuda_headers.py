"""Prints the folder of CUDA's headers: of wheels, or else of this conda environment."""

import sys
from importlib.util import find_spec
from pathlib import Path


def folders(prefix: Path) -> list[Path]:
    """Return the folders with the headers of the driver, of the runtime and of CUPTI."""
    spec = find_spec("nvidia")
    wheels = spec.submodule_search_locations if spec else None
    found = [each for place in wheels or () for each in Path(place).glob("*/include")]
    found += prefix.glob("targets/*/include")
    return [each for each in found if (each / "cuda.h").exists() and (each / "cupti.h").exists()]


if __name__ == "__main__":
    found = folders(Path(sys.prefix))
    if not found:
        sys.exit(1)
    print(found[0])
