"""The disk under a server fails during many sessions: the server reports it, and recovers by itself."""

from __future__ import annotations

import logging
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from support.engine.specs import playable
from support.gateway.fake_server import upstream
from support.session.crash import Arena, PacedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from support.servers.processes import ServerProcess


FAULTS = int(os.environ.get("PERIPETY_DISK_FAULTS", "8"))
CLIENTS = 8
SECONDS = (0.1, 0.8)
PIECES = ('{"narrative":"', *("word " for _ in range(8)), '."}')
STORAGE = {"STORAGE_UNAVAILABLE", "STORAGE_UNCERTAIN", "STORAGE_BUSY"}
_MEGABYTE = 1 << 20
_log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits and file systems are set as on Linux"),
    pytest.mark.slow(reason="fills disks while a server writes"),
]


async def test_nothing_is_lost_when_writing_fails(tmp_path: Path) -> None:
    await _endure(tmp_path, tmp_path, _no_more_writing)


async def test_nothing_is_lost_when_the_disk_is_full(tmp_path: Path, small_disk: Path) -> None:
    @contextmanager
    def full(_server: ServerProcess) -> Iterator[None]:
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            for size in (_MEGABYTE, 4096, 1):
                _fill(file.write, b"x" * size)
        try:
            yield
        finally:
            ballast.unlink()

    await _endure(tmp_path, small_disk, full)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for what is played, and not for much more."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@contextmanager
def _no_more_writing(server: ServerProcess) -> Iterator[None]:
    """Let every write of a server fail, wherever in a file."""
    process = server.process.pid
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


def _fill(write: Callable[[bytes], int], piece: bytes) -> None:
    try:
        while True:
            write(piece)
    except OSError:
        return


async def _endure(
    home: Path,
    disk: Path,
    failing: Callable[[ServerProcess], AbstractContextManager[None]],
) -> None:
    async with upstream(PacedModel(*PIECES)) as provider:
        settings = {
            "MODEL_PROVIDER": "generic",
            "OPENAI_API_BASE": provider.base_url,
            "MODEL_NAME": "fake",
            "PERIPETY_DATABASE_URL": f"sqlite:///{disk / 'data.db'}",
        }
        arena = Arena(home, settings, playable())
        await arena.endure(CLIENTS, FAULTS, failing, SECONDS)
        book = arena.book
        # All errors were storage errors, and there was at least one.
        assert book.refusals
        assert book.refusals.keys() <= STORAGE
        async with arena.serving() as (_, api):
            await book.check(api)
    _log.info("%d acknowledged, refused: %s", len(book.events), dict(book.refusals))
