"""The distributions as a stranger gets them: built once, installed into an empty environment."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.repo.repository import ROOT, Distribution, Installation

# Runtime requirements of the engine. The native core is added as well, if it is built.
LENT = ("pydantic", "jsonschema-rs", "jiter")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    return build(ROOT, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def engine_alone(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    return build(ROOT / "simcore", tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="session")
def client_alone(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    return build(ROOT / "clients" / "python", tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="session")
def client_installation(client_alone: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    installed = empty_environment(tmp_path_factory.mktemp("client-installed"))
    lend(installed, "grpcio", "googleapis-common-protos")
    install(installed, client_alone)
    return installed


@pytest.fixture(scope="session")
def installation(
    server: Distribution,
    engine_alone: Distribution,
    client_alone: Distribution,
    tmp_path_factory: pytest.TempPathFactory,
) -> Installation:
    installed = empty_environment(tmp_path_factory.mktemp("installed"))
    # Such a path lends packages, but not the .pth files beside them: the editable install stays out.
    (installed.site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    install(installed, engine_alone, client_alone, server)
    return installed


@pytest.fixture(scope="session")
def engine_installation(engine_alone: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    installed = empty_environment(tmp_path_factory.mktemp("engine-installed"))
    lend(installed, *LENT, "peripety-simcore")
    install(installed, engine_alone)
    return installed


def build(project: Path, out: Path) -> Distribution:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=project, check=True)
    return Distribution(*out.glob("*.whl"), *out.glob("*.tar.gz"))


def empty_environment(home: Path) -> Installation:
    venv.create(home, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    return Installation(home, site)


def install(installation: Installation, *distributions: Distribution) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(installation.home / "bin" / "python")]
    wheels = [str(distribution.wheel) for distribution in distributions]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", *wheels], check=True)


def lend(installation: Installation, *names: str) -> None:
    """Link distributions of the tests' environment, and what they require, into another one."""
    pending, done = list(names), set[str]()
    while pending:
        name = canonicalize_name(pending.pop())
        try:
            lent = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # the native core is optional
        done.add(name)
        needs = [Requirement(line) for line in lent.requires or ()]
        pending += [
            need.name
            for need in needs
            if (need.marker is None or need.marker.evaluate({"extra": ""}))
            and canonicalize_name(need.name) not in done
        ]
        for top in {file.parts[0] for file in lent.files or () if file.parts[0] not in {"..", "__pycache__"}}:
            target = installation.site / top
            if not target.exists():
                target.symlink_to(Path(str(lent.locate_file(top))))
