"""A browser for tests of the page: Debian's Chromium, driven by Playwright; what it reports is checked."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, BrowserContext, Page

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SIZES = {"phone": (360, 740), "tablet": (1024, 768), "desktop": (1440, 900), "wide": (2560, 1440)}
"""Widths and heights of the pictures."""
TAKES_PICTURES = os.environ.get("PERIPETY_PICTURES") == "1"
LOOKS: list[tuple[str, Literal["light", "dark"]]] = (
    [(size, theme) for size in SIZES for theme in ("light", "dark")]
    if TAKES_PICTURES
    else [("phone", "light"), ("tablet", "dark")]
)
"""Sizes and themes that are checked: all of them for `make pictures` and `make test-all`."""
_PICTURES = Path("build/pictures")
# Violations only: axe would list every element that is in order, too.
_FIND_VIOLATIONS = """async () => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = await axe.run({ runOnly: tags, resultTypes: ["violations"] });
  const tell = (id, node) => `${id}: ${node.target} ${node.failureSummary}`;
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => tell(id, node)));
}"""


@asynccontextmanager
async def running_browser() -> AsyncIterator[Browser]:
    """Run a browser, or skip the test, or fail it if `PERIPETY_REQUIRE_SERVERS=1`."""
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        _missing("no browser is installed: apt-get install chromium")
    try:
        from playwright.async_api import async_playwright  # noqa: PLC0415 - a tool for tests that may be missing
    except ImportError:
        _missing("playwright is not installed: make test installs it")
    async with async_playwright() as tools:
        # Containers have no user namespaces for the sandbox; the pages are those of this repository.
        browser = await tools.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


def _missing(reason: str) -> NoReturn:
    if os.environ.get("PERIPETY_REQUIRE_SERVERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass
class Visitor:
    """A reader with a browser of their own.

    Attributes:
        page: the open page.
        url: address of the edge.
        complaints: messages of the console, uncaught errors, dialogs and requests to other servers.
    """

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", self._refuse)
        self.page.on("request", self._check_host)

    def _hear(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text}")

    async def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _check_host(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.complaints.append(f"request: {request.url}")

    async def open(self, hash_path: str = "") -> None:
        """Open a view."""
        await self.page.goto(f"{self.url}/{hash_path}")
        await self.page.wait_for_selector("#main")

    async def act(self, number: int = 0) -> None:
        """Choose a legal action with its first parameters, and wait until its turn is committed."""
        turns = await self.page.locator("article.turn").count()
        await self.page.locator(".action-button[aria-disabled=false]").nth(number).click()
        form = self.page.locator(".action.open button.primary")
        if await form.count():
            await form.click()
        await self.wait_for_turn(turns + 1)

    async def wait_for_turn(self, turn: int) -> None:
        """Wait until a turn is committed, and the next one can be played."""
        await self.page.wait_for_selector(f"#turn-{turn}:not(.open)")
        await self.page.wait_for_selector(".actions-panel:not(:has([aria-disabled=true]))")

    async def find_violations(self) -> list[str]:
        """Return what axe finds against WCAG 2.2 AA."""
        from axe_playwright_python.base import AXE_SCRIPT  # noqa: PLC0415 - a tool for tests that may be missing

        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE_SCRIPT)
        found: list[str] = await self.page.evaluate(_FIND_VIOLATIONS)
        return found

    async def find_flaws(self, look: str) -> list[str]:
        """Take a picture, and return what axe finds, and whether the view is wider than the window."""
        await self.take_picture(look)
        found = await self.find_violations()
        wide = await self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            found.append(f"{wide} pixels wider than the window")
        return [f"{look}: {flaw}" for flaw in found]

    async def check_harmless(self) -> None:
        """Fail if a text was executed, became an element, or can reorder the text around it."""
        assert await self.page.evaluate("window.executed === undefined")
        made = self.page.locator("#main").locator(
            "script, img, iframe, object, embed, style, a[href^=javascript]"
        )
        assert await made.count() == 0
        # Marks that reorder the text around them, and terminal sequences, are gone.
        assert not set("\u202e\u2066\x1b\x07") & set(await self.page.locator("#main").inner_text())

    async def put_on(self, size: str, theme: Literal["light", "dark"]) -> None:
        """Change the size of the window, and the theme that the system prefers."""
        width, height = SIZES[size]
        await self.page.set_viewport_size({"width": width, "height": height})
        await self.page.emulate_media(color_scheme=theme)

    async def take_picture(self, name: str) -> None:
        """Store a picture of the window in `build/pictures`, with `PERIPETY_PICTURES=1` only."""
        if TAKES_PICTURES:
            await self.page.screenshot(path=_PICTURES / f"{name}.png", animations="disabled")


@asynccontextmanager
async def visiting(browser: Browser, url: str, **options: Any) -> AsyncIterator[Visitor]:
    """Open a page with an empty profile, and fail at its end if it complained."""
    settings = {"viewport": {"width": 1440, "height": 900}, "locale": "en", "reduced_motion": "reduce"}
    context: BrowserContext = await browser.new_context(**(settings | options))
    try:
        visitor = Visitor(await context.new_page(), url)
        visitor.page.set_default_timeout(60_000)
        yield visitor
        assert not visitor.complaints
    finally:
        await context.close()


class CuttingProxy:
    """A TCP relay that cuts each connection after a number of bytes from the server.

    Args:
        port: port of the server.
        limits: bytes that pass before each cut, one for each connection; later connections are not cut.
    """

    def __init__(self, port: int, limits: list[int]) -> None:
        self._port = port
        self._limits = limits
        self._relays: set[asyncio.Task[None]] = set()
        self.cuts = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Relay until the block ends, and yield the port."""
        server = await asyncio.start_server(self._start, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for relay in self._relays:
                relay.cancel()
            await asyncio.gather(*self._relays, return_exceptions=True)

    def _start(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.ensure_future(self._relay(reader, writer))
        self._relays.add(relay)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, server = await asyncio.open_connection("127.0.0.1", self._port)
        requests = asyncio.ensure_future(_pump(reader, server))
        answers = asyncio.ensure_future(self._answer(upstream, writer))
        try:
            await asyncio.wait({requests, answers}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            requests.cancel()
            answers.cancel()
            await asyncio.gather(requests, answers, return_exceptions=True)
            for end in (writer, server):
                end.close()
                with suppress(ConnectionError):
                    await end.wait_closed()

    async def _answer(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay answers, and return early where the connection is to be cut."""
        left: int | None = None
        recent = b""
        while data := await upstream.read(64):
            recent = (recent + data)[-256:]
            if left is None and b"content-type: text/event-stream" in recent and self._limits:
                left = self._limits.pop(0)
            writer.write(data if left is None else data[:left])
            await writer.drain()
            if left is not None:
                left -= len(data)
                if left <= 0:
                    self.cuts += 1
                    return


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
