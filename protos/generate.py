"""Generates `clients/python/peripety/api/` from the contract in `protos/`.

    python protos/generate.py            write the generated code (`make generate`)
    python protos/generate.py --check    only compare; exit 1 when the committed code is out of date

The first folder under `protos/` is the Python package itself, so imports need no rewriting. Generated code
contains the version of its tools, and runs on that version of the runtime and later ones. The tools are
pinned in `.ci/constraints.txt`; other versions are rejected, because their output could not be compared.
"""

from __future__ import annotations

import argparse
import filecmp
import re
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path

PROTOS = Path(__file__).resolve().parent
ROOT = PROTOS.parent
CLIENT = ROOT / "clients" / "python"
PACKAGE = Path("peripety/api")
PACKAGE_DOC = '"""Generated from `protos/` by `protos/generate.py`; never edited."""\n'

TOOLS = ("grpcio-tools", "mypy-protobuf")
PLUGINS = ("protoc-gen-mypy", "protoc-gen-mypy_grpc")
MESSAGES = ("--python_out=", "--mypy_out=quiet:")
# Servicer stubs are concrete, like the generated base classes: a missing method answers UNIMPLEMENTED.
STUBS = ("--grpc_python_out=", "--mypy_grpc_out=quiet,generate_concrete_servicer_stubs:")


def check_tools() -> None:
    """Exit unless the installed tools are the pinned versions."""
    constraints = (ROOT / ".ci/constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", constraints, flags=re.MULTILINE))
    wrong = [f"{tool}=={pins[tool]} (found {version(tool)})" for tool in TOOLS if version(tool) != pins[tool]]
    if wrong:
        sys.exit("protos/generate.py needs " + ", ".join(wrong))


def protoc(target: Path, outputs: tuple[str, ...], sources: list[Path]) -> None:
    """Run the compiler over `sources` with `outputs` written under `target`."""
    scripts = Path(sysconfig.get_path("scripts"))
    subprocess.run(  # noqa: S603 - our own interpreter and our own files
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTOS}"),
            *(f"--plugin={plugin}={scripts / plugin}" for plugin in PLUGINS),
            *(f"{output}{target}" for output in outputs),
            *(source.relative_to(PROTOS).as_posix() for source in sources),
        ],
        check=True,
    )


def generate(target: Path) -> None:
    """Write the whole generated package under `target`."""
    sources = sorted((PROTOS / PACKAGE).rglob("*.proto"))
    protoc(target, MESSAGES, sources)
    protoc(
        target,
        STUBS,
        [source for source in sources if "\nservice " in source.read_text(encoding="utf-8")],
    )
    for folder in folders(target):
        (folder / "__init__.py").write_text(PACKAGE_DOC, encoding="utf-8")


def folders(root: Path) -> list[Path]:
    """Return every folder of the generated package under `root`."""
    top = root / PACKAGE
    return [top, *(path for path in top.rglob("*") if path.is_dir() and path.name != "__pycache__")]


def generated(root: Path) -> set[Path]:
    """Return the generated files under `root`, relative to it."""
    return {path.relative_to(root) for folder in folders(root) for path in folder.glob("*.py*")}


def outdated(fresh: Path) -> list[Path]:
    """Return the generated files that are missing, left over or different from those under `fresh`."""
    wanted, present = generated(fresh), generated(CLIENT)
    shared = [path.as_posix() for path in wanted & present]
    _, differing, _ = filecmp.cmpfiles(fresh, CLIENT, shared, shallow=False)
    return sorted({*map(Path, differing), *(wanted ^ present)})


def update(fresh: Path) -> None:
    """Copy the files that differ from `fresh` to the tree, and delete those that are left over."""
    for path in outdated(fresh):
        target = CLIENT / path
        if (fresh / path).exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((fresh / path).read_bytes())
        else:
            target.unlink()


def main() -> None:
    """Generate, or compare with the committed files."""
    parser = argparse.ArgumentParser(description="Generate the Python code of the contract.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when out of date")
    options = parser.parse_args()
    check_tools()
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(fresh)
        if not options.check:
            update(fresh)
        elif stale := outdated(fresh):
            sys.exit(
                "\n  clients/python/".join(
                    ["out of date, run `make generate`:", *(p.as_posix() for p in stale)]
                ),
            )


if __name__ == "__main__":
    main()
