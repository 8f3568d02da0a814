"""Distributions can be installed elsewhere and lack nothing: the engine alone, and the server."""

from __future__ import annotations

import json
import re
import tarfile
import tomllib
import zipfile
from email.parser import BytesHeaderParser
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement

from peripety import engine
from peripety.version import __version__
from support.repo.repository import ROOT, tracked_files

if TYPE_CHECKING:
    from pathlib import Path

    from support.repo.repository import Distribution, Installation

pytestmark = pytest.mark.slow(reason="builds the distributions, and installs them in new environments")

SERVER_SOURCES = ROOT / "services"
ENGINE_SOURCES = ROOT / "simcore" / "python"
CLIENT_SOURCES = ROOT / "clients" / "python"

IMPORT_ALL = """
import pkgutil, peripety
names = [module.name for module in pkgutil.walk_packages(peripety.__path__, "peripety.")]
for name in names:
    if not name.endswith(("._native", ".__main__")):
        __import__(name)
print(*peripety.__path__, len(names))
"""

LOADED = """
import sys, time
started = time.perf_counter()
import peripety.client
print(f"import in {(time.perf_counter() - started) * 1000:.0f} ms", file=sys.stderr)
print(*sys.modules)
"""

ABSENT = ("grpc", "sqlalchemy", "typer", "peripety.core")
GOLDEN = (ROOT / "tests" / "conformance" / "certificate.json").read_bytes().strip()
CERTIFY = """
import importlib.util, json, sys
from peripety import engine
from peripety.certification.certificate import certify_document
from peripety.certification.options import CertificateOptions
from peripety.certification.types import encode

document = open(sys.argv[1], "rb").read()
options = json.loads(sys.argv[2])
program = engine.compile(document)
certificate = certify_document(document, CertificateOptions(**options))
print(json.dumps({
    "core": engine.BACKEND,
    "valid": not engine.validate(document),
    "invalid": [finding.code for finding in engine.validate(b'{"id": 1}')],
    "lost": program.dry_run(runs=100, seed=options["seed"], horizon=options["horizon"]).lost,
    "certificate": encode(certificate).decode(),
    "absent": [name for name in sys.argv[3:] if not importlib.util.find_spec(name)],
}))
"""


def test_the_distributions_have_one_version_and_require_it() -> None:
    server, engine_alone, native, client = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
        for folder in (".", "simcore", "simcore/crates/simcore-py", "clients/python")
    )
    assert client["project"]["version"] == __version__
    assert f"peripety-client=={__version__}" in server["project"]["dependencies"]
    assert native["project"]["version"] == __version__
    assert engine_alone["project"]["optional-dependencies"]["native"] == [f"peripety-simcore=={__version__}"]
    assert f"peripety-engine=={__version__}" in server["project"]["dependencies"]
    assert server["project"]["optional-dependencies"]["native"] == [f"peripety-engine[native]=={__version__}"]


def test_the_clients_of_other_languages_have_the_same_version() -> None:
    clients = ROOT / "clients"
    package, lock = (
        json.loads((clients / "typescript" / name).read_text("utf-8"))
        for name in ("package.json", "package-lock.json")
    )
    crate = tomllib.loads((clients / "rust" / "Cargo.toml").read_text("utf-8"))
    bridge = json.loads((clients / "ink" / "package.json").read_text("utf-8"))
    project, engines, stubs = (
        re.search(
            r"^ +<version>(.+)</version>", (clients / path).read_text("utf-8"), re.MULTILINE | re.IGNORECASE
        )
        for path in ("java/pom.xml", "csharp/Peripety.Client.csproj", "csharp/api/Peripety.Api.csproj")
    )
    assert project is not None
    assert engines is not None
    assert stubs is not None
    versions = {
        "csharp": engines[1],
        "csharp stubs": stubs[1],
        "ink": bridge["version"],
        "typescript": package["version"],
        "typescript lock": lock["version"],
        "rust": crate["package"]["version"],
        "java": project[1],
    }
    assert versions == dict.fromkeys(versions, __version__)


def test_the_wheel_holds_every_file_of_the_package(server: Distribution) -> None:
    packed = set(zipfile.ZipFile(server.wheel).namelist())
    assert files_of(SERVER_SOURCES) <= packed
    assert "peripety/py.typed" in packed


def test_the_wheel_of_the_engine_holds_every_file_of_it(engine_alone: Distribution) -> None:
    packed = set(zipfile.ZipFile(engine_alone.wheel).namelist())
    assert files_of(ENGINE_SOURCES) <= packed
    assert {"peripety/engine/py.typed", "peripety/engine/schemas/scenario_spec.schema.json"} <= packed


def test_the_wheel_of_the_client_holds_every_file_of_it(client_alone: Distribution) -> None:
    packed = set(zipfile.ZipFile(client_alone.wheel).namelist())
    assert files_of(CLIENT_SOURCES) <= packed
    assert {
        f"peripety/{name}" for name in ("api/py.typed", "client/py.typed", "client/service-config.json")
    } <= packed


def files_of(sources: Path) -> set[str]:
    package = sources / "peripety"
    return {str(path.relative_to(sources)) for path in tracked_files() if path.is_relative_to(package)}


def test_the_wheels_hold_nothing_else_and_share_no_file(
    server: Distribution,
    engine_alone: Distribution,
    client_alone: Distribution,
) -> None:
    names = {
        server.wheel: "peripety",
        engine_alone.wheel: "peripety_engine",
        client_alone.wheel: "peripety_client",
    }
    packed = {wheel: zipfile.ZipFile(wheel).namelist() for wheel in names}
    for wheel, name in names.items():
        assert {file.split("/")[0] for file in packed[wheel]} == {
            "peripety",
            f"{name}-{__version__}.dist-info",
        }
        assert not [file for file in packed[wheel] if "__pycache__" in file or file.endswith(".so")]
        assert "peripety/__init__.py" not in packed[wheel]
        assert f"{name}-{__version__}.dist-info/licenses/LICENSE" in packed[wheel]
    every = [file for files in packed.values() for file in files]
    assert len(every) == len(set(every))


def test_the_wheel_of_the_engine_requires_three_libraries(engine_alone: Distribution) -> None:
    with zipfile.ZipFile(engine_alone.wheel) as archive:
        text = archive.read(f"peripety_engine-{__version__}.dist-info/METADATA")
    required = BytesHeaderParser().parsebytes(text).get_all("Requires-Dist", [])
    needs = [Requirement(line) for line in required]
    assert {need.name for need in needs if not need.marker} == {"jiter", "jsonschema-rs", "pydantic"}


def test_the_wheel_of_the_client_requires_three_libraries(client_alone: Distribution) -> None:
    with zipfile.ZipFile(client_alone.wheel) as archive:
        text = archive.read(f"peripety_client-{__version__}.dist-info/METADATA")
    required = BytesHeaderParser().parsebytes(text).get_all("Requires-Dist", [])
    assert {Requirement(line).name for line in required} == {"googleapis-common-protos", "grpcio", "protobuf"}


def test_the_sdist_can_be_built_and_tested_from(server: Distribution) -> None:
    names = names_in(server.sdist)
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"} <= names
    assert {"services/peripety/py.typed", "tests/nouns.txt", "protos/generate.py"} <= names
    assert {"simcore/pyproject.toml", "simcore/python/peripety/version.py"} <= names


def test_the_sdist_of_the_engine_can_be_built_from(engine_alone: Distribution) -> None:
    names = names_in(engine_alone.sdist)
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "python/peripety/version.py"} <= names


def test_the_sdist_of_the_client_can_be_built_from(client_alone: Distribution) -> None:
    names = names_in(client_alone.sdist)
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "peripety/client/__init__.py"} <= names


def names_in(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.mark.parametrize("folder", ["simcore", "clients/python"])
def test_all_distributions_have_the_same_license(folder: str) -> None:
    assert (ROOT / folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("name", ["googleapis-common-protos", "grpcio", "protobuf"])
def test_client_and_server_require_the_same_versions(name: str) -> None:
    server, client = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "dependencies"
        ]
        for folder in (".", "clients/python")
    )
    assert {line for line in server if line.startswith(f"{name}>")} == {
        line for line in client if line.startswith(f"{name}>")
    }


def test_the_client_alone_loads_nothing_that_a_call_does_not_need(client_installation: Installation) -> None:
    done = client_installation.run("python", "-W", "error", "-c", LOADED)
    loaded = set(done.stdout.split())
    assert "grpc" in loaded
    assert not [name for name in loaded if name.startswith(("peripety.api", "google.protobuf", "google.rpc"))]
    assert not {"pydantic", "peripety.engine", "peripety.errors", "sqlalchemy", "aiohttp"} & loaded


def test_the_client_alone_verifies_a_transcript_and_has_every_stub(client_installation: Installation) -> None:
    transcript = ROOT / "tests" / "data" / "transcripts" / "won.jsonl"
    verify = "import sys; from peripety.client import *; print(verify_transcript(sys.argv[1]).turns)"
    done = client_installation.run("python", "-W", "error", "-c", verify, str(transcript))
    assert int(done.stdout) == transcript.read_bytes().count(b"\n") - 3
    path, count = client_installation.run("python", "-W", "error", "-c", IMPORT_ALL).stdout.split()
    assert path.startswith(str(client_installation.site))
    assert int(count) > 20


@pytest.mark.parametrize(
    "core",
    [
        "python",
        pytest.param(
            "native",
            marks=pytest.mark.skipif(
                find_spec("peripety_simcore") is None, reason="the native core is not built"
            ),
        ),
    ],
)
def test_the_engine_alone_validates_dry_runs_and_certifies(
    engine_installation: Installation,
    core: str,
) -> None:
    path, options = ROOT / "examples" / "scenario.json", json.loads(GOLDEN)["options"]
    given = (str(path), json.dumps(options), *ABSENT)
    done = engine_installation.run("python", "-W", "error", "-c", CERTIFY, *given, core=core)
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["core"], found["valid"], found["absent"]) == (core, True, list(ABSENT))
    assert found["invalid"]
    here = engine.compile(path.read_bytes())
    assert found["lost"] == here.dry_run(runs=100, seed=options["seed"], horizon=options["horizon"]).lost
    assert found["certificate"].encode() == GOLDEN


def test_every_module_of_the_engine_can_be_imported_alone(engine_installation: Installation) -> None:
    path, count = engine_installation.run("python", "-W", "error", "-c", IMPORT_ALL).stdout.split()
    assert path.startswith(str(engine_installation.site))
    assert int(count) > 20


def test_the_installed_command_names_its_version_and_core(installation: Installation) -> None:
    said = installation.run("peripety", "--version").stdout
    assert said == f"peripety {__version__} (core: {engine.BACKEND} {engine.BACKEND_VERSION})\n"


def test_the_installed_package_offers_its_plugin_to_pytest(installation: Installation) -> None:
    listing = "from importlib.metadata import entry_points; print(*entry_points(group='pytest11').names)"
    assert "peripety.pytest_plugin" in installation.run("python", "-c", listing).stdout.split()


def test_every_module_can_be_imported_where_it_was_installed(installation: Installation) -> None:
    path, count = installation.run("python", "-W", "error", "-c", IMPORT_ALL).stdout.split()
    assert path.startswith(str(installation.site))
    assert int(count) > 20


def test_python_dash_m_is_the_command(installation: Installation) -> None:
    said = installation.run("python", "-m", "peripety", "--version").stdout
    assert said == installation.run("peripety", "--version").stdout


def test_the_reference_core_can_be_asked_for(installation: Installation) -> None:
    code = "from peripety import engine; print(engine.BACKEND)"
    assert installation.run("python", "-c", code, core="python").stdout == "python\n"
