"""What is kept of the making of policies: by key, by who is configured, and not for ever."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from peripety.errors import UnavailableError
from peripety.policy import compile_cache
from peripety.policy.compile_cache import ArtifactStore

if TYPE_CHECKING:
    from peripety.core.storage.database import Database

pytestmark = pytest.mark.postgresql


async def test_what_was_put_is_there_for_every_process_with_the_same_configuration(
    database: Database,
) -> None:
    one, same, other = (ArtifactStore(database, name) for name in ("one", "one", "other"))
    assert await one.get("a") is None
    await one.put("a", b"1")
    await one.put("a", b"\x002")
    assert [await artifacts.get("a") for artifacts in (one, same, other)] == [b"\x002", b"\x002", None]


async def test_the_oldest_are_forgotten(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_cache, "_MAX_ARTIFACTS", 3)
    times = count()
    artifacts = ArtifactStore(database, "one", lambda: float(next(times)))
    for name in "abcde":
        await artifacts.put(name, name.encode())
    assert [await artifacts.get(name) for name in "abcde"] == [None, None, b"c", b"d", b"e"]


async def test_what_is_put_in_a_transaction_that_fails_is_not_there(database: Database) -> None:
    artifacts = ArtifactStore(database, "one")

    async def failing() -> None:
        async with database.write() as connection:
            await artifacts.put("a", b"1", connection)
            raise UnavailableError("the disk is full")

    with pytest.raises(UnavailableError):
        await failing()
    assert await artifacts.get("a") is None
