"""Models of graded quality write specifications, in the protocols of providers, over real connections."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from google.protobuf.duration_pb2 import Duration

from peripety import engine
from peripety.api.common.v1 import common_pb2 as common
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.core.config import ProviderName
from peripety.engine.patterns.syntax import Pattern
from peripety.llmsim.script.types import Script, ScriptResponse, ScriptRule
from support.gateway.providers import PROVIDERS
from support.scenario.generation import (
    GRADES,
    LEVEL,
    ORIGINAL_PROVIDERS,
    authoring,
    difference,
    good_specs,
    in_turn,
    patient,
    saying,
    stubborn,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.gateway.providers import Spoken
    from support.scenario.generation import Heard


pytestmark = pytest.mark.slow(reason="writes scenarios with dozens of flawed models")


GOOD = good_specs()[0]
FAULTY = {name: grade for name, grade in GRADES.items() if grade.code is not None}
each_provider = pytest.mark.parametrize("spoken", ORIGINAL_PROVIDERS, ids=str)
OTHER_PROVIDERS = [
    spoken
    for spoken in PROVIDERS
    if spoken not in ORIGINAL_PROVIDERS and spoken.name is not ProviderName.GENERIC
]
MODEST = next(spoken for spoken in PROVIDERS if spoken.name is ProviderName.GENERIC)
OPENAI = next(spoken for spoken in ORIGINAL_PROVIDERS if spoken.settings == "openai")


def certified(data: bytes) -> dict[str, Any]:
    """A specification that was handed over as good, which is held to that."""
    assert engine.validate(data) == []
    document: dict[str, Any] = json.loads(data)
    program = engine.compile(data)
    report = program.dry_run(runs=2_000, seed=99)
    budget = document["negativity_budget"]
    assert budget["min_fail_rate"] - 0.06 <= report.fail_rate <= budget.get("max_fail_rate", 1) + 0.06
    return document


def without_seed(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "seed"}


@each_provider
@pytest.mark.parametrize("name", GRADES)
async def test_who_listens_ends_with_a_certified_specification(
    tmp_path: Path,
    spoken: Spoken,
    name: str,
) -> None:
    grade = GRADES[name]
    async with authoring(tmp_path, spoken, patient(grade, GOOD)) as author:
        heard = await author.writes()
    completed = heard.completed
    document = certified(completed.spec)
    assert completed.HasField("certificate") == (LEVEL == pb.VALIDATION_LEVEL_CERTIFICATE)
    assert completed.attempts == len(author.model.requests) == (1 if grade.code is None else 2)
    assert completed.usage.calls == completed.attempts
    assert ("numbers_adjusted" in heard.kinds) == grade.is_moved
    if grade.code is not None:
        assert grade.code in heard.told[0]
        assert heard.kinds == ["draft", "findings", "repaired", "completed"]
        assert without_seed(document) == without_seed(GOOD)
    elif not grade.is_moved:
        assert without_seed(document) == without_seed(grade.write(GOOD).document)


@pytest.mark.parametrize("name", FAULTY)
async def test_who_does_not_listen_ends_with_the_finding_that_is_to_be_mended(
    tmp_path: Path,
    name: str,
) -> None:
    grade = FAULTY[name]
    async with authoring(tmp_path, OPENAI, stubborn(grade, GOOD)) as author:
        heard = await author.writes(max_attempts=3)
    rejected = heard.rejected
    codes = {finding.code for finding in rejected.findings.findings}
    assert {grade.code, "BUDGET_EXHAUSTED"} <= codes
    assert rejected.attempts == rejected.usage.calls == len(author.model.requests) == 3


@pytest.mark.parametrize("good", good_specs()[1:], ids=lambda good: good["id"])
@pytest.mark.parametrize("name", FAULTY)
async def test_other_specifications_are_mended_as_well(
    tmp_path: Path,
    name: str,
    good: dict[str, Any],
) -> None:
    async with authoring(tmp_path, OPENAI, patient(FAULTY[name], good)) as author:
        heard = await author.writes()
    assert heard.completed.attempts == 2
    certified(heard.completed.spec)


@pytest.mark.parametrize("spoken", OTHER_PROVIDERS, ids=str)
@pytest.mark.parametrize("name", ["prose around it", "wrong field names", "truncated"])
async def test_other_protocols_carry_the_same_conversation(tmp_path: Path, spoken: Spoken, name: str) -> None:
    async with authoring(tmp_path, spoken, patient(GRADES[name], GOOD)) as author:
        heard = await author.writes()
    assert without_seed(certified(heard.completed.spec)) == without_seed(GOOD)


@pytest.mark.parametrize("name", GRADES)
async def test_of_a_modest_model_anything_is_made_into_something_certified(tmp_path: Path, name: str) -> None:
    """The prompt requests little, the model returns something else, and rules write the missing parts."""
    async with authoring(tmp_path, MODEST, stubborn(GRADES[name], GOOD)) as author:
        heard = await author.writes()
    certified(heard.completed.spec)
    assert {finding.code for finding in heard.completed.findings} & {
        "WORDS_ONLY",
        "WITHOUT_MODEL",
        "FILLED_BY_RULE",
    }
    assert len(author.model.requests) <= 4


# --- repaired findings do not return ---


def changed(rule: dict[str, Any]) -> dict[str, Any]:
    """The good specification with something else in its first event."""
    first, *others = GOOD["random_events"]
    return {**GOOD, "random_events": [{**first, **rule}, *others]}


def marks(heard: Heard) -> list[set[tuple[str, str]]]:
    """Return the findings after each answer, by code and the rule that they are about."""
    found: list[set[tuple[str, str]]] = []
    document: dict[str, Any] = {}
    for event in heard.events:
        if event.HasField("draft"):
            document = json.loads(event.draft.spec)
        elif event.HasField("repaired"):
            document = json.loads(event.repaired.spec)
        elif event.HasField("findings"):
            errors = [f for f in event.findings.findings if f.severity == common.SEVERITY_ERROR]
            found.append({(error.code, owner(document, error.path)) for error in errors})
    return found


def owner(document: dict[str, Any], path: str) -> str:
    section, place, *_ = [*path.split("/")[1:], "", ""]
    entries = document.get(section)
    if isinstance(entries, list) and place.isdigit() and int(place) < len(entries):
        return f"{section}/{entries[int(place)].get('id')}"
    return section


async def test_a_finding_does_not_come_back_once_it_was_mended(tmp_path: Path) -> None:
    heavy, odd = changed({"weight": 0.9}), changed({"power": 1})
    script = in_turn(heavy, odd, heavy, odd, GOOD)
    async with authoring(tmp_path, OPENAI, script) as author:
        heard = await author.writes(max_attempts=6)
    told = marks(heard)
    mended: set[tuple[str, str]] = set()
    for before, after in pairwise(told):
        mended |= before - after
        assert not mended & after
    assert ("OUT_OF_RANGE", "random_events/event_1") in told[0]
    assert ("UNKNOWN_KEY", "random_events/event_1") in told[1]
    certified(heard.completed.spec)


async def test_what_only_play_shows_does_not_come_back_either(tmp_path: Path) -> None:
    unwinnable, easy = (GRADES[name].write(GOOD).document for name in ("unwinnable", "too easy"))
    script = saying(unwinnable, difference(unwinnable, easy), difference(easy, unwinnable), GOOD)
    async with authoring(tmp_path, OPENAI, script) as author:
        heard = await author.writes()
    first, *later = [{code for code, _ in found} for found in marks(heard)]
    assert "UNREACHABLE_WIN" in first
    assert later
    assert all("UNREACHABLE_WIN" not in found for found in later)
    certified(heard.completed.spec)


async def test_what_was_too_easy_and_then_too_hard_is_not_too_easy_again(tmp_path: Path) -> None:
    easy, budget = GRADES["too easy"].write(GOOD).document, GOOD["negativity_budget"]
    decay = {path: 6 * amount for path, amount in budget["decay_per_turn"].items()}
    hard = {**GOOD, "negativity_budget": {**budget, "max_fail_rate": 0.12, "decay_per_turn": decay}}
    script = saying(easy, difference(easy, hard), difference(hard, easy), GOOD)
    async with authoring(tmp_path, OPENAI, script) as author:
        heard = await author.writes()
    first, second, *later = heard.told
    assert ("TOO_EASY" in first, "TOO_HARD" in second) == (True, True)
    assert all("TOO_EASY" not in codes for codes in (second, *later))
    certified(heard.completed.spec)


async def test_parts_that_nobody_found_fault_with_stay_as_they_are(tmp_path: Path) -> None:
    """The model repairs the reported findings, and changes an action at the same time."""
    meddled = {**GOOD, "actions": [{**GOOD["actions"][0], "name": "Other"}, *GOOD["actions"][1:]]}
    script = in_turn(changed({"weight": 0.9}), meddled)
    async with authoring(tmp_path, OPENAI, script) as author:
        heard = await author.writes()
    assert without_seed(json.loads(heard.completed.spec)) == without_seed(GOOD)
    messages = [event.progress.message for event in heard.events if event.HasField("progress")]
    assert any("ignored 1 change" in message for message in messages), messages


# --- within its budget ---

ENDLESS = FAULTY["weights out of bounds"]


async def spending(tmp_path: Path, spoken: Spoken, budget: common.Budget) -> tuple[Heard, int]:
    """Return the result of an order with a budget, and the number of requests that reached the model."""
    async with authoring(tmp_path, spoken, stubborn(ENDLESS, GOOD)) as author:
        heard = await author.writes(max_attempts=8, budget=budget)
    return heard, len(author.model.requests)


def used_up(heard: Heard) -> bool:
    return "BUDGET_EXHAUSTED" in {finding.code for finding in heard.rejected.findings.findings}


@each_provider
async def test_tokens_end_the_work_before_the_cap_is_passed(tmp_path: Path, spoken: Spoken) -> None:
    cap = 40_000
    heard, calls = await spending(tmp_path, spoken, common.Budget(max_tokens=cap))
    usage = heard.rejected.usage
    assert used_up(heard)
    assert 0 < usage.tokens.input_tokens + usage.tokens.output_tokens <= cap
    assert 1 <= calls < 8
    assert usage.calls == calls


@each_provider
async def test_money_ends_the_work_before_the_cap_is_passed(tmp_path: Path, spoken: Spoken) -> None:
    # A few answers, each with the room for thoughts of its model.
    dollars = 0.06 if spoken is OPENAI else 0.12
    cap = common.Money(currency_code="USD", pico_units=int(dollars * 10**12))
    heard, calls = await spending(tmp_path, spoken, common.Budget(max_cost=cap))
    usage = heard.rejected.usage
    assert used_up(heard)
    assert 0 < usage.cost.pico_units <= cap.pico_units
    assert 1 <= calls < 8


async def test_time_ends_the_work(tmp_path: Path) -> None:
    heard, calls = await spending(tmp_path, OPENAI, common.Budget(max_time=Duration(nanos=10_000_000)))
    (said,) = [f.message for f in heard.rejected.findings.findings if f.code == "BUDGET_EXHAUSTED"]
    assert said.startswith("time limit of 0.01 s exceeded")
    assert calls < 8


async def test_calls_end_the_work_at_the_cap(tmp_path: Path) -> None:
    heard, calls = await spending(tmp_path, OPENAI, common.Budget(max_calls=2))
    assert used_up(heard)
    assert calls == heard.rejected.usage.calls == 2


# --- what it costs ---


@each_provider
async def test_system_text_and_schema_stay_the_same_and_are_read_from_the_cache(
    tmp_path: Path,
    spoken: Spoken,
) -> None:
    script = in_turn(
        changed({"weight": 0.9}),
        changed({"power": 1}),
        changed({"effects": [{"op": "no"}]}),
        GOOD,
    )
    async with authoring(tmp_path, spoken, script) as author:
        heard = await author.writes()
    requests = author.model.requests
    assert len(requests) == 4
    assert len({request.system for request in requests}) == 1
    assert len({json.dumps(request.schema) for request in requests}) == 1
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
    answers = [
        event.draft.usage if event.HasField("draft") else event.repaired.usage
        for event in heard.events
        if event.HasField("draft") or event.HasField("repaired")
    ]
    later = answers[1:]
    assert all(usage.tokens.cache_read_tokens > 0.7 * usage.tokens.input_tokens for usage in later), answers
    total = heard.completed.usage
    assert total.tokens.input_tokens == sum(usage.tokens.input_tokens for usage in answers)
    assert total.tokens.output_tokens == sum(usage.tokens.output_tokens for usage in answers)
    assert total.cost.pico_units == sum(usage.cost.pico_units for usage in answers) > 0


# --- what was written before ---


async def test_what_was_written_before_is_handed_over_without_a_call(tmp_path: Path) -> None:
    async with authoring(tmp_path, OPENAI, patient(FAULTY["missing parts"], GOOD)) as author:
        first = (await author.writes()).completed
        calls = len(author.model.requests)
        again = (await author.writes()).completed
        assert len(author.model.requests) == calls
        assert (first.from_cache, again.from_cache) == (False, True)
        assert (again.spec, again.certificate, again.model) == (first.spec, first.certificate, first.model)
        assert again.usage.calls == 0
        assert again.usage.tokens.input_tokens == 0


@pytest.mark.parametrize(
    "other",
    [{"refresh": True}, {"description": "beta"}, {"seed": 8}, {"level": pb.VALIDATION_LEVEL_STATIC}],
)
async def test_whatever_is_asked_otherwise_is_asked_of_the_model(
    tmp_path: Path,
    other: dict[str, Any],
) -> None:
    async with authoring(tmp_path, OPENAI, patient(GRADES["perfect"], GOOD)) as author:
        await author.writes()
        again = (await author.writes(**other)).completed
    assert not again.from_cache
    assert len(author.model.requests) == 2


async def test_what_was_refused_is_asked_again(tmp_path: Path) -> None:
    async with authoring(tmp_path, OPENAI, stubborn(ENDLESS, GOOD)) as author:
        for calls in (2, 4):
            assert (await author.writes(max_attempts=2)).rejected
            assert len(author.model.requests) == calls


async def test_lost_events_are_taken_up_again_without_a_call(tmp_path: Path) -> None:
    async with authoring(tmp_path, OPENAI, patient(FAULTY["unwinnable"], GOOD)) as author:
        request_id = str(uuid4())
        heard = await author.writes(request_id=request_id)
        calls = len(author.model.requests)
        for after in (0, 2, len(heard.events) - 1):
            rest = await author.writes(request_id=request_id, after_sequence=after)
            assert rest.events == heard.events[after:]
        assert len(author.model.requests) == calls


async def test_prose_alone_ends_without_an_endless_conversation(tmp_path: Path) -> None:
    script = Script((ScriptRule(Pattern(), ScriptResponse("I would rather not write any of that.")),))
    async with authoring(tmp_path, OPENAI, script) as author:
        heard = await author.writes(max_attempts=4)
    assert heard.events[-1].WhichOneof("event") in {"completed", "rejected"}
    assert len(author.model.requests) <= 4
