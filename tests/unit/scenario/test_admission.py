"""Compiling: from any bytes to a stored scenario or the reasons why not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.errors import ConflictError, InvalidArgumentError, NotFoundError
from peripety.scenario.admission import ScenarioRegistrar
from peripety.scenario.balance.candidate_runs import FIRST_FRESH_RUN
from peripety.scenario.registry import ProgramCache
from peripety.scenario.types import (
    NumbersAdjusted,
    Progress,
    ProgressStage,
    RegistrationFailed,
    ScenarioRegistered,
)
from support.engine.specs import as_bytes, at_most, chance, siege, spec
from support.scenario.batches import WORKERS, compiling, opened_registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.scenario.registry import ScenarioRegistry
    from peripety.scenario.types import Scenario


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[ScenarioRegistry]:
    async with opened_registry(f"sqlite:///{tmp_path / 'test.db'}") as opened:
        yield opened


async def test_a_good_scenario_is_stored(registry: ScenarioRegistry) -> None:
    *before, last = await compiling(registry, as_bytes(chance(0.5)))
    assert isinstance(last, ScenarioRegistered)
    assert await registry.get(last.record.scenario.scenario_id) == last.record
    assert last.record.edits == ()
    assert engine.compile(last.record.scenario.document).spec == chance(0.5)
    stages = [event.stage for event in before if isinstance(event, Progress)]
    assert list(dict.fromkeys(stages)) == [
        ProgressStage.VALIDATING,
        ProgressStage.COMPILING,
        ProgressStage.DRY_RUNNING,
        ProgressStage.STORING,
    ]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"not json", "INVALID_JSON"),
        (b"\xff", "INVALID_UTF8"),
        (b'{"a":1,"a":2}', "DUPLICATE_KEY"),
        (b"[" * 10_000 + b"]" * 10_000, "TOO_DEEP"),
        (b"[NaN]", "INVALID_JSON"),
        (as_bytes({**spec(), "extra": 1}), "UNKNOWN_KEY"),
        (as_bytes(spec(loss_conditions=[{"id": "one", "when": {}}])), "TOO_SHORT"),
        (as_bytes(spec(negativity_budget={"min_fail_rate": 0})), "OUT_OF_RANGE"),
    ],
)
async def test_whatever_is_wrong_is_told_in_findings(
    registry: ScenarioRegistry,
    data: bytes,
    code: str,
) -> None:
    last = (await compiling(registry, data))[-1]
    assert isinstance(last, RegistrationFailed)
    assert code in {finding.code for finding in last.findings}
    assert last.dry_run is None
    assert (await registry.list_scenarios()).items == ()


@pytest.mark.parametrize("data", [b"", b" " * (1024 * 1024 + 1)])
async def test_what_is_no_document_is_a_wrong_request(registry: ScenarioRegistry, data: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await compiling(registry, data)
    assert [violation.field for violation in caught.value.violations] == ["spec"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (DryRunOptions(seed=-1), "dry_run.seed"),
        (DryRunOptions(max_runs=-5), "dry_run.max_runs"),
        (DryRunOptions(max_runs=63), "dry_run.max_runs"),
        (DryRunOptions(max_runs=1_000_000), "dry_run.max_runs"),
        (DryRunOptions(horizon=1001), "dry_run.horizon"),
    ],
)
async def test_options_out_of_range_are_a_wrong_request(
    registry: ScenarioRegistry,
    options: DryRunOptions,
    field: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await compiling(registry, as_bytes(chance(0.5)), options)
    assert [violation.field for violation in caught.value.violations] == [field]


async def test_a_missed_budget_is_repaired_once_confirmed_on_fresh_runs_and_stored(
    registry: ScenarioRegistry,
) -> None:
    events = await compiling(registry, as_bytes(siege(min_fail_rate=0.6)))
    (moved,) = [event for event in events if isinstance(event, NumbersAdjusted)]
    last = events[-1]
    assert isinstance(last, ScenarioRegistered)
    assert moved.before.fail_rate < 0.6
    assert last.record.edits == moved.edits != ()
    assert last.record.dry_run.first_run == FIRST_FRESH_RUN > 100_000
    stored = json.loads(last.record.scenario.document)
    assert stored["negativity_budget"]["decay_per_turn"]["state.a"] == moved.edits[-1].after


async def test_a_repair_can_be_declined(registry: ScenarioRegistry) -> None:
    events = await compiling(registry, as_bytes(siege(min_fail_rate=0.6)), auto_repair=False)
    last = events[-1]
    assert isinstance(last, RegistrationFailed)
    assert [finding.code for finding in last.findings] == ["TOO_EASY"]
    assert last.dry_run is not None
    assert not any(isinstance(event, NumbersAdjusted) for event in events)


async def test_a_repair_that_cannot_reach_says_how_far_it_came(registry: ScenarioRegistry) -> None:
    last = (await compiling(registry, as_bytes(siege(min_fail_rate=1.0))))[-1]
    assert isinstance(last, RegistrationFailed)
    assert [finding.code for finding in last.findings] == ["TOO_EASY", "REPAIR_OUT_OF_REACH"]
    assert "%" in last.findings[1].message


async def test_without_numbers_to_move_the_refusal_says_so(registry: ScenarioRegistry) -> None:
    lower = {"id": "lower", "params": {}, "preconditions": {}}
    still = spec(
        state={"a": 1},
        actions=[{**lower, "effects": [{"op": "dec", "path": "state.a", "value": 1}]}],
        loss_conditions=[at_most("gone", "state.a", 0), at_most("beyond", "state.a", -9)],
        negativity_budget={"min_fail_rate": 0.5},
    )
    last = (await compiling(registry, as_bytes(still), DryRunOptions(persona="idle")))[-1]
    assert isinstance(last, RegistrationFailed)
    assert "no event weight" in last.findings[-1].message


async def test_what_is_proved_to_be_out_of_reach_is_refused_before_any_dice(
    registry: ScenarioRegistry,
) -> None:
    hopeless = {**siege(), "win_conditions": [{"id": "goal", "when": {">": [{"var": "state.b"}, 99]}}]}
    events = await compiling(registry, as_bytes(hopeless))
    assert isinstance(events[-1], RegistrationFailed)
    assert [finding.code for finding in events[-1].findings] == ["UNREACHABLE_WIN"]
    assert not any(isinstance(e, Progress) and e.stage is ProgressStage.DRY_RUNNING for e in events)


async def test_a_repair_that_does_not_hold_is_not_stored(registry: ScenarioRegistry) -> None:
    narrow = siege(min_fail_rate=0.595, max_fail_rate=0.596)
    last = (await compiling(registry, as_bytes(narrow)))[-1]
    assert isinstance(last, RegistrationFailed)
    assert last.findings[-1].code in {"REPAIR_NOT_CONFIRMED", "REPAIR_OUT_OF_REACH"}
    assert (await registry.list_scenarios()).items == ()


async def test_progress_never_goes_back(registry: ScenarioRegistry) -> None:
    for value in (chance(0.5), siege(min_fail_rate=0.6), siege(min_fail_rate=1.0)):
        events = await compiling(registry, as_bytes(value))
        fractions = [event.fraction for event in events if isinstance(event, Progress)]
        assert fractions == sorted(fractions)
        assert 0 <= fractions[0] <= fractions[-1] <= 1


async def test_the_same_document_gives_the_same_scenario(registry: ScenarioRegistry) -> None:
    first, second = [(await compiling(registry, as_bytes(siege(min_fail_rate=0.6))))[-1] for _ in range(2)]
    assert isinstance(first, ScenarioRegistered)
    assert isinstance(second, ScenarioRegistered)
    assert first.record.scenario.document == second.record.scenario.document
    assert first.record.scenario.scenario_id == second.record.scenario.scenario_id
    assert first.record.dry_run == second.record.dry_run


async def recompiling(registry: ScenarioRegistry, scenario_id: str, options: DryRunOptions) -> list[Any]:
    compiler = ScenarioRegistrar(registry, ProgramCache(), WORKERS)
    return [event async for event in compiler.register_again(scenario_id, options)]


async def test_a_stored_scenario_is_compiled_again_as_itself(registry: ScenarioRegistry) -> None:
    first = (await compiling(registry, as_bytes(chance(0.5))))[-1]
    assert isinstance(first, ScenarioRegistered)
    scenario_id = first.record.scenario.scenario_id
    events = await recompiling(registry, scenario_id, DryRunOptions(persona="idle"))
    assert isinstance(events[-1], ScenarioRegistered)
    assert events[-1].record.scenario.scenario_id == scenario_id
    assert (await registry.get(scenario_id)).dry_run.persona == "idle"
    assert len((await registry.list_versions(scenario_id)).items) == 1


async def stored(registry: ScenarioRegistry, weight: float, **more: Any) -> Scenario:
    done = (await compiling(registry, as_bytes(chance(weight)), **more))[-1]
    assert isinstance(done, ScenarioRegistered)
    return done.record.scenario


async def test_compiling_again_does_not_put_a_version_before_one_that_came_meanwhile(
    registry: ScenarioRegistry,
) -> None:
    scenario_id = (await stored(registry, 0.5)).scenario_id
    again = ScenarioRegistrar(registry, ProgramCache(), WORKERS).register_again(scenario_id, DryRunOptions())
    await anext(again)
    newer = await stored(registry, 0.6, version_of=scenario_id)
    with pytest.raises(ConflictError):
        [event async for event in again]
    assert (await registry.get(scenario_id)).scenario == newer


async def test_a_scenario_that_is_deleted_meanwhile_gets_no_new_version(registry: ScenarioRegistry) -> None:
    scenario_id = (await stored(registry, 0.5)).scenario_id
    newer = as_bytes(chance(0.6))
    joining = ScenarioRegistrar(registry, ProgramCache(), WORKERS).register(
        newer,
        DryRunOptions(),
        version_of=scenario_id,
    )
    await anext(joining)
    async with registry._database.write() as connection:
        await registry.delete(scenario_id, connection)
    with pytest.raises(NotFoundError):
        [event async for event in joining]
    assert (await registry.list_scenarios()).items == ()


async def test_a_new_version_joins_its_scenario(registry: ScenarioRegistry) -> None:
    first = (await compiling(registry, as_bytes(chance(0.5))))[-1]
    assert isinstance(first, ScenarioRegistered)
    scenario_id = first.record.scenario.scenario_id
    second = (await compiling(registry, as_bytes(chance(0.6)), version_of=scenario_id))[-1]
    assert isinstance(second, ScenarioRegistered)
    assert second.record.scenario.scenario_id == scenario_id
    assert len((await registry.list_versions(scenario_id)).items) == 2


async def test_versions_of_nothing_are_refused_before_any_work(registry: ScenarioRegistry) -> None:
    with pytest.raises(NotFoundError):
        await compiling(registry, as_bytes(chance(0.5)), version_of="scn_0")
    with pytest.raises(NotFoundError):
        await recompiling(registry, "scn_0", DryRunOptions())


async def test_numbers_that_canonical_form_writes_out_are_no_hindrance(registry: ScenarioRegistry) -> None:
    first: Any = (await compiling(registry, as_bytes(chance(0.5) | {"state": {"a": 1, "vast": 1e20}})))[-1]
    assert b"100000000000000000000" in first.record.scenario.document
    events = await recompiling(registry, first.record.scenario.scenario_id, DryRunOptions())
    assert events[-1] == first


async def test_what_was_stored_is_not_compiled_once_more(registry: ScenarioRegistry) -> None:
    programs = ProgramCache()
    compiler = ScenarioRegistrar(registry, programs, WORKERS)
    done = [event async for event in compiler.register(as_bytes(siege(min_fail_rate=0.6)), DryRunOptions())]
    assert isinstance(done[-1], ScenarioRegistered)
    stored = done[-1].record.scenario
    kept = programs.get(stored.spec_hash)
    assert kept is not None
    assert kept.document == stored.document
    assert await programs.load(stored.spec_hash, stored.document) is kept
