"""The built TypeScript package, and programs of Node.js that use it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.repo.programs import build_lock, run
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = ROOT / "clients" / "typescript"
FOLDERS = ("src", "test", "samples")
MIN_NODE_VERSION = 20
SECONDS = 100


def build_package() -> None:
    """Build the package and its tests, or skip the test if Node.js is missing."""
    if _node_version() < MIN_NODE_VERSION or shutil.which("npm") is None:
        pytest.skip("TypeScript client: Node.js 20 or newer and npm are not installed")
    with build_lock("typescript"):
        _build()


def _build() -> None:
    built = PACKAGE / "build" / "test" / "layer.test.js"
    sources = [
        PACKAGE / "package.json",
        PACKAGE / "src" / "engine" / "engine.wasm",
        *(path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.ts")),
    ]
    if built.exists() and built.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return
    installed, lock = PACKAGE / "node_modules" / ".package-lock.json", PACKAGE / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        run("npm", "ci", "--silent", folder=PACKAGE)
    run("npm", "run", "--silent", "pretest", folder=PACKAGE)


def _node_version() -> int:
    if shutil.which("node") is None:
        return 0
    printed = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return int(printed.removeprefix("v").split(".")[0])


async def run_node(
    *arguments: str, folder: Path, seconds: float = SECONDS, given: str = "", **settings: str
) -> str:
    """Run a program of Node.js with a standard input, and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        "node",
        *arguments,
        cwd=folder,
        env={**os.environ, **settings},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(given.encode()), seconds)
    except TimeoutError:
        process.kill()
        output, _ = await process.communicate()
        pytest.fail(f"{arguments} did not end in {seconds} s:\n{output.decode()}")
    assert process.returncode == 0, output.decode()
    return output.decode()
