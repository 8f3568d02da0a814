"""The views of a new server: placeholders while they load, and texts where there is nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from support.servers.browser import visiting
from support.servers.edge import serving_edge

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser

pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.slow(reason="a browser"),
]

VIEWS = ("#/", "#/inspect", "#/policies", "#/tests", "#/usage")


async def test_an_empty_view_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    found: list[str] = []
    async with serving_edge(tmp_path) as edge, visiting(browser, edge.url) as visitor:
        page = visitor.page
        answered = asyncio.Event()

        async def answer_later(route: Any) -> None:
            await answered.wait()
            await route.continue_()

        await page.route("**/rpc/**", answer_later)
        for view in VIEWS:
            answered.clear()
            await visitor.open(view)
            await page.locator(".skeleton").first.wait_for()
            answered.set()
            await page.locator(".empty").first.wait_for()
            await page.wait_for_function("() => !document.querySelector('.skeleton')")
            # A title and the way on.
            assert all(len(text.splitlines()) >= 2 for text in await page.locator(".empty").all_inner_texts())
            found += [f"{view}: {violation}" for violation in await visitor.find_violations()]
        await page.unroute_all(behavior="ignoreErrors")
    assert not found
