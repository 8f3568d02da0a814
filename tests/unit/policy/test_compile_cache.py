"""Compile cache: equal orders are compiled once.

Stored results: by key, by configured model, and with a limit.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import closing
from peripety.core.idempotency.store import PendingResponse
from peripety.errors import Finding, InvalidArgumentError, NotFoundError, Severity, UnavailableError
from peripety.policy import compile_cache
from peripety.policy.compile_cache import ArtifactStore, CachedResult, CachingCompiler
from peripety.policy.events import CompileProgress, PolicyCompileFailed
from peripety.policy.store import PolicyStore
from peripety.policy.types import AnnotatedTool, CompileOrder
from support.policy.policies import FakeCompiler, compiled_policy

if TYPE_CHECKING:
    from peripety.core.storage.database import Database


ORDER = CompileOrder("whoever reads below /a may", (AnnotatedTool("alpha", "read"),))


@pytest.fixture
def store(database: Database) -> PolicyStore:
    return PolicyStore(database)


def caching(compiler: FakeCompiler, store: PolicyStore, configured: str = "one") -> CachingCompiler:
    return CachingCompiler(compiler, store, ArtifactStore(store._database, configured))


async def last(
    store: PolicyStore,
    compiler: CachingCompiler,
    order: CompileOrder = ORDER,
    version_of: str | None = None,
) -> Any:
    """The last event, after it was stored like the log of requests does it."""
    told: Any = None
    async with closing(compiler.compile(order, version_of)) as events:
        async for event in events:
            told = event
            if isinstance(event, PendingResponse):
                async with store._database.write() as connection:
                    told = await event.make(connection)
    return told


async def test_the_same_order_is_compiled_once(store: PolicyStore) -> None:
    fake = FakeCompiler()
    compiler = caching(fake, store)
    first, again = await last(store, compiler), await last(store, compiler)
    assert (first.from_cache, again.from_cache) == (False, True)
    assert again.policy == first.policy == await store.get(first.policy.policy_id)
    assert fake.compiled == 1


async def test_two_at_once_share_one_piece_of_work(store: PolicyStore) -> None:
    fake = FakeCompiler()
    compiler = caching(fake, store)
    both = await asyncio.gather(last(store, compiler), last(store, compiler))
    assert sorted(kept.from_cache for kept in both) == [False, True]
    assert fake.compiled == 1


async def test_a_cached_result_becomes_a_version_of_the_policy_that_is_named(store: PolicyStore) -> None:
    async with store._database.write() as connection:
        other = await store.save(compiled_policy(name="Other"), "elsewhere", connection)
    fake = FakeCompiler()
    compiler = caching(fake, store)
    first = await last(store, compiler)
    again = await last(store, compiler, version_of=other.policy_id)
    assert again.from_cache
    assert (again.policy.policy_id, again.policy.compiled) == (other.policy_id, first.policy.compiled)
    assert await store.find_hash(other.policy_id) == first.policy.policy_hash


async def test_another_order_program_or_model_is_compiled_anew(store: PolicyStore) -> None:
    fakes = [FakeCompiler(), FakeCompiler(version="2")]
    one, newer = (caching(fake, store) for fake in fakes)
    other_model = caching(fakes[0], store, "other")
    for compiler, order in (
        (one, ORDER),
        (one, replace(ORDER, constitution="more")),
        (one, replace(ORDER, model="x/y")),
        (newer, ORDER),
        (other_model, ORDER),
    ):
        assert not (await last(store, compiler, order)).from_cache
        assert (await last(store, compiler, order)).from_cache
    assert [fake.compiled for fake in fakes] == [4, 1]


@pytest.mark.parametrize(
    "end",
    [PolicyCompileFailed((), b"", (), None, (), compiled_policy().spent), UnavailableError("nobody answers")],
)
async def test_what_came_to_nothing_is_not_kept(
    store: PolicyStore,
    end: PolicyCompileFailed | Exception,
) -> None:
    fake = FakeCompiler(end)
    compiler = caching(fake, store)
    for _ in range(2):
        if isinstance(end, PolicyCompileFailed):
            assert await last(store, compiler) == end
        else:
            with pytest.raises(UnavailableError):
                await last(store, compiler)
    assert fake.compiled == 2
    assert not (await store.list_policies()).items


async def test_who_leaves_early_keeps_nothing_and_blocks_nobody(store: PolicyStore) -> None:
    fake = FakeCompiler()
    compiler = caching(fake, store)
    async with closing(compiler.compile(ORDER)) as events:
        assert isinstance(await anext(aiter(events)), CompileProgress)
    assert fake.left == 1
    kept = await last(store, compiler)
    assert isinstance(kept, CachedResult)
    assert not kept.from_cache


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"tools": (AnnotatedTool("alpha", ""),)}, "tools[0]/tool_name"),
        ({"tools": ORDER.tools * 2}, "tools[1]"),
        ({"tools": tuple(AnnotatedTool("alpha", "b" * 64) for _ in range(20_000))}, "tools"),
        ({"lists": {"x": {"kind": "path", "values": ["@x"]}}}, "foundation/lists/x"),
        ({"invariants": ({"id": "structural-a"},)}, "foundation/invariants/0"),
    ],
)
async def test_what_no_rules_could_stand_on_is_refused_before_a_model_is_asked(
    store: PolicyStore,
    wrong: dict[str, Any],
    field: str,
) -> None:
    fake = FakeCompiler()
    with pytest.raises(InvalidArgumentError) as caught:
        await last(store, caching(fake, store), replace(ORDER, **wrong))
    assert caught.value.code == "FOUNDATION_INVALID"
    assert any(violation.field.startswith(field) for violation in caught.value.violations)
    assert fake.compiled == 0


async def test_a_policy_that_is_not_there_gets_no_version(store: PolicyStore) -> None:
    fake = FakeCompiler()
    with pytest.raises(NotFoundError):
        await last(store, caching(fake, store), version_of="pol_0")
    assert fake.compiled == 0


async def test_what_was_measured_in_part_for_want_of_time_is_stored_and_measured_again(
    store: PolicyStore,
) -> None:
    short = Finding("MEASURED_IN_PART", "", "there was no time", Severity.WARNING)
    fake = FakeCompiler(replace(compiled_policy(), findings=(short,)))
    compiler = caching(fake, store)
    first, again = await last(store, compiler), await last(store, compiler)
    assert (first.from_cache, again.from_cache, fake.compiled) == (False, False, 2)
    assert (await store.get(first.policy.policy_id)).compiled.findings == (short,)


@pytest.mark.postgresql
async def test_what_was_put_is_there_for_every_process_with_the_same_configuration(
    database: Database,
) -> None:
    one, same, other = (ArtifactStore(database, name) for name in ("one", "one", "other"))
    assert await one.get("a") is None
    await one.put("a", b"1")
    await one.put("a", b"\x002")
    assert [await artifacts.get("a") for artifacts in (one, same, other)] == [b"\x002", b"\x002", None]


@pytest.mark.postgresql
async def test_the_oldest_are_forgotten(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_cache, "_MAX_ARTIFACTS", 3)
    times = count()
    artifacts = ArtifactStore(database, "one", lambda: float(next(times)))
    for name in "abcde":
        await artifacts.put(name, name.encode())
    assert [await artifacts.get(name) for name in "abcde"] == [None, None, b"c", b"d", b"e"]


@pytest.mark.postgresql
async def test_what_is_put_in_a_transaction_that_fails_is_not_there(database: Database) -> None:
    artifacts = ArtifactStore(database, "one")

    async def failing() -> None:
        async with database.write() as connection:
            await artifacts.put("a", b"1", connection)
            raise UnavailableError("the disk is full")

    with pytest.raises(UnavailableError):
        await failing()
    assert await artifacts.get("a") is None
