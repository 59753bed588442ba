"""Compilation of the native core and the programs of this folder, once per compiler configuration.

Each room of the core is compiled as one source, in a third of the time of its separate files, and
all programs of a configuration load the same library of it: to link its objects takes a second.
Objects are cached in the folder of a configuration until a source changes.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "gpuviz" / "native"
COMPILER = os.environ.get("CXX", "g++")
# Rooms that need neither Python's nor CUDA's headers, except the files with these prefixes.
CORE = ("device", "record", "state", "analysis", "packing", "hazards", "allocator", "cupti", "nvtx")
CORE += ("nccl", "simulation", "replay", "formats", "clients", "torch")
NEEDS_CUDA = ("cuda_", "cupti_")


def sources_of(room: str) -> list[Path]:
    """Return the sources of a room."""
    return sorted((NATIVE / room).glob("*.cpp"))


def run(command: Iterable[str | Path], timeout: float | None = None) -> str:
    """Run a command that must succeed, and return its output."""
    arguments = [str(part) for part in command]
    ran = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=timeout)
    assert ran.returncode == 0, f"{' '.join(arguments)}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def compile_fake(source: str, library: Path) -> Path:
    """Compile a library without a GPU from a source of this folder, and return its path."""
    import nvidia

    headers = max(each.parent for root in nvidia.__path__ for each in Path(root).rglob("cupti.h"))
    command = [COMPILER, "-std=c++20", "-shared", "-fPIC", f"-I{headers}"]
    run([*command, Path(__file__).parent / source, f"-Wl,-soname,{library.name}", "-o", library])
    return library


def compile_cupti(folder: Path) -> Path:
    """Compile a CUPTI without a GPU in a folder, and return its path."""
    return compile_fake("fake_cupti.cpp", folder / "libcupti.so.13")


class Compilation:
    """Objects and programs compiled with the same flags."""

    def __init__(self, flags: Iterable[str], folder: Path) -> None:
        self.flags = ["-std=c++20", "-pthread", "-fPIC", f"-I{NATIVE}", *flags]
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def object_of(self, name: str, sources: Iterable[Path]) -> Path:
        """Return the object of some sources, compiled as one."""
        together = self.folder / f"{name}.cpp"
        text = "".join(f'#include "{source}"\n' for source in sources)
        if not together.exists() or together.read_text() != text:
            together.write_text(text)
        target = self.folder / f"{name}.o"
        known = self.folder / f"{name}.json"
        if target.exists() and known.exists():
            made = json.loads(known.read_text())
            if made["key"] == self.key(made["files"]):
                return target
        known.unlink(missing_ok=True)
        listed = self.folder / f"{name}.d"
        run([COMPILER, *self.flags, "-MMD", "-MF", listed, "-c", together, "-o", target])
        files = listed.read_text().replace("\\\n", " ").split()[1:]
        known.write_text(json.dumps({"key": self.key(files), "files": files}))
        return target

    def key(self, files: Iterable[str]) -> str:
        """Return a key of the compiler, the flags and the compiled files."""
        digest = hashlib.sha256(f"{COMPILER}{self.flags}".encode())
        for file in files:
            path = Path(file)
            digest.update(path.read_bytes() if path.exists() else b"missing")
        return digest.hexdigest()

    def core(self) -> dict[str, list[Path]]:
        """Return the sources of the core that need no other headers, by room."""
        return {
            room: [path for path in sources_of(room) if not path.name.startswith(NEEDS_CUDA)]
            for room in CORE
        }

    def objects(self, sources: Mapping[str, Iterable[Path]]) -> list[Path]:
        """Return the objects of sources by name, compiled in parallel on all cores."""
        with ThreadPoolExecutor(os.cpu_count()) as compilers:
            return list(compilers.map(self.object_of, sources.keys(), sources.values()))

    def programs(self, mains: Iterable[Path]) -> dict[str, Path]:
        """Return the programs of sources by name, linked with one library of the core."""
        core = self.core()
        made = self.objects(core | {main.stem: [main] for main in mains})
        rooms, objects = made[: len(core)], made[len(core) :]
        library = self.folder / "libcore.so"
        run([COMPILER, *self.flags, "-shared", *rooms, "-ldl", "-o", library])

        def program(compiled: Path) -> Path:
            target = compiled.with_suffix("")
            found = [library, f"-Wl,-rpath,{self.folder}"]
            run([COMPILER, *self.flags, compiled, *found, "-o", target])
            return target

        with ThreadPoolExecutor(os.cpu_count()) as linkers:
            return {target.name: target for target in linkers.map(program, objects)}
