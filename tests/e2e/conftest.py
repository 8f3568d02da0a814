"""One server for the tests that leave it running, and a client to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.servers.apps import Api
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        yield server
        assert server.stop() == 0
    assert "Traceback" not in server.log


@pytest.fixture
async def api(server: ServerProcess) -> AsyncIterator[Api]:
    async with Api.connected(server.address) as api:
        yield api
