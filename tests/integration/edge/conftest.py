"""One server for all tests of the edge: they only read each other's scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from support.servers.edge import EdgeClient, serving_edge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def edge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EdgeClient]:
    """The edge in front of all services, without a model."""
    async with serving_edge(tmp_path_factory.mktemp("edge")) as client:
        yield client
