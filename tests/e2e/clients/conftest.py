"""One server with a scripted model for the tests of all client libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def scripted_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    script = ROOT / "clients" / "samples" / "script.toml"
    settings = {"MODEL_PROVIDER": "scripted", "PERIPETY_SCRIPT": str(script)}
    with ServerProcess(tmp_path_factory.mktemp("scripted"), settings=settings) as server:
        yield server
