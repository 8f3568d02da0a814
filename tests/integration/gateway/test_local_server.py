"""A real model behind the generic provider; runs where the extra `llm` is installed (`make test-llm`)."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from peripety.api.session.v1 import session_pb2
from peripety.engine import ToolRequest
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.conversations.conversation import Conversation
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.types.request import GenerateRequest, GenerationOptions, ResponseSchema
from peripety.gateway.types.response import SchemaMethod, SchemaReport
from peripety.policy.authoring.prompts import authoring_system_text, prompt_material
from peripety.policy.authoring.scenario_authors import ScenarioGeneratorSession
from peripety.policy.types import AnnotatedTool, CompileOrder, Expectation, ScenarioFeedback, TestScenario
from peripety.server.app import serve
from support.engine.specs import playable
from support.gateway.providers import local_server
from support.servers.apps import Api, config_for, turn_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from peripety.gateway.types.response import GatewayEvent


REQUIRED = os.environ.get("PERIPETY_REQUIRE_LLM") == "1"

pytestmark = [
    pytest.mark.skipif(
        find_spec("xllamacpp") is None and not REQUIRED,
        reason="the extra 'llm' is not installed",
    ),
    pytest.mark.timeout(300),
]

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "amount": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["name", "amount"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], str]]:
    with local_server(tmp_path_factory.mktemp("cache")) as lines_and_url:
        yield lines_and_url


def bounded(schema: Any) -> Any:
    """Copy a schema with limits on free texts and lists.

    The model is a small base model. Without limits it can repeat itself until the length limit of the answer.
    """
    if isinstance(schema, list):
        return [bounded(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    limited = {key: bounded(value) for key, value in schema.items()}
    if schema.get("type") == "string" and not {"enum", "const"} & schema.keys():
        limited.setdefault("maxLength", 24)
    if schema.get("type") == "array":
        limited.setdefault("maxItems", 2)
    return limited


class Steady(LocalModelGateway):
    """A local gateway with deterministic and short answers of the model."""

    def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        schema = request.schema and replace(request.schema, document=bounded(request.schema.document))
        return super().stream(replace(request, seed=1, schema=schema))


@asynccontextmanager
async def asking(url: str, data: Path) -> AsyncIterator[Steady]:
    settings: dict[str, Any] = {"model_provider": "generic", "openai_api_base": url, "model_name": "any"}
    config = config_for(data, **settings)
    providers = ProviderRegistry(config)
    try:
        yield Steady(providers, CallExecutor(config))
    finally:
        await providers.aclose()


@asynccontextmanager
async def conversing(url: str, data: Path, system: str) -> AsyncIterator[Conversation]:
    async with asking(url, data) as gateway:
        yield Conversation(gateway, system)


async def test_a_real_model_answers_to_a_schema_and_caches_the_conversation(
    served: tuple[list[str], str],
    tmp_path: Path,
) -> None:
    notice, url = served
    assert "Gemma Terms of Use" in "".join(notice)
    async with conversing(url, tmp_path, "Name a thing and an amount of it.") as conversation:
        schema = ResponseSchema("thing", SCHEMA)
        first = await conversation.send(
            "first",
            schema=schema,
            options=GenerationOptions(max_output_tokens=200, seed=1),
        )
        second = await conversation.send(
            "second",
            schema=schema,
            options=GenerationOptions(max_output_tokens=200, seed=1),
        )
    assert set(first.value or {}) == set(second.value or {}) == {"name", "amount"}
    assert first.schema_report == SchemaReport(SchemaMethod.GRAMMAR)
    assert second.usage.cache_read_tokens > first.usage.cache_read_tokens
    assert len(conversation.turns) == 2


async def test_every_turn_reads_more_of_a_long_conversation_from_the_cache(
    served: tuple[list[str], str],
    tmp_path: Path,
) -> None:
    asked = [f"Gauge {number} reads {number * number}." for number in range(10)]
    async with conversing(served[1], tmp_path, "Say in a few words what each reading means.") as conversation:
        for text in asked:
            await conversation.send(
                text,
                options=GenerationOptions(max_output_tokens=12, temperature=0.0, seed=1),
            )
    usage = [turn.completion.usage for turn in conversation.turns]
    read = [each.cache_read_tokens for each in usage]
    assert all(earlier < later for earlier, later in pairwise(read)), read
    # All but the end of the prompt before: what is read anew is the answer to it, and the new question.
    prompts = [each.input_tokens for each in usage]
    assert all(prompt - cached < 10 for prompt, cached in zip(prompts, read[1:], strict=False)), usage


async def test_scenarios_are_written_in_a_conversation_that_is_read_from_the_cache(
    served: tuple[list[str], str],
    tmp_path: Path,
) -> None:
    path = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = AnnotatedTool("alpha", "read", "Reads a file.", path, (("/path", "source_path"),), read_only=True)
    order = CompileOrder("Whatever lies below /a may be read. Nothing else may.", (tool,))
    gap = TestScenario("a neighbour", ToolRequest("alpha", "read", {"path": "/ab"}), Expectation.DENY)
    async with asking(served[1], tmp_path) as gateway:
        system = authoring_system_text(prompt_material(order, order.tools))
        session = ScenarioGeneratorSession(gateway, system, order.tools)
        await session.generate()
        await session.regenerate(ScenarioFeedback(probes=(gap,)))
    first, second = (turn.spent.usage for turn in session.turns)
    assert second.cache_read_tokens >= first.input_tokens
    assert second.cache_read_tokens > second.input_tokens / 2, (first, second)


def test_one_conversation_has_the_whole_context_to_itself(served: tuple[list[str], str]) -> None:
    with urlopen(f"{served[1].removesuffix('/v1')}/props") as answer:  # noqa: S310 - it is on this machine
        told = json.load(answer)
    assert (told["total_slots"], told["default_generation_settings"]["n_ctx"]) == (1, 8192)


@pytest.mark.timeout(600)
async def test_a_game_told_by_a_real_model_has_no_dead_turn(
    served: tuple[list[str], str],
    tmp_path: Path,
) -> None:
    settings: dict[str, Any] = {
        "model_provider": "generic",
        "openai_api_base": served[1],
        "model_name": "any",
    }
    async with serve(config_for(tmp_path, **settings)) as app, Api.connected(app.address) as api:
        session = await api.session_of(playable())
        # An action that the player chose, words, and neither.
        for actions, words in (1, ""), (0, "raise it"), (0, ""):
            request = turn_request(session)
            request.input = words
            del request.actions[actions:]
            last = [event async for event in api.turn(request)][-1]
            assert last.HasField("committed"), last
            assert last.committed.narrative
            session = await api.session(session.session_id)
        assert session.turn == 3
        assert session.usage.calls >= session.turn
        replay = session_pb2.ReplaySessionRequest(session_id=session.session_id)
        replayed = [event async for event in api.sessions.ReplaySession(replay)]
        assert replayed[-1].completed.mismatches == 0
