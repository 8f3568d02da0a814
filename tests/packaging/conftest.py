"""The distributions as a stranger gets them: built once, installed into an empty environment."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from support.repo.repository import ROOT, Distributions, Installation


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT, check=True)
    return Distributions(*out.glob("*.whl"), *out.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def installation(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    # Such a path lends packages, but not the .pth files beside them: the editable install stays out.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-index", "--no-deps", str(distributions.wheel)],
        check=True,
    )
    return Installation(home, site)
