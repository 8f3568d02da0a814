"""Generates `services/peripety/api/` from the contract in `protos/`.

    python protos/generate.py            write the generated code (`make generate`)
    python protos/generate.py --check    only compare; exit 1 when the committed code is out of date

The first folder under `protos/` is the Python package itself, so imports need no rewriting. The output carries the
versions of its tools; it is only comparable when they are the pinned ones, so others are refused.
"""

from __future__ import annotations

import argparse
import filecmp
import sys
import tempfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

PROTOS = Path(__file__).resolve().parent
SERVICES = PROTOS.parent / "services"
PACKAGE = Path("peripety/api")

# The same pins stand in .ci/constraints.txt. Generated code runs on its own runtime versions and later ones.
TOOLS = {"grpcio-tools": "1.85.1", "mypy-protobuf": "5.1.0"}
OUTPUTS = ("--python_out", "--grpc_python_out", "--mypy_out", "--mypy_grpc_out")

PACKAGE_DOC = '"""The contract as Python: generated from `protos/` by `protos/generate.py`, never edited."""\n'


def check_tools() -> None:
    """Refuse tools whose output would differ from the committed one."""
    wrong = [f"{tool}=={want} (found {have})" for tool, want in TOOLS.items() if (have := version(tool)) != want]
    if wrong:
        sys.exit("protos/generate.py needs " + ", ".join(wrong))


def generate(target: Path) -> None:
    """Write the whole generated package under `target`."""
    from grpc_tools import protoc  # noqa: PLC0415 - the version is checked before the tool is loaded

    sources = sorted(path.relative_to(PROTOS).as_posix() for path in (PROTOS / PACKAGE).rglob("*.proto"))
    well_known = files("grpc_tools").joinpath("_proto")
    arguments = ["protoc", f"-I{PROTOS}", f"-I{well_known}", *(f"{out}={target}" for out in OUTPUTS)]
    if code := protoc.main([*arguments, *sources]):
        sys.exit(code)
    for folder in packages(target):
        (folder / "__init__.py").write_text(PACKAGE_DOC, encoding="utf-8")


def packages(root: Path) -> list[Path]:
    """Return every folder of the generated package under `root`, the top one first."""
    top = root / PACKAGE
    return [top, *sorted(path for path in top.rglob("*") if path.is_dir() and path.name != "__pycache__")]


def generated_files(root: Path) -> set[Path]:
    """Return the generated files under `root`, relative to it."""
    return {path.relative_to(root) for folder in packages(root) for path in folder.glob("*.py*")}


def differences(fresh: Path) -> list[str]:
    """Return the generated files that are missing, left over or different in the tree."""
    wanted, present = generated_files(fresh), generated_files(SERVICES)
    stale = {
        path
        for path in wanted & present
        if not filecmp.cmp(fresh / path, SERVICES / path, shallow=False)
    }
    return sorted(path.as_posix() for path in stale | (wanted ^ present))


def write(fresh: Path) -> None:
    """Bring the tree in line with `fresh`, files that are no longer generated removed."""
    for path in generated_files(SERVICES) - generated_files(fresh):
        (SERVICES / path).unlink()
    for path in generated_files(fresh):
        (SERVICES / path).parent.mkdir(parents=True, exist_ok=True)
        (SERVICES / path).write_bytes((fresh / path).read_bytes())


def main() -> None:
    """Generate, or compare with what is committed."""
    parser = argparse.ArgumentParser(description="Generate the Python code of the contract.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when out of date")
    options = parser.parse_args()
    check_tools()
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(fresh)
        if not options.check:
            write(fresh)
        elif stale := differences(fresh):
            sys.exit("out of date, run `make generate`:\n  " + "\n  ".join(stale))


if __name__ == "__main__":
    main()
