"""The compiled form of stored scenarios: one for each version, and no more than were used last.

The registry: content names versions, pages do not repeat, deletion is whole.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from peripety.certification.types import certificate_hash, encode
from peripety.errors import (
    ConflictError,
    FailedPreconditionError,
    Finding,
    InvalidArgumentError,
    NotFoundError,
    Severity,
)
from peripety.scenario.registry import ProgramCache
from peripety.scenario.types import NumberEdit
from support.engine.specs import chance, program
from support.scenario.batches import FEWEST, certified, opened_registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.scenario.registry import ScenarioRegistry
    from peripety.scenario.types import ScenarioRecord


FIRST, SECOND, THIRD = (program({**chance(0.5), "seed": seed}) for seed in range(3))


async def test_a_version_is_compiled_once() -> None:
    programs = ProgramCache()
    assert programs.get(FIRST.spec_hash) is None
    made = await programs.load(FIRST.spec_hash, FIRST.document)
    assert made.document == FIRST.document
    assert await programs.load(FIRST.spec_hash, b"is not looked at") is made
    assert programs.put(FIRST) is made


async def test_those_who_ask_at_once_get_the_same_one() -> None:
    programs = ProgramCache()
    made = await asyncio.gather(*(programs.load(FIRST.spec_hash, FIRST.document) for _ in range(4)))
    assert {id(program) for program in made} == {id(programs.get(FIRST.spec_hash))}


async def test_what_was_used_longest_ago_makes_room() -> None:
    programs = ProgramCache(most=2)
    for compiled in (FIRST, SECOND):
        programs.put(compiled)
    assert await programs.load(FIRST.spec_hash, FIRST.document) is FIRST
    programs.put(THIRD)
    kept = [programs.get(compiled.spec_hash) is compiled for compiled in (FIRST, SECOND, THIRD)]
    assert kept == [True, False, True]


ONE_MORE = replace(FEWEST, max_runs=65)


@pytest.fixture
async def registry(database_url: str) -> AsyncIterator[ScenarioRegistry]:
    async with opened_registry(database_url) as opened:
        yield opened


async def saved(registry: ScenarioRegistry, seed: int = 1, **more: Any) -> ScenarioRecord:
    rules = program({**chance(0.5), "seed": seed})
    return await registry.save(rules, rules.dry_run(runs=64), (), (), **more)


async def forget(registry: ScenarioRegistry, scenario_id: str) -> None:
    async with registry._database.write() as connection:
        await registry.delete(scenario_id, connection)


@pytest.mark.postgresql
async def test_a_scenario_is_deleted_when_each_holder_has_released_it(registry: ScenarioRegistry) -> None:
    scenario_id = (await saved(registry)).scenario.scenario_id
    for change, holder, holders in (
        (registry.retain, "b", ["b"]),
        (registry.retain, "a", ["a", "b"]),
        (registry.retain, "a", ["a", "b"]),
        (registry.release, "b", ["a"]),
        (registry.release, "c", ["a"]),
    ):
        async with registry._database.write() as connection:
            await change(scenario_id, holder, connection)
        assert await registry.get_holders(scenario_id) == holders
    with pytest.raises(FailedPreconditionError, match=r"retained by a;") as caught:
        await forget(registry, scenario_id)
    assert caught.value.code == "SCENARIO_RETAINED"
    async with registry._database.write() as connection:
        await registry.release(scenario_id, "a", connection)
    await forget(registry, scenario_id)
    with pytest.raises(NotFoundError):
        async with registry._database.write() as connection:
            await registry.retain(scenario_id, "a", connection)


async def test_scenarios_are_found_by_a_part_of_their_name(registry: ScenarioRegistry) -> None:
    name = (await saved(registry)).scenario.name
    part = name[1:4]
    for text, count in ((part.upper(), 1), (part.lower(), 1), ("%", 0), ("_", 0), ("no such name", 0)):
        assert len((await registry.list_scenarios(name_contains=text)).items) == count, text


@pytest.mark.postgresql
async def test_what_is_stored_is_read_as_it_was(registry: ScenarioRegistry) -> None:
    rules = program(chance(0.5))
    edits = [NumberEdit("/random_events/0/weight", 0.2, 0.25)]
    findings = [Finding("CODE", "/é", "message", Severity.WARNING)]
    record = await registry.save(rules, rules.dry_run(runs=64), edits, findings)
    assert await registry.get(record.scenario.scenario_id) == record
    assert await registry.get(record.scenario.scenario_id, rules.spec_hash) == record
    assert await registry.get_scenario(record.scenario.scenario_id) == record.scenario
    assert record.scenario.document == rules.document
    assert record.edits == tuple(edits)
    assert record.findings == tuple(findings)
    assert datetime.now(UTC) - record.scenario.create_time < timedelta(minutes=1)


@pytest.mark.postgresql
async def test_it_survives_the_process(database_url: str) -> None:
    async with opened_registry(database_url) as first:
        record = await saved(first)
    async with opened_registry(database_url) as second:
        assert await second.get(record.scenario.scenario_id) == record


@pytest.mark.postgresql
async def test_the_same_content_has_the_same_id_and_is_stored_once(registry: ScenarioRegistry) -> None:
    first, second, other = await saved(registry), await saved(registry), await saved(registry, seed=2)
    assert first.scenario.scenario_id == second.scenario.scenario_id != other.scenario.scenario_id
    assert first.scenario.scenario_id == f"scn_{first.scenario.spec_hash[:24]}"
    assert len((await registry.list_scenarios()).items) == 2


@pytest.mark.postgresql
async def test_fewer_runs_do_not_take_the_place_of_more(registry: ScenarioRegistry) -> None:
    rules = program(chance(0.5))
    for runs, stored in ((96, 96), (64, 96), (128, 128)):
        record = await registry.save(rules, rules.dry_run(runs=runs), (), ())
        assert record == await registry.get(record.scenario.scenario_id)
        assert record.dry_run.runs == stored


@pytest.mark.postgresql
async def test_storing_the_same_content_again_keeps_the_time_of_its_creation(
    registry: ScenarioRegistry,
) -> None:
    first, other, again = await saved(registry), await saved(registry, seed=2), await saved(registry)
    assert again.scenario.create_time == first.scenario.create_time < other.scenario.create_time
    assert await registry.get(first.scenario.scenario_id) == again
    latest = (await registry.list_scenarios()).items[0]
    assert (latest.spec_hash, latest.create_time) == (first.scenario.spec_hash, first.scenario.create_time)


@pytest.mark.postgresql
async def test_a_version_joins_its_scenario_and_is_the_latest(registry: ScenarioRegistry) -> None:
    first = await saved(registry)
    scenario_id = first.scenario.scenario_id
    second = await saved(registry, seed=2, version_of=scenario_id)
    assert await registry.get(scenario_id) == second
    assert await registry.get(scenario_id, first.scenario.spec_hash) == first
    page = await registry.list_versions(scenario_id)
    assert [v.spec_hash for v in page.items] == [second.scenario.spec_hash, first.scenario.spec_hash]
    (latest,) = (await registry.list_scenarios()).items
    assert latest.spec_hash == second.scenario.spec_hash


@pytest.mark.postgresql
async def test_pages_follow_each_other_newest_first(registry: ScenarioRegistry) -> None:
    records = [await saved(registry, seed) for seed in range(5)]
    seen, token, pages = [], "", 0
    while pages == 0 or token:
        page = await registry.list_scenarios(2, token)
        seen += [summary.spec_hash for summary in page.items]
        token, pages = page.next_page_token, pages + 1
        if pages == 1:
            await saved(registry, seed=99)
    assert seen == [record.scenario.spec_hash for record in reversed(records)]
    assert pages == 3


@pytest.mark.postgresql
async def test_a_token_of_the_greatest_position_there_is_starts_with_the_newest(
    registry: ScenarioRegistry,
) -> None:
    record = await saved(registry)
    (newest,) = (await registry.list_scenarios(2, f"{2**63 - 1:016x}")).items
    assert newest.spec_hash == record.scenario.spec_hash


@pytest.mark.postgresql
async def test_processes_that_store_the_same_content_at_once_store_it_once(database_url: str) -> None:
    rules = program(chance(0.5))
    report = rules.dry_run(runs=64)
    async with opened_registry(database_url) as one, opened_registry(database_url) as other:
        await asyncio.gather(*(r.save(rules, report, (), ()) for r in (one, other) for _ in range(5)))
        assert len((await one.list_scenarios()).items) == 1


@pytest.mark.postgresql
async def test_the_last_full_page_has_no_token(registry: ScenarioRegistry) -> None:
    for seed in range(2):
        await saved(registry, seed)
    assert (await registry.list_scenarios(2)).next_page_token == ""
    assert len((await registry.list_scenarios(1_000_000)).items) == 2


@pytest.mark.postgresql
@pytest.mark.parametrize("token", ["x", "====", "é", "not a token", "f" * 16, "0" * 52, "9" * 40])
async def test_a_strange_token_or_size_is_refused(registry: ScenarioRegistry, token: str) -> None:
    with pytest.raises(InvalidArgumentError, match="page_token"):
        await registry.list_scenarios(0, token)
    with pytest.raises(InvalidArgumentError, match="page_size"):
        await registry.list_scenarios(-1)


@pytest.mark.postgresql
async def test_deletion_takes_all_versions(registry: ScenarioRegistry) -> None:
    record = await saved(registry)
    scenario_id = record.scenario.scenario_id
    await saved(registry, seed=2, version_of=scenario_id)
    await forget(registry, scenario_id)
    for missing in (
        registry.get(scenario_id),
        registry.list_versions(scenario_id),
        forget(registry, scenario_id),
    ):
        with pytest.raises(NotFoundError):
            await missing


@pytest.mark.postgresql
async def test_what_was_never_stored_is_not_found(registry: ScenarioRegistry) -> None:
    record = await saved(registry)
    for arguments in (("scn_0",), (record.scenario.scenario_id, "0" * 64)):
        with pytest.raises(NotFoundError, match=arguments[0]):
            await registry.get_scenario(*arguments)


@pytest.mark.postgresql
async def test_the_latest_certificate_of_a_version_is_named_and_outlives_its_storing(
    registry: ScenarioRegistry,
) -> None:
    record = await saved(registry)
    scenario_id = record.scenario.scenario_id
    one, other = [await certified(chance(0.5) | {"seed": 1}, options) for options in (FEWEST, ONE_MORE)]
    for certificate in (one, other, one):
        await registry.add_certificate(scenario_id, certificate)
        name = certificate_hash(encode(certificate))
        assert (await registry.get(scenario_id)).certificate_hash == name
        assert await registry.get_certificate(name) == certificate
        assert await registry.get_certificate_document(scenario_id, certificate.spec_hash) == encode(
            certificate,
        )
    assert await registry.get_certificate_document(scenario_id, "0" * 64) is None
    assert (await saved(registry)).certificate_hash == name
    assert [summary.certificate_hash for summary in (await registry.list_versions(scenario_id)).items] == [
        name,
    ]
    newer = await saved(registry, seed=2, version_of=scenario_id)
    assert newer.certificate_hash is None
    assert (await registry.get(scenario_id, record.scenario.spec_hash)).certificate_hash == name


@pytest.mark.postgresql
async def test_certificates_go_with_their_scenario_and_are_kept_with_no_other(
    registry: ScenarioRegistry,
) -> None:
    scenario_id = (await saved(registry)).scenario.scenario_id
    certificate = await certified(chance(0.5) | {"seed": 1})
    await registry.add_certificate(scenario_id, certificate)
    await forget(registry, scenario_id)
    with pytest.raises(NotFoundError, match="does not exist"):
        await registry.get_certificate(certificate_hash(encode(certificate)))
    with pytest.raises(NotFoundError, match="does not exist"):
        await registry.add_certificate(scenario_id, certificate)


@pytest.mark.postgresql
async def test_a_version_that_follows_another_is_not_stored_behind_a_third(
    registry: ScenarioRegistry,
) -> None:
    first = await saved(registry)
    scenario_id, follows = first.scenario.scenario_id, first.scenario.spec_hash
    second = await saved(registry, seed=2, version_of=scenario_id, follows=follows)
    with pytest.raises(ConflictError, match=second.scenario.spec_hash):
        await saved(registry, seed=3, version_of=scenario_id, follows=follows)
    assert await registry.get(scenario_id) == second
    await forget(registry, scenario_id)
    with pytest.raises(NotFoundError):
        await saved(registry, seed=3, version_of=scenario_id, follows=second.scenario.spec_hash)


@pytest.mark.postgresql
async def test_a_certificate_is_kept_in_the_same_transaction_as_its_version(
    registry: ScenarioRegistry,
) -> None:
    certificate = await certified(chance(0.5) | {"seed": 1})
    record = await saved(registry, certificate=certificate)
    assert record.certificate_hash == certificate_hash(encode(certificate))
    assert await registry.get(record.scenario.scenario_id) == record
    assert await registry.get_certificate(record.certificate_hash) == certificate
