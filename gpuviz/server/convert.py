"""``python -m gpuviz.server.convert TARGET LIMIT_S SOURCE...``: converts files for the browser.

The target is a ``.gpuviz`` file, its conclusions as ``.zip``, or of two files a page as ``.html``.

It is a separate process so that the server can kill it and limit its resources. On failure it
prints one sentence for the user to stderr.
"""

import os
import resource
import signal
import sys
from pathlib import Path

from gpuviz.conclusions.store import for_report
from gpuviz.errors import FormatError
from gpuviz.formats.gpuviz import write_conclusions
from gpuviz.recording import load
from gpuviz.recording_diff import diff
from gpuviz.report.sections import sections_table
from gpuviz.terminal import write_line

LARGEST_BYTES = 4 << 30


def main(target: Path, limit_s: float, *sources: Path) -> int:
    """Convert files; return the exit code."""
    memory_bytes = _bound(limit_s)
    try:
        if target.suffix == ".html":
            diff(*sources).report(target)
            return 0
        recording = load(sources[0])
        if target.suffix == ".zip":
            with target.open("xb") as file:
                write_conclusions(file, for_report(recording, sections_table(recording)))
        else:
            recording.save(target)
    except FormatError as error:
        problem = _sentence(f"{error.member}: {error.problem}" if error.member else error.problem)
    except FileNotFoundError:
        problem = "The file no longer exists"
    except OSError as error:
        problem = f"The file cannot be converted: {error.strerror or error}"
    except MemoryError:
        problem = f"Converting the file needs more than {memory_bytes >> 20} MiB of memory"
    else:
        return 0
    write_line(sys.stderr, f"{problem}.")
    return 1


def _sentence(text: str) -> str:
    """Return a text with a capital first letter, unless it starts with the name of a member."""
    return text[0].upper() + text[1:] if text.partition(" ")[0].isalpha() else text


def _bound(limit_s: float) -> int:
    """Limit the time, memory and disk space of this process; return the memory limit in bytes."""
    # The alarm's default action kills the process, even if the server is gone.
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    _lower(resource.RLIMIT_DATA, memory_bytes)
    _lower(resource.RLIMIT_FSIZE, LARGEST_BYTES)
    # If the system still runs out of memory, Linux kills this process instead of the server.
    Path("/proc/self/oom_score_adj").write_text("1000")
    os.nice(5)
    return memory_bytes


def _lower(limit: int, wanted: int) -> None:
    _, hard = resource.getrlimit(limit)
    lowest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(limit, (lowest, hard))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2]), *map(Path, sys.argv[3:])))
