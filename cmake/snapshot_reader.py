"""Compiles the reader of PyTorch's snapshots to WebAssembly, for the page of ``gpuviz viewer``.

Usage: python snapshot_reader.py FOLDER

FOLDER gets ``snapshot_reader.wasm``, and ``snapshot_reader.json`` with the libraries that are
linked into it and their licences. If they are out of date and the compiler, the package
``ziglang``, is not installed, they are removed.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

NATIVE = Path(__file__).parents[1] / "gpuviz" / "native"
# Rooms of the native core, and the files of each.
SOURCES = {
    "viewer": ("derived_tables", "snapshot_reader"),
    "analysis": ("event_follower",),
    "record": ("code_origin", "names"),
    "state": ("device_memory", "device_segments", "free_levels", "memory_state"),
    "formats": (
        *("byte_source", "json_text", "utf8"),
        *("pickle_machine", "pickle_reader", "pickle_value", "pickle_walk"),
        *("torch_device", "torch_events", "torch_frames", "torch_history", "torch_manifest"),
        *("torch_ranges", "torch_recording", "torch_redo", "torch_segments", "torch_settings"),
        *("torch_snapshot", "torch_stacks", "torch_tables", "torch_times"),
    ),
}
INCLUDED = re.compile(r'^#include "(.+)"', re.MULTILINE)
# Of the memory of an instance; snapshot_reader.cpp and snapshot_reader.ts name it.
MOST_BYTES = (4 << 30) - (64 << 10)  # the linker takes no 2**32
STACK_BYTES = 1 << 20
FLAGS = (
    # No WASI interface is used: the page refuses every call of it.
    *("-target", "wasm32-wasi", "-mexec-model=reactor"),
    # Exceptions end the call; snapshot_reader.cpp has what throws them.
    *("-std=c++20", "-O2", "-fexceptions", "-DNDEBUG", "-s"),
    *("-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{NATIVE}"),
    f"-Wl,--max-memory={MOST_BYTES},-z,stack-size={STACK_BYTES}",
)
# Linked libraries: their names, SPDX licences, and files of licences in ziglang's folder `lib`.
LIBRARIES = {
    # libc++ and libc++abi.
    "llvm-project": ("Apache-2.0 WITH LLVM-exception", ("libcxx/LICENSE.TXT",)),
    "musl": ("MIT", ("libc/musl/COPYRIGHT",)),
    "wasi-libc": (
        "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ("libc/wasi/LICENSE", "libc/wasi/LICENSE-MIT"),
    ),
    "zig": ("MIT", ("../LICENSE",)),  # its own run-time library
}


def sources_of(room: str) -> list[Path]:
    """Return the compiled files of a room."""
    return [NATIVE / room / f"{name}.cpp" for name in SOURCES[room]]


def room_in(folder: Path, room: str) -> Path:
    """Return a source in a folder that compiles the files of a room as one, as CMake does."""
    together = folder / f"{room}.cpp"
    together.write_text("".join(f'#include "{each}"\n' for each in sources_of(room)))
    return together


def read_with(files: list[Path]) -> set[Path]:
    """Return files of the native core, and all headers of it that they include."""
    found: set[Path] = set()
    while files:
        file = files.pop()
        if file not in found:
            found.add(file)
            files += [NATIVE / name for name in INCLUDED.findall(file.read_text(encoding="utf-8"))]
    return found


def is_current(module: Path) -> bool:
    """Return whether nothing that is compiled is newer than the module."""
    if not module.exists():
        return False
    read = read_with([each for room in SOURCES for each in sources_of(room)])
    return module.stat().st_mtime > max(each.stat().st_mtime for each in {Path(__file__), *read})


def components(compiler: Path) -> list[dict[str, str]]:
    """Return the libraries in the module, as `scripts/third_party.py` lists them."""
    packaged = version("ziglang")
    found = []
    for name, (licence, files) in LIBRARIES.items():
        texts = [(compiler / "lib" / each).read_text(encoding="utf-8").strip() for each in files]
        found.append(
            {
                "ecosystem": "generic",
                "name": name,
                "version": f"zig-{packaged}",
                "license": licence,
                "text": "\n\n".join(texts),
            }
        )
    return found


def main() -> None:
    """Compile the module if it is not up to date."""
    folder = Path(sys.argv[1])
    module = folder / "snapshot_reader.wasm"
    if is_current(module):
        return
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        for suffix in (".wasm", ".json"):
            module.with_suffix(suffix).unlink(missing_ok=True)
        print("ziglang is not installed: the viewer will not read PyTorch's snapshots")
        return
    print("Compiling the viewer's reader of snapshots (a minute the first time)")
    folder.mkdir(parents=True, exist_ok=True)
    made = module.with_suffix(".new")
    with TemporaryDirectory() as rooms:
        together = [room_in(Path(rooms), room) for room in SOURCES]
        command = [sys.executable, "-m", "ziglang", "c++", *FLAGS, "-o", made, *together]
        subprocess.run(command, check=True)  # noqa: S603
    libraries = components(Path(spec.origin).parent)
    module.with_suffix(".json").write_text(json.dumps(libraries), encoding="utf-8")
    made.replace(module)


if __name__ == "__main__":
    main()
