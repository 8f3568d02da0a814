"""The files of the page: complete, small, local, and without a way to make markup of a text."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import peripety.edge.app as edge_app

if TYPE_CHECKING:
    from support.servers.edge import EdgeClient

IN_PACKAGE_LOOP = pytest.mark.asyncio(loop_scope="package")
FOLDER = Path(edge_app.__file__).parent / "static" / "page"
BASE = "/static/edge/page/"
SOURCES = Path("clients/web/src")
MAX_SCRIPT_BYTES = 150 * 1024
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function|srcdoc"
)


@IN_PACKAGE_LOOP
async def test_the_page_and_its_files_are_served(edge: EdgeClient) -> None:
    async with edge.http.get(f"{edge.url}/") as response:
        page = await response.text()
        policy = response.headers["content-security-policy"]
    assert response.headers["content-type"].startswith("text/html")
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    files = re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page)
    assert files
    for file in files:
        assert file.startswith(BASE)
        async with edge.http.get(edge.url + file) as response:
            assert response.status == 200
            assert response.headers["cache-control"] == "no-cache"
            if file.endswith(("/index.js", ".css")):
                assert response.headers["content-encoding"] == "gzip"
            entity = response.headers["etag"]
        async with edge.http.get(edge.url + file, headers={"if-none-match": entity}) as response:
            assert response.status == 304


@IN_PACKAGE_LOOP
async def test_the_description_for_people_has_its_files(edge: EdgeClient) -> None:
    async with edge.http.get(f"{edge.url}/docs") as response:
        page = await response.text()
    for file in re.findall(r'(?:src|href)="([^"]+)"', page):
        async with edge.http.get(edge.url + file) as response:
            assert response.status == 200


def test_the_script_of_a_game_is_small() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    scripts = {Path(file).name for file in re.findall(r'(?:src|href)="([^"]+\.js)"', page)}
    assert scripts
    size = sum(len(gzip.compress((FOLDER / script).read_bytes())) for script in scripts)
    assert size <= MAX_SCRIPT_BYTES


def test_no_source_makes_markup_of_a_text() -> None:
    sources = [*SOURCES.rglob("*.ts"), *SOURCES.rglob("*.tsx")]
    assert len(sources) > 20
    found = {str(path) for path in sources if MARKUP.search(path.read_text(encoding="utf-8"))}
    assert not found


def test_the_font_is_distributed_with_its_licence() -> None:
    assert "SIL Open Font License" in (SOURCES / "fonts" / "LICENSE").read_text(encoding="utf-8")
    assert "SIL Open Font License" in (FOLDER / "LICENSE.txt").read_text(encoding="utf-8")
