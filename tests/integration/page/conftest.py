"""One server and one browser for all tests of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from support.repo.repository import ROOT
from support.servers.browser import running_browser
from support.servers.edge import EdgeClient, serving_edge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest
    from playwright.async_api import Browser


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def edge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EdgeClient]:
    """The edge in front of all services, without a model, with the tasks of the examples."""
    tasks = ROOT / "examples" / "testgen"
    async with serving_edge(tmp_path_factory.mktemp("page"), testgen_tasks=tasks) as client:
        yield client


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def browser() -> AsyncIterator[Browser]:
    """A browser; the tests are skipped, or fail, on a machine without one."""
    async with running_browser() as found:
        yield found
