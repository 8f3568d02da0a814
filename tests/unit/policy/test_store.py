"""The store of policies: content names versions, pages do not repeat, deletion is whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from peripety.errors import InvalidArgumentError, NotFoundError
from peripety.policy.store import PolicyStore
from support.policy.policies import compiled_policy, opened_store

if TYPE_CHECKING:
    from peripety.core.storage.database import Database
    from peripety.policy.types import CompiledPolicy


pytestmark = pytest.mark.postgresql


@pytest.fixture
def store(database: Database) -> PolicyStore:
    return PolicyStore(database)


async def saved(
    store: PolicyStore,
    name: str = "Gauge",
    input_hash: str = "i",
    **more: Any,
) -> CompiledPolicy:
    async with store._database.write() as connection:
        return await store.save(compiled_policy(name=name), input_hash, connection, **more)


async def forget(store: PolicyStore, policy_id: str) -> None:
    async with store._database.write() as connection:
        await store.delete(policy_id, connection)


async def test_what_is_stored_is_read_as_it_was(store: PolicyStore) -> None:
    stored = await saved(store)
    assert stored.compiled == compiled_policy()
    assert await store.get(stored.policy_id) == stored
    assert await store.get(stored.policy_id, stored.policy_hash) == stored
    assert await store.find_hash(stored.policy_id) == stored.policy_hash
    assert datetime.now(UTC) - stored.create_time < timedelta(minutes=1)


async def test_it_survives_the_process(database_url: str) -> None:
    async with opened_store(database_url) as (first, _):
        stored = await saved(first)
    async with opened_store(database_url) as (second, _):
        assert await second.get(stored.policy_id) == stored


async def test_the_same_content_is_the_same_policy_and_keeps_the_time_of_the_first(
    store: PolicyStore,
) -> None:
    first, other = await saved(store), await saved(store, "Other")
    again = await saved(store, input_hash="j")
    assert again == replace(first, input_hash="j")
    assert other.policy_id != first.policy_id
    assert [one.policy_id for one in (await store.list_policies()).items] == [
        again.policy_id,
        other.policy_id,
    ]


async def test_the_version_that_came_last_is_the_latest(store: PolicyStore) -> None:
    first = await saved(store)
    second = await saved(store, "Other", version_of=first.policy_id)
    assert second.policy_id == first.policy_id
    assert (await store.get(first.policy_id)) == second
    assert (await store.get(first.policy_id, first.policy_hash)) == first
    (listed,) = (await store.list_policies()).items
    assert (listed.policy_hash, listed.rules, listed.scenarios) == (second.policy_hash, 2, 2)
    assert listed.name == "Other"


async def test_policies_of_an_older_version_get_their_names(database_url: str) -> None:
    async with opened_store(database_url) as (store, database):
        policies = [await saved(store, name) for name in ("Gauge", "Größe")]
        async with database.write() as connection:
            await connection.execute(text("ALTER TABLE policy_versions DROP COLUMN name"))
            await connection.execute(text("UPDATE peripety_schema SET version = version - 1"))
    async with opened_store(database_url) as (store, _):
        listed = (await store.list_policies()).items
        assert [(one.policy_id, one.name) for one in listed] == [
            (policies[1].policy_id, "Größe"),
            (policies[0].policy_id, "Gauge"),
        ]
        assert await store.get(policies[0].policy_id) == policies[0]


async def test_the_versions_of_a_policy_are_listed_in_pages_without_those_of_others(
    store: PolicyStore,
) -> None:
    first = await saved(store)
    await saved(store, "Other")
    versions = [first] + [await saved(store, f"Gauge {n}", version_of=first.policy_id) for n in range(2)]
    one = await store.list_versions(first.policy_id, 2)
    two = await store.list_versions(first.policy_id, 2, one.next_page_token)
    found = [(summary.policy_id, summary.policy_hash) for summary in (*one.items, *two.items)]
    assert found == [(version.policy_id, version.policy_hash) for version in reversed(versions)]
    assert not two.next_page_token
    assert await store.find_hash(first.policy_id, first.policy_hash) == first.policy_hash
    for missing in (
        store.list_versions("pol_0"),
        store.find_hash(first.policy_id, "0" * 64),
        store.get(first.policy_id, "0" * 64),
    ):
        with pytest.raises(NotFoundError):
            await missing


async def test_pages_neither_repeat_nor_miss_a_policy(store: PolicyStore) -> None:
    ids = [(await saved(store, f"Gauge {number}")).policy_id for number in range(5)]
    found, token = [], ""
    while True:
        page = await store.list_policies(2, token)
        found += [one.policy_id for one in page.items]
        token = page.next_page_token
        if not token:
            break
    assert found == ids[::-1]
    with pytest.raises(InvalidArgumentError):
        await store.list_policies(2, "elsewhere")


async def test_deletion_takes_all_versions(store: PolicyStore) -> None:
    first = await saved(store)
    await saved(store, "Other", version_of=first.policy_id)
    await forget(store, first.policy_id)
    for asking in (store.get(first.policy_id), store.find_hash(first.policy_id)):
        with pytest.raises(NotFoundError) as caught:
            await asking
        assert caught.value.code == "POLICY_NOT_FOUND"
    with pytest.raises(NotFoundError):
        await forget(store, first.policy_id)


async def test_a_version_of_a_policy_that_is_gone_is_not_stored(store: PolicyStore) -> None:
    with pytest.raises(NotFoundError):
        await saved(store, version_of="pol_0")
    assert (await store.list_policies()).items == ()
