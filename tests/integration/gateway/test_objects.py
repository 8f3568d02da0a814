"""Objects from every provider: their requests, their events, and the handling of invalid ones."""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderName
from peripety.errors import FailedPreconditionError, PeripetyError
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
from peripety.gateway.structured_output.json_repair import complete_members
from peripety.gateway.structured_output.validator import usage_until
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.corruptions import SCHEMA as SPOILT_SCHEMA
from support.gateway.corruptions import begins, corpus
from support.gateway.providers import PROVIDERS, Spoken, channel_to
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.llmsim.script.types import Script


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "gauges": {"type": "array", "items": {"type": "integer", "multipleOf": 1}, "uniqueItems": True},
        "note": {"type": "string"},
    },
    "required": ["name", "gauges"],
    "additionalProperties": False,
}
VALUE = {"name": "alpha", "gauges": list(range(40)), "note": "a text with, commas: and {braces}"}
NESTED = {"type": "object", "properties": {"inner": {"$ref": "#"}, "name": {"type": "string"}}}
DEEP = {"name": "alpha", "inner": {"name": "beta", "inner": {"name": "gamma"}}}
LENGTH, MULTIPLE = "/properties/name/minLength", "/properties/gauges/items/multipleOf"
UNIQUE = "/properties/gauges/uniqueItems"
REPORTS: dict[ProviderName, tuple[int, list[str]]] = {
    ProviderName.ANTHROPIC: (pb.SCHEMA_METHOD_NATIVE, [LENGTH, MULTIPLE, UNIQUE]),
    ProviderName.OPENAI: (pb.SCHEMA_METHOD_NATIVE, [LENGTH, UNIQUE]),
    ProviderName.OPENAI_RESPONSES: (pb.SCHEMA_METHOD_NATIVE, [LENGTH, UNIQUE]),
    ProviderName.AZURE: (pb.SCHEMA_METHOD_NATIVE, [LENGTH, UNIQUE]),
    ProviderName.GEMINI: (pb.SCHEMA_METHOD_NATIVE, [LENGTH, MULTIPLE, UNIQUE]),
    ProviderName.OLLAMA: (pb.SCHEMA_METHOD_NATIVE, []),
    ProviderName.GENERIC: (pb.SCHEMA_METHOD_GRAMMAR, []),
    ProviderName.DEEPSEEK: (pb.SCHEMA_METHOD_EXTRACTION, []),
    ProviderName.SCRIPTED: (pb.SCHEMA_METHOD_NATIVE, [LENGTH, MULTIPLE, UNIQUE]),
}
PACE = {"tokens_per_chunk": 3, "tokens_per_second": 5_000}


def asking(text: str = "Read the gauges.", schema: Any = None, model: str = "") -> pb.GenerateObjectRequest:
    message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text)])
    return pb.GenerateObjectRequest(
        request_id=str(uuid.uuid4()),
        prompt=pb.Prompt(messages=[message]),
        options=pb.GenerationOptions(model=model),
        schema=pb.ResponseSchema(name="reading", document=json.dumps(schema or SCHEMA).encode()),
    )


async def events_of(
    tmp_path: Path,
    spoken: Spoken,
    scenario: Script,
    request: pb.GenerateObjectRequest,
) -> list[pb.GenerateObjectResponse]:
    with served(scenario) as server:
        async with channel_to(tmp_path, spoken, server.url) as channel:
            events = [event async for event in GatewayServiceStub(channel).GenerateObject(request)]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    return events


def partials(events: list[pb.GenerateObjectResponse]) -> list[Any]:
    return [json.loads(event.partial) for event in events if event.WhichOneof("event") == "partial"]


@pytest.mark.slow_after(2, reason="one case for each provider")
@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_an_object_grows_and_its_report_says_how_it_was_asked_for(
    tmp_path: Path,
    spoken: Spoken,
) -> None:
    scenario = ScriptBuilder(pace=PACE).default_response({"json": VALUE}).build()
    events = await events_of(tmp_path, spoken, scenario, asking())
    shown, completed = partials(events), events[-1].completed
    assert shown
    assert all(begins(earlier, later) for earlier, later in itertools.pairwise([*shown, VALUE]))
    assert json.loads(completed.value) == VALUE
    report = completed.schema_report
    assert (report.method, [finding.path for finding in report.dropped]) == REPORTS[spoken.name]
    assert {finding.code for finding in report.dropped} <= {"NOT_TOLD"}


@pytest.mark.parametrize("answer", [{"json": DEEP}, {"tool_calls": [{"tool": ANSWER_TOOL, "input": DEEP}]}])
async def test_the_arguments_of_the_answer_tool_are_shown_like_any_answer(
    tmp_path: Path,
    answer: dict[str, Any],
) -> None:
    scenario = ScriptBuilder(pace=PACE).default_response(answer).build()
    request = asking(schema=NESTED, model="anthropic/claude-haiku-4-5")
    events = await events_of(tmp_path, PROVIDERS[0], scenario, request)
    completed = events[-1].completed
    assert partials(events)
    assert all(begins(shown, DEEP) for shown in partials(events))
    assert json.loads(completed.value) == DEEP
    assert completed.schema_report.method == pb.SCHEMA_METHOD_TOOL
    assert [finding.code for finding in completed.schema_report.dropped] == ["NOT_STRICT"]
    assert completed.stop_reason == pb.STOP_REASON_END
    assert [part.WhichOneof("part") for part in completed.message.parts] == ["text"]


@pytest.mark.slow_after(2, reason="one case for each provider")
@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_an_advisory_answer_that_was_cut_off_comes_with_what_was_whole_of_it(
    tmp_path: Path,
    spoken: Spoken,
) -> None:
    cut = {"text": '{"name": "alpha", "gauges": [1, 2, 3', "stop": "length"}
    request = asking()
    request.schema.advisory = True
    events = await events_of(
        tmp_path,
        spoken,
        ScriptBuilder(pace=PACE).default_response(cut).build(),
        request,
    )
    completed = events[-1].completed
    assert (completed.calls, completed.repaired, completed.HasField("value")) == (1, False, False)
    assert [finding.code for finding in completed.findings] == ["TRUNCATED"]
    assert complete_members(completed.text, {"gauges"}) == {"name": "alpha", "gauges": [1, 2]}


@pytest.mark.slow_after(2, reason="one case for each provider")
@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_what_was_shown_of_a_refused_answer_is_void(tmp_path: Path, spoken: Spoken) -> None:
    wrong = {"name": "", "gauges": [1, 1], "note": "this breaks what the provider could not be told"}
    right = {"name": "alpha", "gauges": [1], "note": "this is another note, which is quite long"}
    scenario = (
        ScriptBuilder(pace=PACE)
        .respond_to("That answer was refused", {"json": right})
        .default_response({"json": wrong})
        .build()
    )
    events = await events_of(tmp_path, spoken, scenario, asking())
    kinds = [event.WhichOneof("event") for event in events]
    place = kinds.index("repair_started")
    assert kinds.count("repair_started") == 1
    assert all(begins(shown, wrong) for shown in partials(events[:place]))
    assert partials(events[place:])
    assert all(begins(shown, right) for shown in partials(events[place:]))
    repairing, completed = events[place].repair_started, events[-1].completed
    assert sorted(finding.path for finding in repairing.findings) == ["/gauges", "/name"]
    assert json.loads(completed.value) == right
    assert (completed.repaired, completed.calls, repairing.calls) == (True, 2, 1)
    assert completed.usage.output_tokens > repairing.usage.output_tokens > 0


@pytest.mark.slow_after(2, reason="one case for each provider")
@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_an_answer_that_never_becomes_valid_tells_what_it_cost(tmp_path: Path, spoken: Spoken) -> None:
    scenario = ScriptBuilder().default_response({"text": "I would rather not.", "stop": "length"}).build()
    with pytest.raises(FailedPreconditionError) as caught:
        await events_of(tmp_path, spoken, scenario, asking())
    used = usage_until(caught.value)
    assert caught.value.code == "ANSWER_INVALID"
    assert caught.value.violations[0].reason.startswith("TRUNCATED")
    assert used is not None
    assert used.calls == 2
    assert used.usage.output_tokens > 0
    without_price = {ProviderName.GENERIC, ProviderName.AZURE, ProviderName.OLLAMA}
    assert (used.cost is None) == (spoken.name in without_price)


@pytest.mark.slow_after(2, reason="one case for each provider")
@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_spoilt_answers_become_valid_at_once_or_when_asked_for_again(
    tmp_path: Path,
    spoken: Spoken,
) -> None:
    good = {"name": "alpha", "count": 1, "items": []}
    texts = [text for _, text in corpus(1) if _sendable(text)]
    builder = ScriptBuilder().respond_to("That answer was refused", {"json": good})
    for number, text in enumerate(texts):
        builder.respond_to_regex(rf"^number {number}\b", {"text": text})
    validator = jsonschema.Draft202012Validator(SPOILT_SCHEMA)
    with served(builder.build()) as server:
        async with channel_to(tmp_path, spoken, server.url) as channel:
            gateway = GatewayServiceStub(channel)

            async def outcome(number: int) -> tuple[bool, str]:
                prompt = asking(f"number {number}", SPOILT_SCHEMA)
                try:
                    *_, last = [event async for event in gateway.GenerateObject(prompt)]
                except PeripetyError as error:
                    return False, str(error.code)
                validator.validate(json.loads(last.completed.value))
                return last.completed.repaired, ""

            outcomes = await asyncio.gather(*map(outcome, range(len(texts))))
    assert {code for _, code in outcomes} == {""}
    assert {repaired for repaired, _ in outcomes} == {True, False}


def _sendable(text: str) -> bool:
    """Return True if a text can be sent at all, and is an answer."""
    return bool(text) and not any("\ud800" <= character <= "\udfff" for character in text)
