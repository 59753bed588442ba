"""Reports of the documentation's gallery, made from the recordings of the repository.

Usage: python -m scripts.generate_gallery FOLDER. The site's build writes them beside its pages.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gpuviz

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "gpuviz" / "commands" / "recordings"
TESTED = ROOT / "tests" / "unit"


def _report(recording: Path, path: Path) -> None:
    gpuviz.load(recording).report(path, overwrite=True)


def _difference(before: Path, after: Path, path: Path) -> None:
    gpuviz.diff(before, after).report(path, overwrite=True)


# The reports by their file names.
REPORTS: dict[str, Callable[[Path], None]] = {
    "kmeans.html": partial(_report, SHIPPED / "kmeans.gpuviz"),
    "image_pipeline.html": partial(_report, SHIPPED / "image_pipeline.gpuviz"),
    "torch_training.html": partial(_report, TESTED / "two_gpus/data/training_hidden.gpuviz"),
    "out_of_memory.html": partial(_report, TESTED / "formats/data/oom.pickle"),
    "hazards.html": partial(_report, TESTED / "two_gpus/data/hazard_direct.gpuviz"),
    "before_and_after.html": partial(
        _difference, SHIPPED / "one_pool_separate.gpuviz", SHIPPED / "one_pool_shared.gpuviz"
    ),
}


def write(folder: Path) -> None:
    """Write every report into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, write_report in REPORTS.items():
        write_report(folder / name)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
