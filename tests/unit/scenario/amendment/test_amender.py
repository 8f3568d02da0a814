"""Changes of stored scenarios: proposed, judged like what is written, and stored as the next version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.certification.types import CertificateVerdict
from peripety.core.concurrency import closing
from peripety.core.config import ProviderName
from peripety.core.idempotency.store import PendingResponse
from peripety.errors import ConflictError, InvalidArgumentError, NotFoundError
from peripety.gateway.types.request import CacheConfig
from peripety.gateway.types.response import UsageTotal
from peripety.scenario.amendment.amender import Amender
from peripety.scenario.generation.draft_cache import load_prompt
from peripety.scenario.registry import ProgramCache
from peripety.scenario.types import (
    AmendmentCompleted,
    AmendmentFailed,
    AmendmentOrder,
    ChangeProposed,
    GenerationLimits,
    NumbersAdjusted,
    Progress,
    ValidationFailed,
    ValidationLevel,
)
from support.engine.specs import chance, program, siege
from support.gateway.fake_gateway import SPENT, FakeGateway
from support.scenario.batches import FEWEST, WORKERS, certified, contest, opened_registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.scenario.registry import ScenarioRegistry
    from peripety.scenario.types import AmendEvent, ScenarioRecord


LONGER = "make it longer"


@pytest.fixture
async def registry(database_url: str) -> AsyncIterator[ScenarioRegistry]:
    async with opened_registry(database_url) as opened:
        yield opened


async def stored(registry: ScenarioRegistry, spec: dict[str, Any]) -> ScenarioRecord:
    rules = program(spec)
    return await registry.save(rules, rules.dry_run(runs=256), (), ())


async def amended(
    registry: ScenarioRegistry,
    record: ScenarioRecord,
    instruction: str,
    *answers: str,
    provider: ProviderName | None = None,
    meanwhile: dict[str, Any] | None = None,
    **order: Any,
) -> tuple[list[AmendEvent], FakeGateway]:
    """Everything that happens when a scenario is changed, by a model where there are answers."""
    gateway = FakeGateway(*answers)
    provider = provider or (ProviderName.OPENAI if answers else ProviderName.OFFLINE)
    amender = Amender(gateway, provider, registry, ProgramCache(), WORKERS)
    events: list[AmendEvent] = []
    asked = AmendmentOrder(record.scenario.scenario_id, instruction, **order)
    async with closing(amender.amend(asked)) as stream:
        async for event in stream:
            if meanwhile is not None:
                await registry.save(
                    program(meanwhile),
                    record.dry_run,
                    (),
                    (),
                    version_of=record.scenario.scenario_id,
                )
                meanwhile = None
            if isinstance(event, PendingResponse):
                async with registry._database.write() as connection:
                    events.append(await event.make(connection))
            else:
                events.append(event)
    return events, gateway


def of(kind: type[Any], events: list[AmendEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def codes(event: Any) -> list[str]:
    return [finding.code for finding in event.findings]


def partial(**parts: Any) -> str:
    return json.dumps(parts)


async def test_a_change_by_rules_becomes_the_latest_version_with_what_differs(
    registry: ScenarioRegistry,
) -> None:
    record = await stored(registry, siege())
    events, gateway = await amended(registry, record, LONGER)
    last = events[-1]
    assert isinstance(last, AmendmentCompleted)
    assert [edit.summary for edit in last.edits] == ["horizon 15 → 22"]
    assert [edit.summary for edit in of(ChangeProposed, events)[0].edits] == ["horizon 15 → 22"]
    assert (last.spent, gateway.requests) == (UsageTotal(), [])
    assert last.record == await registry.get(record.scenario.scenario_id)
    assert json.loads(last.record.scenario.document)["horizon"] == 22
    versions = (await registry.list_versions(record.scenario.scenario_id)).items
    assert [one.spec_hash for one in versions] == [
        last.record.scenario.spec_hash,
        record.scenario.spec_hash,
    ]


async def test_how_far_it_is_never_goes_back(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    events, _ = await amended(registry, record, LONGER)
    fractions = [event.fraction for event in of(Progress, events)]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


async def test_harder_is_a_budget_that_numbers_are_moved_for_openly(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    events, _ = await amended(registry, record, "make it harder")
    last = events[-1]
    assert isinstance(last, AmendmentCompleted), last
    (moved,) = of(NumbersAdjusted, events)
    assert last.record.edits == moved.edits
    assert last.record.dry_run.fail_rate > record.dry_run.fail_rate
    assert any("min_fail_rate" in edit.summary for edit in last.edits)


async def test_what_is_not_understood_leaves_the_scenario_as_it_is(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    events, _ = await amended(registry, record, "add a third gauge")
    last = events[-1]
    assert isinstance(last, AmendmentFailed)
    assert codes(last) == ["AMENDMENT_NOT_UNDERSTOOD"]
    assert await registry.get(record.scenario.scenario_id) == record


async def test_a_change_after_which_nothing_can_be_lost_is_not_stored(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    events, _ = await amended(registry, record, "remove the blow and remove the swell")
    last = events[-1]
    assert isinstance(last, AmendmentFailed)
    assert "IMPOSSIBLE_LOSS" in codes(last)
    assert await registry.get(record.scenario.scenario_id) == record


async def test_a_model_is_shown_the_scenario_and_changes_parts_of_it(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    events, gateway = await amended(registry, record, "twenty turns", partial(horizon=20))
    last = events[-1]
    assert isinstance(last, AmendmentCompleted), last
    assert [edit.summary for edit in last.edits] == ["horizon 15 → 20"]
    assert last.spent == SPENT
    (request,) = gateway.requests
    assert request.system == load_prompt("generate")
    assert request.cache == CacheConfig(expected_reuse=3)
    asked = json.loads(request.messages[-1].text)
    assert asked == {"scenario": program(siege()).spec, "instruction": "twenty turns"}


async def test_a_modest_model_is_asked_for_what_rules_do_not_understand(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    for instruction, calls in ((LONGER, 0), ("twenty turns", 1)):
        events, gateway = await amended(
            registry,
            record,
            instruction,
            partial(horizon=20),
            provider=ProviderName.GENERIC,
        )
        assert isinstance(events[-1], AmendmentCompleted)
        assert len(gateway.requests) == calls


async def test_a_model_that_is_named_is_asked(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    for model, calls in (("openai/a", 1), ("offline/offline", 0)):
        _, gateway = await amended(registry, record, LONGER, partial(horizon=20), model=model)
        assert len(gateway.requests) == calls


async def test_what_is_wrong_with_a_proposal_goes_back(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    wrong, right = partial(horizon=0), partial(horizon=18)
    events, gateway = await amended(registry, record, "eighteen turns", wrong, right)
    last = events[-1]
    assert isinstance(last, AmendmentCompleted), last
    (found,) = of(ValidationFailed, events)
    assert codes(found) == ["OUT_OF_RANGE"]
    proposed = of(ChangeProposed, events)
    assert [one.attempt for one in proposed] == [1, 2]
    assert [edit.summary for edit in proposed[1].edits] == ["horizon 15 → 18"]
    assert len(gateway.requests) == 2
    assert last.spent == SPENT + SPENT


async def test_identity_and_seed_stay_whatever_a_model_says(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    answer = partial(id="other", seed=99, name="Beta")
    events, _ = await amended(registry, record, "another name", answer)
    last = events[-1]
    assert isinstance(last, AmendmentCompleted), last
    assert [edit.summary for edit in last.edits] == ['name "Alpha" → "Beta"']


async def test_a_proposal_that_changes_nothing_is_no_version(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    events, _ = await amended(registry, record, "fifteen turns", partial(horizon=15))
    last = events[-1]
    assert isinstance(last, AmendmentFailed)
    assert (codes(last), last.spent) == (["AMENDMENT_CHANGES_NOTHING"], SPENT)


async def test_answers_run_out(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    limits = GenerationLimits(answers=1)
    events, _ = await amended(registry, record, "none", partial(horizon=0), limits=limits)
    last = events[-1]
    assert isinstance(last, AmendmentFailed)
    assert codes(last) == ["OUT_OF_RANGE", "BUDGET_EXHAUSTED"]
    assert await registry.get(record.scenario.scenario_id) == record


async def test_a_certified_scenario_has_to_earn_its_certificate_again(registry: ScenarioRegistry) -> None:
    record = await stored(registry, contest())
    scenario_id = record.scenario.scenario_id
    certificate = await certified(contest(), FEWEST)
    assert certificate.verdict is CertificateVerdict.CERTIFIED
    await registry.add_certificate(scenario_id, certificate)
    events, _ = await amended(registry, record, "make it slightly longer")
    last = events[-1]
    assert isinstance(last, AmendmentCompleted), last
    assert last.record.certificate_hash is not None
    kept = await registry.get_certificate(last.record.certificate_hash)
    assert (kept.spec_hash, kept.verdict) == (
        last.record.scenario.spec_hash,
        CertificateVerdict.CERTIFIED,
    )
    assert await registry.get(scenario_id) == last.record


async def test_a_version_without_a_certificate_needs_none(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    for level in (None, ValidationLevel.STATIC, ValidationLevel.DRY_RUN):
        events, _ = await amended(registry, record, LONGER, level=level)
        last = events[-1]
        assert isinstance(last, AmendmentCompleted)
        assert last.record.certificate_hash is None
        record = last.record


async def test_a_version_that_is_not_the_expected_one_is_left_alone(registry: ScenarioRegistry) -> None:
    record = await stored(registry, siege())
    with pytest.raises(ConflictError, match="latest version"):
        await amended(registry, record, LONGER, expected_hash="0" * 64)
    events, _ = await amended(registry, record, LONGER, expected_hash=record.scenario.spec_hash)
    assert isinstance(events[-1], AmendmentCompleted)


async def test_whoever_is_slower_does_not_undo_a_version_that_came_meanwhile(
    registry: ScenarioRegistry,
) -> None:
    record = await stored(registry, siege())
    other = siege() | {"horizon": 14}
    with pytest.raises(ConflictError):
        await amended(registry, record, LONGER, meanwhile=other)
    latest = await registry.get(record.scenario.scenario_id)
    assert latest.scenario.spec_hash == program(other).spec_hash


async def test_what_cannot_be_ordered_is_refused(registry: ScenarioRegistry) -> None:
    record = await stored(registry, chance(0.5))
    for instruction in ("", "  ", "x" * 200_000):
        with pytest.raises(InvalidArgumentError, match="instruction"):
            await amended(registry, record, instruction)
    async with registry._database.write() as connection:
        await registry.delete(record.scenario.scenario_id, connection)
    with pytest.raises(NotFoundError):
        await amended(registry, record, LONGER)
