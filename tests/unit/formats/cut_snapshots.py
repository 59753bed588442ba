"""``python -m tests.unit.formats.cut_snapshots FOLDER``: make the snapshots of ``data``.

FOLDER has ``*.pickle.xz`` of ``torch.cuda.memory._snapshot()``. Of each trace the last events are
kept, of each stack the innermost frames, of files their last folder; segments stay whole.
"""

import lzma
import pickle
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
EVENTS = 120
FRAMES = 6


def cut(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot whose trace begins late."""
    stacks: dict[str, list[Any]] = {}

    def innermost(entry: dict[str, Any]) -> dict[str, Any]:
        frames = [
            frame | {"filename": "/".join(Path(frame["filename"]).parts[-2:])}
            for frame in entry.get("frames", [])[:FRAMES]
        ]
        return entry | {"frames": stacks.setdefault(repr(frames), frames)}

    return snapshot | {
        "segments": [
            innermost(segment) | {"blocks": [innermost(block) for block in segment["blocks"]]}
            for segment in snapshot["segments"]
        ],
        "device_traces": [
            [innermost(event) for event in trace[-EVENTS:]] for trace in snapshot["device_traces"]
        ],
        "external_annotations": snapshot["external_annotations"][-4:],
    }


def main() -> None:
    for source in sorted(Path(sys.argv[1]).glob("*.pickle.xz")):
        with lzma.open(source) as file:
            whole = pickle.load(file)  # noqa: S301 - made by whoever calls this
        target = DATA / source.name.removesuffix(".xz")
        target.write_bytes(pickle.dumps(cut(whole), 4))


if __name__ == "__main__":
    main()
