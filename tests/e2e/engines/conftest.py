"""One server with a scripted model for the tests of all game engines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT
from support.servers.engine_player import Edge, compiled_edge
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _is_wanted() -> None:
    if "PERIPETY_ENGINES" not in os.environ:
        pytest.skip("game engines: only `make test-engines` tests them")


@pytest.fixture(scope="session")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    script = ROOT / "clients" / "samples" / "script.toml"
    settings = {"MODEL_PROVIDER": "scripted", "PERIPETY_SCRIPT": str(script)}
    with ServerProcess(tmp_path_factory.mktemp("edge"), settings=settings) as server:
        assert server.process.stdout is not None
        url = server.process.stdout.readline().split()[-1].rstrip("/")
        yield compiled_edge(url)
