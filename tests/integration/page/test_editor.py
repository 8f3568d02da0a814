"""The editor of specifications: suggestions from the schema, odds as you type, versions side by side."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT
from support.servers.browser import visiting

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from support.servers.browser import Visitor
    from support.servers.edge import EdgeClient

pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.slow(reason="a browser"),
]

DRAFT = (
    '{"spec_version": "1.0", "state": {"a": 1, "b": {"c": 2}}, "actions": [{"effects": [{"op": "inc", }]}]}'
)


async def _open_editor(visitor: Visitor, edge: EdgeClient) -> None:
    """Open the editor by the keyboard."""
    spec = json.loads((ROOT / "examples" / "scenario.json").read_text(encoding="utf-8"))
    _, compiled = await edge.post(f"/scenarios/{spec['id']}/compile", spec)
    await visitor.open(f"#/inspect/{compiled['scenario_id']}")
    page = visitor.page
    await page.get_by_role("tab", name="Rules").focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    await page.wait_for_selector(".editor-state .good-text")


async def _put_caret(visitor: Visitor, after: str) -> None:
    put = (
        "(box, text) => { const at = box.value.indexOf(text) + text.length;"
        " box.focus(); box.setSelectionRange(at, at); }"
    )
    await visitor.page.locator(".editor-text").evaluate(put, after)


async def _wait_for_suggestions(visitor: Visitor, expected: list[str]) -> None:
    listed = (
        "expected => [...document.querySelectorAll('.suggestion code')]"
        ".map(one => one.innerText).join() === expected"
    )
    await visitor.page.wait_for_function(listed, arg=",".join(expected))


async def test_the_schema_completes_what_is_written(browser: Browser, edge: EdgeClient) -> None:
    async with visiting(browser, edge.url) as visitor:
        await _open_editor(visitor, edge)
        page, box = visitor.page, visitor.page.locator(".editor-text")
        await box.fill(DRAFT)
        await _put_caret(visitor, '"inc", ')
        await page.keyboard.press("Control+Space")
        names = page.locator(".suggestion code")
        # The operation selects the alternative of the schema.
        await _wait_for_suggestions(visitor, ["path", "value"])
        assert not await visitor.find_violations()
        await page.keyboard.press("Enter")
        await _wait_for_suggestions(visitor, [])
        assert '{"op": "inc", "path": ""}' in await box.input_value()
        # Paths are those of the last valid document.
        await page.keyboard.type("state.")
        await _wait_for_suggestions(visitor, ["state.a", "state.b.c"])
        await page.keyboard.press("ArrowDown")
        await page.wait_for_selector(".suggestion:nth-child(2)[aria-selected=true]")
        await page.keyboard.press("Tab")
        await _wait_for_suggestions(visitor, [])
        assert '"path": "state.b.c"}' in await box.input_value()
        await _put_caret(visitor, '"op": "')
        await page.keyboard.press("Control+Space")
        await page.locator(".suggestion", has_text="dec").first.wait_for()
        assert {"set", "dec"} <= set(await names.all_inner_texts())
        await page.keyboard.press("Escape")
        await _wait_for_suggestions(visitor, [])
        # The field has its own history.
        await page.keyboard.press("Control+z")
        assert '"path": "state."' in await box.input_value()


async def test_odds_and_differences_follow_the_text(browser: Browser, edge: EdgeClient) -> None:
    async with visiting(browser, edge.url) as visitor:
        await _open_editor(visitor, edge)
        page, box = visitor.page, visitor.page.locator(".editor-text")
        before = await page.locator(".shares-legend").inner_text()
        spec = json.loads(await box.input_value())
        spec["random_events"] = spec["random_events"][:1]
        spec["name"] = "Another name"
        await box.fill(json.dumps(spec, indent=2))
        changed = (
            "before => ![before, undefined].includes(document.querySelector('.shares-legend')?.innerText)"
        )
        await page.wait_for_function(changed, arg=before)
        shares = re.findall(r"(\d+)%", await page.locator(".shares-legend").inner_text())
        assert len(shares) == 3
        assert sum(map(int, shares)) == 100
        await page.get_by_label("Before").select_option(index=1)
        rows = page.locator(".sides .changed")
        await rows.first.wait_for()
        assert any("Another name" in text for text in await rows.locator(".new").all_inner_texts())
        assert not any("Another name" in text for text in await rows.locator(".old").all_inner_texts())
        left, right = (
            await rows.first.locator(".old").bounding_box(),
            await rows.first.locator(".new").bounding_box(),
        )
        assert left
        assert right
        assert (left["y"], left["width"]) == (right["y"], right["width"])
        assert left["x"] + left["width"] <= right["x"]
        assert not await visitor.find_violations()
