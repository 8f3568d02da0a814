"""The conversation that writes scenarios."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from peripety.engine.policies.types import Decision, ToolRequest
from peripety.errors import ConflictError, FailedPreconditionError, UnavailableError
from peripety.policy.authoring.prompts import load_prompt
from peripety.policy.authoring.scenario_authors import (
    ScenarioGeneratorSession,
    feedback_message,
    generate_scenarios,
)
from peripety.policy.types import (
    DiscardedScenario,
    Expectation,
    ScenarioCorrection,
    ScenarioFeedback,
    ScenarioOrigin,
    TestScenario,
)
from support.gateway.fake_gateway import TOKENS, FakeGateway, cut_off
from support.policy.models import generated_scenario, told, tool

TOOLS = (tool("a"), tool("b"))
HANDWRITTEN = generated_scenario("by hand", "allow", source=ScenarioOrigin.HANDWRITTEN, at="/a")
CORRECTION = ScenarioCorrection("one", Expectation.ALLOW, Expectation.DENY, "nobody may")
FEEDBACK = ScenarioFeedback((CORRECTION,))


def session(gateway: FakeGateway, **options: Any) -> ScenarioGeneratorSession:
    return ScenarioGeneratorSession(gateway, "the system text", TOOLS, **options)


def answer(*scenarios: TestScenario) -> dict[str, Any]:
    return {"scenarios": [*map(told, scenarios)]}


async def test_the_first_turn_asks_with_the_task_and_later_ones_with_the_feedback_alone() -> None:
    model = FakeGateway(answer(generated_scenario("one")), answer(generated_scenario("two", at="/b")))
    writes = session(model)
    await writes.generate()
    await writes.regenerate(FEEDBACK)
    first, second = model.requests
    task = load_prompt("scenarios")
    assert first.messages[0].text.startswith(task)
    assert second.messages[-1].text == feedback_message(FEEDBACK)
    assert "nobody may" in second.messages[-1].text
    assert sum(task in message.text for message in second.messages) == 1


async def test_system_text_and_schema_are_the_same_in_every_turn_and_messages_only_grow() -> None:
    model = FakeGateway(*(answer(generated_scenario(f"{n}", at=f"/{n}")) for n in range(3)))
    writes = session(model)
    await writes.generate()
    await writes.regenerate(FEEDBACK)
    await writes.regenerate(ScenarioFeedback())
    for before, after in pairwise(model.requests):
        assert (before.system, before.schema) == (after.system, after.schema)
        assert before.messages == after.messages[: len(before.messages)]
        assert after.messages[len(before.messages)].text == json.dumps(
            answer(generated_scenario(str(len(before.messages) // 2), at=f"/{len(before.messages) // 2}")),
        )
    assert writes.turn_count == 3
    assert [entry["role"] for entry in writes.get_history()] == ["user", "assistant"] * 3
    json.dumps(writes.get_history())


async def test_answers_have_room_and_the_prompt_cache_is_asked_for() -> None:
    model = FakeGateway(answer())
    await session(model, model="x/y").generate()
    (request,) = model.requests
    assert (request.answer_tokens, request.model) == (8_192, "x/y")
    assert request.cache.enabled
    assert request.cache.expected_reuse > 0


async def test_an_answer_may_only_be_about_the_tools_of_the_conversation() -> None:
    other = {
        **told(generated_scenario("one")),
        "request": {"server_name": "x", "tool_name": "a", "arguments": {}},
    }
    model = FakeGateway({"scenarios": [other]}, answer(generated_scenario("two")))
    (written,) = await session(model).generate()
    assert written.description == "two"
    assert "x" in model.requests[1].messages[-1].text


async def test_handwritten_scenarios_come_first_unchanged_and_are_not_written_again() -> None:
    same = generated_scenario("another name", "deny", at="/a")
    model = FakeGateway(
        answer(same, generated_scenario("one", at="/b"), generated_scenario("by hand", at="/c"))
    )
    writes = session(model, handwritten=(HANDWRITTEN,))
    first, *written = await writes.generate()
    assert first is HANDWRITTEN
    assert [one.description for one in written] == ["one", "by hand (2)"]
    assert {one.source for one in written} == {ScenarioOrigin.GENERATED}
    assert '"description":"by hand"' in model.requests[0].messages[0].text


async def test_another_turn_returns_the_new_scenarios_only() -> None:
    model = FakeGateway(answer(generated_scenario("one")), answer(generated_scenario("two", at="/b")))
    writes = session(model, handwritten=(HANDWRITTEN,))
    await writes.generate()
    (written,) = await writes.regenerate(FEEDBACK)
    assert written.description == "two"


async def test_progress_names_the_turn() -> None:
    heard: list[str] = []
    model = FakeGateway(answer(generated_scenario("one")))
    writes = session(model)
    await writes.generate(heard.append)
    await writes.regenerate(FEEDBACK, heard.append)
    assert [line[-6:] for line in heard] == ["turn 1", "turn 2"]


@pytest.mark.parametrize("bad", ["no JSON at all", cut_off(), {"scenarios": [{"description": "half"}]}])
async def test_a_bad_answer_costs_one_repair_and_leaves_no_trace_in_the_history(bad: Any) -> None:
    model = FakeGateway(bad, answer(generated_scenario("one")))
    writes = session(model)
    await writes.generate()
    assert len(model.requests) == 2
    (turn,) = writes.turns
    assert (turn.turn, turn.scenarios, turn.repaired) == (1, 1, True)
    assert turn.spent.usage == TOKENS + TOKENS
    assert len(writes.get_history()) == 2


@pytest.mark.parametrize("failure", ["never JSON", UnavailableError("gone")])
async def test_a_turn_that_fails_leaves_the_conversation_as_it_was(failure: Any) -> None:
    bad = (failure,) if isinstance(failure, Exception) else (failure, failure)
    model = FakeGateway(answer(generated_scenario("one")), *bad, answer(generated_scenario("two", at="/b")))
    writes = session(model)
    await writes.generate()
    before = writes.get_history()
    with pytest.raises((FailedPreconditionError, UnavailableError)):
        await writes.regenerate(FEEDBACK)
    assert (writes.get_history(), writes.turn_count) == (before, 1)
    (written,) = await writes.regenerate(FEEDBACK)
    assert written.description == "two"


async def test_cache_reads_and_writes_of_every_turn_are_told() -> None:
    model = FakeGateway(answer(generated_scenario("one")))
    writes = session(model)
    await writes.generate()
    await writes.regenerate(FEEDBACK)
    assert [turn.spent.usage.cache_read_tokens for turn in writes.turns] == [TOKENS.cache_read_tokens] * 2
    assert [turn.spent.usage.cache_write_tokens for turn in writes.turns] == [TOKENS.cache_write_tokens] * 2


async def test_no_more_turns_than_allowed() -> None:
    model = FakeGateway(answer(generated_scenario("one")))
    writes = session(model, max_turns=1)
    await writes.generate()
    with pytest.raises(FailedPreconditionError) as refused:
        await writes.regenerate(FEEDBACK)
    assert (refused.value.code, writes.max_turns, len(model.requests)) == ("MAX_TURNS_REACHED", 1, 1)


async def test_generating_comes_first_and_once() -> None:
    writes = session(FakeGateway(answer(generated_scenario("one"))))
    with pytest.raises(FailedPreconditionError):
        await writes.regenerate(FEEDBACK)
    await writes.generate()
    with pytest.raises(ConflictError):
        await writes.generate()


async def test_corrected_scenarios_are_asked_for_again_only_when_wanted() -> None:
    for wanted in (False, True):
        model = FakeGateway(answer(generated_scenario("one")))
        writes = session(model, replace_corrected=wanted)
        await writes.generate()
        discarded = DiscardedScenario(generated_scenario("x"), "structural-a", Decision.DENY)
        await writes.regenerate(ScenarioFeedback((CORRECTION,), (discarded,)))
        assert ("corrected and discarded ones" in model.requests[1].messages[-1].text) is wanted


async def test_a_single_shot_means_the_same_as_a_first_turn() -> None:
    one = FakeGateway(answer(generated_scenario("one"), generated_scenario("again")))
    other = FakeGateway(answer(generated_scenario("one"), generated_scenario("again")))
    shot = await generate_scenarios(one, "the system text", TOOLS, handwritten=(HANDWRITTEN,))
    assert shot == await session(other, handwritten=(HANDWRITTEN,)).generate()
    assert [(each.system, each.messages) for each in one.requests] == [
        (each.system, each.messages) for each in other.requests
    ]


async def test_without_tools_nothing_is_asked() -> None:
    model = FakeGateway("never")
    assert await generate_scenarios(model, "s", (), handwritten=(HANDWRITTEN,)) == (HANDWRITTEN,)
    assert not model.requests


PROBE = TestScenario(
    "a probe",
    ToolRequest("server", "tool", {"b": [1], "a": "é"}),
    Expectation.NOT_ALLOW,
    "no one says so",
)
ESCALATE_CORRECTION = ScenarioCorrection(
    "a wrong one", Expectation.DENY, Expectation.ESCALATE, "a person has to look"
)
DISCARDED = DiscardedScenario(
    replace(PROBE, description="an impossible one"),
    "protected-paths",
    Decision.DENY,
)
ALL = ScenarioFeedback((ESCALATE_CORRECTION,), (DISCARDED,), (PROBE,))


def sections(feedback: ScenarioFeedback, **options: bool) -> list[str]:
    return feedback_message(feedback, **options).split("\n\n")


def test_corrections_come_before_discarded_scenarios_before_gaps_before_the_instruction() -> None:
    corrected, discarded, gaps, instruction = sections(ALL)
    for part in ('"a wrong one"', "not deny but escalate", "a person has to look"):
        assert part in corrected
    for part in ('"an impossible one"', "protected-paths", "always decides deny", "Do not write them again"):
        assert part in discarded
    for part in ("server/tool", '{"a": "é", "b": [1]}', "expected: not_allow"):
        assert part in gaps
    assert "take the place of the discarded ones" in instruction


@pytest.mark.parametrize(
    ("feedback", "left"),
    [
        (ScenarioFeedback(corrections=(ESCALATE_CORRECTION,)), "a wrong one"),
        (ScenarioFeedback(discarded=(DISCARDED,)), "an impossible one"),
        (ScenarioFeedback(probes=(PROBE,)), "server/tool"),
    ],
)
def test_a_list_without_entries_has_no_section(feedback: ScenarioFeedback, left: str) -> None:
    section, _ = sections(feedback)
    assert left in section


def test_without_anything_to_say_the_instruction_remains() -> None:
    (instruction,) = sections(ScenarioFeedback())
    assert "Do not repeat a discarded scenario" in instruction
    assert "what a correction calls wrong" in instruction
    assert sections(ALL)[-1] == instruction


def test_corrected_scenarios_are_asked_for_again_only_when_that_is_wanted() -> None:
    assert "corrected and discarded ones" in sections(ALL, replace_corrected=True)[-1]
    assert "corrected and discarded ones" not in sections(ALL)[-1]


def test_the_same_findings_are_told_in_the_same_bytes() -> None:
    other = replace(PROBE, request=ToolRequest("server", "tool", {"a": "é", "b": [1]}))
    assert feedback_message(ScenarioFeedback(probes=(other,))) == feedback_message(
        ScenarioFeedback(probes=(PROBE,)),
    )
