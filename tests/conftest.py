"""Shared servers, the Hypothesis profiles, and the marker `slow`.

The summary of a run names the core that was tested and the reason for each skipped test.
"""

from __future__ import annotations

import gc
import logging
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from peripety import engine
from peripety.core.storage.database import Database
from support.examples import register_profiles
from support.servers.databases import PostgresqlProcess, RedisProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator
    from pathlib import Path

register_profiles()

_ON_POSTGRESQL = "the same test on PostgreSQL; tests of storage and of contracts always run on it"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test` leaves out: see the markers in pyproject.toml."""
    cases: Counter[tuple[str, str]] = Counter()
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if "property" in item.path.parts:
            item.add_marker(pytest.mark.property)
        for mark in item.iter_markers("slow"):
            if "reason" not in mark.kwargs:
                message = f"{item.nodeid}: the marker `slow` needs a reason"
                raise pytest.UsageError(message)
        if limit := item.get_closest_marker("slow_after"):
            function = (str(item.path), item.originalname)
            cases[function] += 1
            if cases[function] > limit.args[0]:
                item.add_marker(pytest.mark.slow(reason=limit.kwargs["reason"]))
        if _runs_on_postgresql(item) and item.get_closest_marker("postgresql") is None:
            item.add_marker(pytest.mark.slow(reason=_ON_POSTGRESQL))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, and leave the 20,000 collected tests out of its later work."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


def _runs_on_postgresql(item: pytest.Function) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("database_url") == "postgresql"


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Restore the logging setup of this process after a test that serves or runs a command."""
    root, ours = logging.getLogger(), logging.getLogger("peripety")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlProcess]:
    """Run a server that must not be stopped, with a database for each test that uses it."""
    with PostgresqlProcess() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database, of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'test.db'}"
        return
    server: PostgresqlProcess = request.getfixturevalue("postgresql")
    with server.database() as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """The same, opened."""
    opened = await Database.open(database_url)
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def _redis() -> Iterator[RedisProcess]:
    with RedisProcess() as server:
        yield server


@pytest.fixture
def redis_url(_redis: RedisProcess) -> str:
    """An empty Redis server."""
    _redis.clear()
    return _redis.url


def pytest_report_header() -> str:
    return (
        f"core: {engine.BACKEND} {engine.BACKEND_VERSION}; hypothesis: {settings.get_current_profile_name()}"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"SKIPPED {count}: {reason}", yellow=True)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let this process and its children be interrupted.

    A test run in the background ignores the signal, and hands that on.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
