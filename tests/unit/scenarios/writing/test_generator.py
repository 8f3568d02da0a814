"""Generation: a model proposes, the engine checks, the events say what happened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.author.author import build_spec
from peripety.core.concurrency import closing
from peripety.core.config import Config, ProviderName
from peripety.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import TextDelta
from peripety.scenario.generation.draft_cache import prompt
from peripety.scenario.generation.loop import ScenarioGenerator
from peripety.scenario.outline_authoring import outline_author
from peripety.scenario.types import (
    DraftProposed,
    DraftRevised,
    GenerationLimits,
    GenerationOrder,
    NumbersAdjusted,
    Progress,
    ProgressStage,
    SpecGenerated,
    SpecGenerationFailed,
    ValidationFailed,
    ValidationLevel,
)
from support.engine.specs import chance, siege
from support.scenario.batches import WORKERS
from support.scenario.generation import ANSWERS
from support.session.sessions import SILENCE, SPENT, TOKENS, ScriptedGateway

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from peripety.author.blueprint import Blueprint
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent
    from peripety.scenario.types import GenerationEvent


GOOD = json.dumps({**chance(0.5), "seed": 99})
EASY = json.dumps(chance(0.2, min_fail_rate=0.9))
WRONG = json.dumps({**chance(0.5), "rules": []})
WORSE = json.dumps(
    {**chance(0.5), "negativity_budget": {"min_fail_rate": 0.5, "decay_per_turn": {"state.z": 1}}},
)
BUDGET = json.dumps({"negativity_budget": {"decay_per_turn": {"state.a": 0}}})
MISSED = json.dumps(siege(min_fail_rate=0.65))
NO_ANSWER = "I would rather talk about something else."


async def generated(
    *answers: str | list[str] | Exception,
    provider: ProviderName = ProviderName.OPENAI,
    **order: Any,
) -> tuple[list[GenerationEvent], ScriptedGateway]:
    """Everything that happens when a model gives these answers, and what it was asked."""
    gateway = ScriptedGateway(list(answers))
    events = ScenarioGenerator(gateway, provider, WORKERS).generate(
        GenerationOrder(**{"description": "a gauge falls", "level": ValidationLevel.STATIC, **order}),
    )
    async with closing(events) as stream:
        return [event async for event in stream], gateway


def of(kind: type[Any], events: list[GenerationEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def codes(event: SpecGenerated | SpecGenerationFailed | ValidationFailed) -> list[str]:
    return [finding.code for finding in event.findings]


async def test_a_good_answer_is_the_specification() -> None:
    events, gateway = await generated(GOOD)
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    assert (last.attempts, last.spent) == (1, SPENT)
    assert (last.model, last.without_model, last.findings) == ("fake/scripted", False, ())
    assert last.document == engine.canonicalize(engine.parse(last.document))
    (draft,) = of(DraftProposed, events)
    assert (draft.attempt, draft.spent) == (1, SPENT)
    assert len(gateway.requests) == 1


async def test_the_prompt_is_a_file_and_the_question_is_the_description_as_json() -> None:
    text = 'anything at all: "{{quoted}}", \u200f\u05d0, \U0001f600'
    _, gateway = await generated(GOOD, description=text, seed=5)
    (request,) = gateway.requests
    assert request.system == prompt("generate")
    assert [json.loads(message.text) for message in request.messages] == [{"description": text, "seed": 5}]
    assert request.schema is not None
    assert request.schema.name == "scenario_spec"


async def test_the_seed_is_the_orders_or_else_the_descriptions() -> None:
    seeds = []
    for order in ({"seed": 7}, {}, {}, {"description": "another"}):
        events, _ = await generated(GOOD, **order)
        seeds.append(json.loads(events[-1].document)["seed"])  # type: ignore[union-attr]  # it is completed
    assert seeds[0] == 7
    assert seeds[1] == seeds[2] != seeds[3]
    assert 99 not in seeds


async def test_what_was_wrong_and_what_was_changed_is_told() -> None:
    events, gateway = await generated(WRONG, WORSE, BUDGET)
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    assert (last.attempts, last.spent.calls) == (3, 3)
    assert [type(event) for event in events if not isinstance(event, Progress)] == [
        DraftProposed,
        ValidationFailed,
        DraftRevised,
        ValidationFailed,
        DraftRevised,
        SpecGenerated,
    ]
    (draft,), (first, second), (_, rewritten) = (
        of(DraftProposed, events),
        of(ValidationFailed, events),
        of(DraftRevised, events),
    )
    assert json.loads(draft.document)["rules"] == []
    assert (codes(first), codes(second)) == (["UNKNOWN_KEY"], ["UNKNOWN_PATH"])
    assert rewritten.attempt == 3
    assert rewritten.spent == draft.spent
    assert [edit.summary for edit in rewritten.edits] == ["decay: a 0 added; z 1 removed"]
    assert engine.canonicalize(json.loads(rewritten.document)) == last.document
    assert "UNKNOWN_KEY" in gateway.requests[1].messages[-1].text


async def test_prose_around_the_specification_does_not_hurt() -> None:
    events, _ = await generated(f"Here it is:\n```json\n{GOOD}\n```\nGood luck!")
    assert isinstance(events[-1], SpecGenerated)


async def test_a_model_that_writes_nothing_of_a_document_twice_is_asked_part_by_part() -> None:
    limits = GenerationLimits(answers=6)
    events, gateway = await generated(NO_ANSWER, NO_ANSWER, *ANSWERS, limits=limits)
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    assert codes(last) == ["WORDS_ONLY"]
    assert (last.attempts, last.without_model, last.model) == (6, False, "fake/scripted")
    assert json.loads(last.document)["name"] == "A gauge and its keeper"
    assert [codes(found) for found in of(ValidationFailed, events)] == [["NOT_JSON"], ["NOT_JSON"]]
    assert gateway.requests[2].system == prompt("stepwise")
    assert engine.validate(last.document) == []


async def test_a_server_about_which_nothing_is_known_is_asked_part_by_part_at_once() -> None:
    events, gateway = await generated(*ANSWERS, provider=ProviderName.GENERIC)
    assert isinstance(events[-1], SpecGenerated)
    assert codes(events[-1]) == ["WORDS_ONLY"]
    assert [request.system for request in gateway.requests] == [prompt("stepwise")] * 4
    (draft,) = of(DraftProposed, events)
    assert engine.canonicalize(engine.parse(draft.document)) == events[-1].document


async def test_parts_that_make_no_fair_scenario_are_made_up_for_by_rules_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unfair = iter([json.loads(EASY)])

    def unfair_at_first(blueprint: Blueprint, seed: int, *, spec_id: str) -> dict[str, Any]:
        return next(unfair, None) or build_spec(blueprint, seed, spec_id=spec_id)

    monkeypatch.setattr(outline_author, "build_spec", unfair_at_first)
    events, gateway = await generated(*ANSWERS, provider=ProviderName.GENERIC, level=ValidationLevel.DRY_RUN)
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    assert "FILLED_BY_RULES" in codes(last)
    assert len(gateway.requests) == 4
    kinds = [type(event) for event in events if not isinstance(event, Progress)]
    assert kinds == [DraftProposed, ValidationFailed, DraftRevised, SpecGenerated]


@pytest.mark.parametrize(
    ("model", "provider", "system"),
    [
        ("openai/x", ProviderName.GENERIC, "generate"),
        ("generic/x", ProviderName.OPENAI, "stepwise"),
        ("x/y", ProviderName.GENERIC, "stepwise"),
        (None, ProviderName.OPENAI, "generate"),
    ],
)
async def test_the_model_that_an_order_names_decides(
    model: str | None,
    provider: ProviderName,
    system: str,
) -> None:
    answers = [GOOD] if system == "generate" else ANSWERS
    _, gateway = await generated(*answers, model=model, provider=provider)
    assert gateway.requests[0].system == prompt(system)
    assert gateway.requests[0].model == model


async def test_a_small_context_gets_a_part_of_a_long_description() -> None:
    _, gateway = await generated(*ANSWERS, provider=ProviderName.GENERIC, description="word " * 20_000)
    assert len(gateway.requests[0].messages[-1].text) < 2_200


async def test_a_model_that_gives_nothing_of_use_leaves_the_words_to_the_description() -> None:
    events, _ = await generated(NO_ANSWER, provider=ProviderName.GENERIC)
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    assert codes(last) == ["WITHOUT_MODEL"]
    assert (last.without_model, last.model, last.attempts) == (True, "", 1)
    assert any("Gauge" in key for key in json.loads(last.document)["state"])


async def test_attempts_are_counted_and_held() -> None:
    for limit in (1, 2, 3):
        events, gateway = await generated(WORSE, limits=GenerationLimits(answers=limit))
        last = events[-1]
        assert isinstance(last, SpecGenerationFailed)
        assert codes(last) == ["UNKNOWN_PATH", "BUDGET_USED_UP"]
        assert (last.attempts, len(gateway.requests), last.spent.calls) == (limit, limit, limit)
        assert last.spent.usage.input_tokens == limit * TOKENS.input_tokens


async def test_with_one_answer_left_an_outline_is_asked_for_once() -> None:
    answers = (NO_ANSWER, NO_ANSWER, NO_ANSWER, *ANSWERS)
    events, gateway = await generated(*answers, limits=GenerationLimits(answers=3))
    assert isinstance(events[-1], SpecGenerated)
    assert codes(events[-1]) == ["WITHOUT_MODEL"]
    assert len(gateway.requests) == 3


async def test_no_call_is_made_once_the_tokens_are_used() -> None:
    limits = GenerationLimits(budget=Budget(max_tokens=TOKENS.input_tokens + TOKENS.output_tokens))
    events, gateway = await generated(WORSE, GOOD, limits=limits)
    last = events[-1]
    assert isinstance(last, SpecGenerationFailed)
    assert codes(last) == ["UNKNOWN_PATH", "BUDGET_USED_UP"]
    assert (last.spent.calls, last.spent.usage) == (1, TOKENS)
    assert len(gateway.requests) == 1


async def test_the_time_of_an_order_ends_an_answer_that_does_not_come() -> None:
    events, gateway = await generated([SILENCE], limits=GenerationLimits(budget=Budget(max_seconds=0.05)))
    last = events[-1]
    assert isinstance(last, SpecGenerationFailed)
    assert codes(last) == ["BUDGET_USED_UP"]
    assert gateway.cancelled == 1


async def test_each_request_may_use_what_those_before_it_left() -> None:
    _, gateway = await generated(WORSE, GOOD, limits=GenerationLimits(budget=Budget(max_calls=9)))
    budgets = [request.budget for request in gateway.requests]
    assert [budget.max_calls for budget in budgets if budget] == [9, 8]


async def test_a_dry_run_that_is_ordered_sends_its_findings_back() -> None:
    events, gateway = await generated(EASY, GOOD, level=ValidationLevel.DRY_RUN)
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    assert [codes(found) for found in of(ValidationFailed, events)] == [
        ["TOO_EASY", "REPAIR_OUT_OF_REACH", "IMPOSSIBLE_LOSS"],
    ]
    first, second = gateway.requests
    assert (second.system, second.schema) == (first.system, first.schema)
    assert second.messages[: len(first.messages)] == first.messages
    told = json.loads(second.messages[-1].text)["findings"]
    assert [(finding["code"], finding["path"]) for finding in told] == [
        ("TOO_EASY", "/negativity_budget/min_fail_rate"),
        ("REPAIR_OUT_OF_REACH", "/negativity_budget"),
        ("IMPOSSIBLE_LOSS", "/loss_conditions/1"),
    ]


async def test_where_only_the_budget_is_missed_numbers_are_moved_and_no_model_is_asked() -> None:
    events, gateway = await generated(MISSED, level=ValidationLevel.DRY_RUN)
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    (moved,) = of(NumbersAdjusted, events)
    assert moved.edits
    assert moved.before.fail_rate < 0.65
    assert len(gateway.requests) == 1
    assert of(ValidationFailed, events) == []
    weights = [json.loads(data)["random_events"][0]["weight"] for data in (MISSED, last.document)]
    assert weights[0] < weights[1]


async def test_a_scenario_that_misses_its_budget_again_and_again_is_refused() -> None:
    events, gateway = await generated(EASY, level=ValidationLevel.DRY_RUN)
    last = events[-1]
    assert isinstance(last, SpecGenerationFailed)
    assert codes(last) == ["TOO_EASY", "REPAIR_OUT_OF_REACH", "IMPOSSIBLE_LOSS", "BUDGET_USED_UP"]
    assert len(gateway.requests) == 4


async def test_without_a_dry_run_in_the_order_the_budget_is_left_to_compiling() -> None:
    events, _ = await generated(EASY)
    assert isinstance(events[-1], SpecGenerated)
    assert ProgressStage.DRY_RUNNING not in {event.stage for event in of(Progress, events)}


async def test_the_schema_alone_is_enough_where_only_that_is_ordered() -> None:
    events, _ = await generated(WORSE, level=ValidationLevel.SCHEMA)
    assert isinstance(events[-1], SpecGenerated)


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError("away", code="PROVIDER_FAILED"),
        FailedPreconditionError("no", code="ANSWER_REFUSED"),
    ],
)
async def test_what_asking_otherwise_does_not_mend_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        await generated(error)


async def test_a_prompt_that_does_not_fit_is_made_smaller() -> None:
    too_long = InvalidArgumentError("too long", code="CONTEXT_LENGTH_EXCEEDED")
    events, gateway = await generated(too_long, *ANSWERS, limits=GenerationLimits(answers=5))
    assert isinstance(events[-1], SpecGenerated)
    assert codes(events[-1]) == ["WORDS_ONLY"]
    assert len(gateway.requests) == 5


async def test_a_long_answer_reports_how_far_it_is() -> None:
    padded = json.dumps({**chance(0.5), "name": "x" * 200}) + " " * 5_000
    pieces = [padded[index : index + 100] for index in range(0, len(padded), 100)]
    events, _ = await generated(pieces)
    messages = [event.message for event in of(Progress, events)]
    assert sum("characters" in message for message in messages) == len(padded) // 2_000


async def test_progress_never_goes_back() -> None:
    for answers in ((GOOD,), (WORSE, GOOD), (NO_ANSWER, NO_ANSWER, *ANSWERS), (EASY, MISSED)):
        events, _ = await generated(*answers, level=ValidationLevel.DRY_RUN)
        fractions = [event.fraction for event in of(Progress, events)]
        assert fractions == sorted(fractions)
        assert 0 <= fractions[0] <= fractions[-1] <= 1


@pytest.mark.parametrize("size", [102_400, 0])
async def test_any_description_up_to_the_limit_will_do(size: int) -> None:
    events, _ = await generated(GOOD, description="x" * size)
    assert isinstance(events[-1], SpecGenerated)


@pytest.mark.parametrize(
    ("order", "field"),
    [
        ({"description": "é" * 51_201}, "description"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**53}, "seed"),
        ({"limits": GenerationLimits(answers=-1)}, "max_attempts"),
    ],
)
async def test_orders_out_of_range_name_the_field(order: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await generated(GOOD, **order)
    assert [violation.field for violation in caught.value.violations] == [field]


@pytest.mark.parametrize("level", [ValidationLevel.SCHEMA, ValidationLevel.STATIC, ValidationLevel.DRY_RUN])
async def test_the_offline_author_passes_and_says_what_it_is(level: ValidationLevel) -> None:
    gateway = LocalModelGateway(ProviderRegistry(Config()), CallExecutor(Config()))
    generator = ScenarioGenerator(gateway, ProviderName.OFFLINE, WORKERS)
    events = [event async for event in generator.generate(GenerationOrder("alpha wanes", level=level))]
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    assert (last.without_model, last.model) == (True, "offline/offline")
    assert last.spent.usage.output_tokens == 0


class Endless(ScriptedGateway):
    """A model that does not stop by itself."""

    closed = False

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        self.requests.append(request)
        try:
            while True:
                yield TextDelta("x" * 500)
        finally:
            self.closed = True


@pytest.mark.parametrize("provider", [ProviderName.OPENAI, ProviderName.GENERIC])
async def test_who_leaves_early_closes_the_call_to_the_model_at_once(provider: ProviderName) -> None:
    gateway = Endless()
    async with closing(
        ScenarioGenerator(gateway, provider, WORKERS).generate(GenerationOrder("a")),
    ) as events:
        async for event in events:
            if isinstance(event, Progress) and "characters" in event.message:
                break
    assert gateway.closed
