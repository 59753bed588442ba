"""Lists the software of others that a wheel contains.

Usage:
    python scripts/third_party.py notices FILE         writes the licences
    python scripts/third_party.py sbom FILE VERSION    writes a list in the format CycloneDX

The bundler lists the packages of npm, and the libraries in the viewer's WebAssembly, in
``gpuviz/static/components.json``.
"""

import json
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
# Its templates are compiled into the native core.
NANOBIND = "nanobind"

Component = dict[str, str]


def components() -> list[Component]:
    """Return what a wheel contains: ecosystem, name, version, licence and its text."""
    bundled = json.loads((ROOT / "gpuviz/static/components.json").read_text(encoding="utf-8"))
    found = distribution(NANOBIND)
    text = next(path for path in found.files or () if path.name == "LICENSE").read_text()
    native = {"name": NANOBIND, "version": found.version, "license": "BSD-3-Clause", "text": text}
    return [{"ecosystem": "npm", **each} for each in bundled] + [{"ecosystem": "pypi", **native}]


def notices() -> str:
    """Return the licences, without versions, so that only a changed licence changes them."""
    head = (
        "gpuviz contains software of others, under these licences. The list with versions is\n"
        "sboms/gpuviz.cdx.json. Apache-2.0.txt is the Apache License that some of them name.\n"
    )
    rule = "=" * 80
    parts = [f"{rule}\n{each['name']}\n{rule}\n\n{each['text'].strip()}\n" for each in components()]
    return "\n".join([head, *parts])


def sbom(version: str) -> dict[str, Any]:
    """Return the list as CycloneDX, which two builds of the same sources share."""
    own = f"pkg:pypi/gpuviz@{version}"
    parts = [_described(each) for each in components()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "gpuviz",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "BSD-3-Clause"}}],
            }
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in parts]}],
    }


def _described(component: Component) -> dict[str, Any]:
    name, version = component["name"], component["version"]
    purl = f"pkg:{component['ecosystem']}/{quote(name, safe='/')}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [_licence(component["license"])],
    }


def _licence(text: str) -> dict[str, Any]:
    return {"expression": text} if " " in text else {"license": {"id": text}}


def main() -> None:
    """Write what the command line asks for."""
    match sys.argv[1:]:
        case ["notices", file]:
            text = notices()
        case ["sbom", file, version]:
            text = json.dumps(sbom(version), indent=2) + "\n"
        case _:
            sys.exit(__doc__)
    Path(file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
