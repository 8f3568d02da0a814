"""The approvals view with a real proxy: its calls wait for a person at the page."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from support.policy.proxy import call, proxied, recorded, write_policy
from support.servers.browser import LOOKS, visiting

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client
    from playwright.async_api import Browser, Page

    from support.servers.browser import Visitor
    from support.servers.edge import EdgeClient

pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.slow(reason="a browser and a process"),
]

UNSEEN = "/a/\u202eb\u200bc"
"""A path with characters that cannot be seen."""


async def _connect(page: Page, file: dict[str, Any]) -> None:
    await page.locator("#point-address").fill(file["address"])
    await page.locator("#point-token").fill(file["token"])
    await page.keyboard.press("Enter")


async def _check_looks(visitor: Visitor, name: str) -> None:
    """Fail if the view has a flaw in any size and theme."""
    found: list[str] = []
    for size, theme in LOOKS:
        await visitor.put_on(size, theme)
        found += await visitor.find_flaws(f"{name}-{size}-{theme}")
    assert not found


async def _approve_by_keyboard(visitor: Visitor, client: Client) -> None:
    """Read a call that appears by itself, and approve it at the second attempt."""
    page = visitor.page
    waiting = asyncio.ensure_future(call(client, "drop", path=UNSEEN))
    approve = page.get_by_role("button", name="Approve…")
    await approve.wait_for()
    article = await page.locator(".approval").inner_text()
    for told in ("alpha/drop", "so says drops", "Denied in", "Kept out of the log"):
        assert told in article
    assert "/a/" not in article
    await _check_looks(visitor, "waiting")
    await page.get_by_role("button", name="Show the value of path").press("Enter")
    assert await page.locator(".argument").inner_text() == '"/a/\\u202eb\\u200bc"'
    await approve.press("Enter")
    await _check_looks(visitor, "approve")
    await page.keyboard.press("Escape")
    assert await approve.evaluate("(element) => element === document.activeElement")
    assert not waiting.done()
    await approve.press("Enter")
    await page.get_by_role("button", name="Approve this call").press("Enter")
    assert await waiting == (False, f"done: drop {UNSEEN}")
    await page.get_by_text("Approved: alpha/drop.").wait_for()
    assert await page.evaluate("document.activeElement.textContent") == "Waiting calls"


async def _deny_with_two_clicks(page: Page, client: Client) -> None:
    """Deny a call with a second click before the answer to the first one."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    refused = asyncio.ensure_future(call(client, "drop", path="/b"))
    await page.get_by_role("button", name="Deny…").click()
    deny = page.get_by_role("button", name="Deny this call")
    await deny.evaluate("(button) => { button.click(); button.click(); }")
    is_error, text = await refused
    assert (is_error, "A person denied it" in text) == (True, True)
    await page.get_by_text("Denied: alpha/drop.").wait_for()
    assert len([url for url in sent if "DenyCall" in url]) == 1


async def _answer_too_late(visitor: Visitor, client: Client, edge: EdgeClient, file: dict[str, Any]) -> None:
    """Approve a call in the page that was denied elsewhere."""
    page = visitor.page
    late = asyncio.ensure_future(call(client, "drop", path="/c"))
    await page.get_by_role("button", name="Approve…").click()
    pending = (await _post(edge, file, "ListApprovals"))["approvals"][0]
    await _post(edge, file, "DenyCall", {name: pending[name] for name in ("approval_id", "call_hash")})
    assert (await late)[0]
    await page.get_by_role("button", name="Approve this call").click()
    await page.get_by_text("This call no longer waits").wait_for()
    visitor.complaints.clear()  # the status of the refusal
    await page.get_by_role("button", name="Cancel").click()


@pytest.mark.timeout(300)
async def test_a_person_answers_the_calls_of_a_proxy(
    browser: Browser, edge: EdgeClient, tmp_path: Path
) -> None:
    await write_policy(tmp_path)
    async with (
        proxied(tmp_path, "", "--redact", "path") as client,
        visiting(browser, edge.url) as visitor,
    ):
        page, urls = visitor.page, list[str]()
        page.on("request", lambda request: urls.append(request.url))
        file = json.loads((tmp_path / "proxy.json").read_text())
        await visitor.open("#/policies/approvals")
        await _connect(page, file | {"token": "wrong"})
        await page.get_by_text("refuses this token").wait_for()
        visitor.complaints.clear()  # the status of the refusal
        await page.get_by_role("button", name="Disconnect").click()
        await _connect(page, file)
        await page.get_by_text("No call waits for you").wait_for()
        assert not await visitor.find_violations()
        await _approve_by_keyboard(visitor, client)
        await _deny_with_two_clicks(page, client)
        await _answer_too_late(visitor, client, edge, file)
        stored = await page.evaluate(
            "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, history.state])"
        )
        assert file["token"] not in stored + page.url + "".join(urls)
        await page.reload()
        await page.locator("#point-token").wait_for()
        assert not await page.locator("#point-token").input_value()
    assert recorded(tmp_path) == [f"drop {UNSEEN}"]


async def _post(edge: EdgeClient, file: dict[str, Any], method: str, body: Any = None) -> Any:
    status, answer = await edge.post(
        f"/rpc/ApprovalService/{method}",
        body,
        **{
            "x-peripety-enforcement-point": file["address"],
            "x-peripety-enforcement-token": file["token"],
        },
    )
    assert status == 200, answer
    return answer


async def test_an_address_that_is_refused_says_what_to_do(browser: Browser, edge: EdgeClient) -> None:
    options = {"viewport": {"width": 360, "height": 740}, "locale": "ar"}
    async with visiting(browser, edge.url, **options) as visitor:
        page = visitor.page
        await visitor.open("#/policies/approvals")
        assert not await visitor.find_violations()
        for address, told in (("example.org:443", "لا يمرر الخادم"), ("127.0.0.1:1", "لا تجيب")):
            await _connect(page, {"address": address, "token": "t"})
            await page.locator(".problem-title", has_text=told).wait_for()
            assert not await visitor.find_violations()
            assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            await page.get_by_role("button", name="اقطع الاتصال").click()
        visitor.complaints.clear()  # the statuses of the refusals
