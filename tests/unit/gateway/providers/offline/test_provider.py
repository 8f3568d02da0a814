from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.author.spec_author import author_from_text
from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.gateway.providers.offline.provider import OfflineProvider
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import ChatMessage, Text, Tool
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import SchemaMethod, SchemaReport, StopReason, TextDelta, Usage
from support.gateway.requests import call_of

if TYPE_CHECKING:
    from peripety.gateway.providers.provider import Provider, ProviderEvent


TEXT = "We are in the gauge and the alpha is near the beta."
FACTS = {
    "turn": 1,
    "actions": [{"id": "act", "name": "Try the alpha", "params": {}}],
    "changes": [{"path": "state.alpha", "before": 1, "after": 2, "cause": "action:act"}],
    "log": [],
    "event": None,
    "status": {"kind": "ongoing", "condition": None, "message": None},
}


def request(*said: str, schema: str | None = None, seed: int | None = None) -> GenerateRequest:
    """Return a conversation in which every user message but the last has an answer."""
    messages = []
    for text in said:
        messages += [ChatMessage.user(text), ChatMessage.assistant("{}")]
    asked = ResponseSchema(schema, {}) if schema else None
    return GenerateRequest("system", tuple(messages[:-1]), schema=asked, seed=seed)


async def events_of(asked: GenerateRequest) -> list[ProviderEvent]:
    provider: Provider = OfflineProvider()
    return [event async for event in provider.stream(call_of(asked, "offline", "offline"))]


async def text_of(asked: GenerateRequest) -> str:
    return "".join(event.text for event in await events_of(asked) if isinstance(event, TextDelta))


async def value_of(asked: GenerateRequest) -> dict[str, Any]:
    value = json.loads(await text_of(asked))
    assert isinstance(value, dict)
    return value


async def test_a_scenario_is_authored_from_description_and_seed() -> None:
    asked = request(json.dumps({"description": TEXT, "seed": 7}), schema="scenario_spec")
    assert await value_of(asked) == author_from_text(TEXT, 7)


async def test_the_seed_of_the_request_counts_where_the_description_has_none() -> None:
    asked = request(json.dumps({"description": TEXT}), schema="scenario_spec", seed=8)
    assert await value_of(asked) == author_from_text(TEXT, 8)


@pytest.mark.parametrize("plain", [TEXT, "", "[" * 100_000, '"text"', "[1]", '{"other": 1}'])
async def test_any_other_message_is_the_description_itself(plain: str) -> None:
    assert await value_of(request(plain, schema="scenario_spec", seed=1)) == author_from_text(plain, 1)


async def test_findings_get_another_try_at_the_same_description() -> None:
    first = json.dumps({"description": TEXT, "seed": 7})
    findings = json.dumps({"findings": [{"code": "TOO_EASY", "path": "", "message": "it is too easy"}]})
    assert await value_of(request(first, findings, schema="scenario_spec")) == author_from_text(TEXT, 7, 1)
    assert await value_of(request(first, findings, "again", schema="scenario_spec")) == author_from_text(
        TEXT,
        7,
        2,
    )


async def test_a_new_description_starts_anew() -> None:
    said = [json.dumps({"description": text, "seed": 7}) for text in ("the gamma", TEXT)]
    assert await value_of(request(*said, schema="scenario_spec")) == author_from_text(TEXT, 7)


async def test_a_turn_is_told_from_its_facts() -> None:
    asked = request(json.dumps({"facts": FACTS, "view": {}}), schema="outcome")
    narrative = (await value_of(asked))["narrative"]
    assert narrative.startswith(OFFLINE_MARK)
    assert "Try the alpha" in narrative


async def test_the_language_follows_what_was_told_before() -> None:
    facts = json.dumps({"facts": {"actions": [], "changes": []}})
    told = json.dumps({"narrative": "Es wird Abend, und niemand ist mehr auf der Straße zu sehen."})
    history = [ChatMessage.user(facts), ChatMessage.assistant(told), ChatMessage.user(facts)]
    asked = request(facts, schema="outcome")
    german = (await value_of(replace(asked, messages=(*history,))))["narrative"]
    other = (await value_of(asked))["narrative"]
    assert german != other
    assert not german.startswith(OFFLINE_MARK)
    assert other.startswith(OFFLINE_MARK)


async def test_the_facts_are_found_behind_a_request_for_repair() -> None:
    facts = json.dumps({"facts": FACTS})
    assert await value_of(request(facts, "again", schema="outcome")) == await value_of(
        request(facts, schema="outcome"),
    )


@pytest.mark.parametrize(
    "said",
    [
        "what happened?",
        "{}",
        json.dumps({"facts": 1}),
        json.dumps({"facts": {"actions": []}}),
        json.dumps({"facts": {**FACTS, "changes": [1]}}),
        json.dumps({"facts": {**FACTS, "status": "lost"}}),
    ],
)
async def test_a_turn_without_proper_facts_is_refused_with_what_is_wrong(said: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await events_of(request(said, schema="outcome"))
    assert caught.value.code == "FACTS_INVALID"
    assert caught.value.violations


async def test_any_other_schema_takes_a_model() -> None:
    with pytest.raises(FailedPreconditionError, match="MODEL_PROVIDER") as caught:
        await events_of(request("hello", schema="verdict"))
    assert caught.value.code == "MODEL_REQUIRED"


async def test_a_chat_is_answered_with_how_to_get_a_model() -> None:
    answer = await text_of(request("Hello!"))
    for told in ("No language model", "MODEL_PROVIDER", "OPENAI_API_BASE", "MODEL_NAME", OFFLINE_MARK):
        assert told in answer


async def test_the_answer_comes_in_pieces_and_then_ends_once() -> None:
    *pieces, last = await events_of(request(json.dumps({"facts": FACTS}), schema="outcome"))
    assert len(pieces) > 5
    assert all(isinstance(piece, TextDelta) and piece.text for piece in pieces)
    assert last == AnswerFinished(
        (Text("".join(piece.text for piece in pieces if isinstance(piece, TextDelta))),),
        StopReason.END,
        Usage(),
        "offline",
        SchemaReport(SchemaMethod.NATIVE),
    )


async def test_others_get_their_turn_between_two_pieces() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    busy = asyncio.create_task(other())
    pieces = len(await events_of(request("Hello!")))
    busy.cancel()
    assert turns >= pieces - 1


async def test_the_same_request_gets_the_same_pieces() -> None:
    asked = request(json.dumps({"description": TEXT}), schema="scenario_spec")
    assert await events_of(asked) == await events_of(asked)


async def test_closing_it_lets_nothing_go() -> None:
    provider = OfflineProvider()
    await provider.aclose()
    assert provider.name == "offline"


@pytest.mark.parametrize(
    ("name", "question"),
    [
        (
            "Rest until the morning",
            "Which action do you mean? Use words of its name: Rest until the morning.",
        ),
        (
            "Descansar hasta la ma\u00f1ana",
            "\u00bfQu\u00e9 acci\u00f3n quieres decir? Usa palabras de su nombre: {name}.",
        ),
    ],
)
async def test_words_that_fit_no_action_are_asked_about_in_the_language_of_the_actions(
    name: str, question: str
) -> None:
    tools = (
        Tool("action:rest", f"{name}.", {"type": "object", "properties": {}}),
        Tool("ask_player", "Ask.", {"type": "object", "properties": {}}),
    )
    facts = json.dumps({"facts": {**FACTS, "actions": [], "input": "xyzzy"}})
    asked = replace(request(facts, schema="outcome"), tools=tools)
    (finished,) = [one for one in await events_of(asked) if isinstance(one, AnswerFinished)]
    assert question.format(name=name) in str(finished)
