"""Models for tests of policies: they answer by a function, and remember what they were asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.engine.policies.types import ToolRequest
from peripety.gateway.structured_output.validator import generate_valid
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.response import (
    Completed,
    Completion,
    StopReason,
    TextDelta,
    Usage,
    collect_completion,
)
from peripety.policy.types import AnnotatedTool, Expectation, ScenarioOrigin, TestScenario

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent


USAGE = Usage(input_tokens=100, output_tokens=10, cache_read_tokens=60, cache_write_tokens=20)


@dataclass(frozen=True)
class Cut:
    """An answer that reaches its length limit."""

    text: str = '{"scenarios": [{"descr'


@dataclass
class FakeModel:
    """Answers each question by a function: a value as JSON, a text, a `Cut`, or an error to raise.

    The one repair is the gateway's own.
    """

    answer: Callable[[GenerateRequest], Any]
    requests: list[GenerateRequest] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    silent: asyncio.Event | None = None

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        assert request.schema is not None
        async with closing(generate_valid(self._ask, request, request.schema)) as events:
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))

    async def _ask(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            await asyncio.sleep(0)
            answer = self.answer(request)
            if self.silent is not None and answer is None:
                self.silent.set()
                await asyncio.Event().wait()
        finally:
            self.running -= 1
        if isinstance(answer, Exception):
            raise answer
        stop = StopReason.LENGTH if isinstance(answer, Cut) else StopReason.END
        text = answer.text if isinstance(answer, Cut) else answer
        text = text if isinstance(text, str) else json.dumps(text)
        yield TextDelta(text)
        yield Completed(
            Completion(ChatMessage.assistant(text), None, USAGE, stop, "scripted", "fake", cost=5),
        )

    def of(self, name: str) -> list[GenerateRequest]:
        """The questions under one schema."""
        return [request for request in self.requests if request.schema and request.schema.name == name]


def in_turn(*answers: Any) -> FakeModel:
    """A model that gives answers one after the other, the last one for ever."""
    left = list(answers)
    return FakeModel(lambda _: left.pop(0) if len(left) > 1 else left[0])


def about(request: GenerateRequest) -> dict[str, Any]:
    """The material of a conversation."""
    assert request.system is not None
    material: dict[str, Any] = json.loads(request.system.rpartition("\n")[2])
    return material


def tool(name: str, server: str = "alpha", **more: Any) -> AnnotatedTool:
    """A tool with a path and an amount."""
    schema = {
        "type": "object",
        "properties": {"at": {"type": "string"}, "amount": {"type": "integer"}},
        "additionalProperties": False,
    }
    return AnnotatedTool(server, name, input_schema=schema, argument_roles=(("/at", "place"),), **more)


def scenario(
    description: str,
    expected: Expectation | str = Expectation.DENY,
    name: str = "a",
    source: ScenarioOrigin = ScenarioOrigin.GENERATED,
    **arguments: Any,
) -> TestScenario:
    """A scenario for a tool of the server `alpha`."""
    expectation = Expectation(expected)
    return TestScenario(description, ToolRequest("alpha", name, arguments), expectation, "because", source)


def told(one: TestScenario) -> dict[str, Any]:
    """A scenario as a model writes it."""
    return {
        "description": one.description,
        "request": {
            "server_name": one.request.server_name,
            "tool_name": one.request.tool_name,
            "arguments": dict(one.request.arguments),
        },
        "expected_decision": one.expected_decision.value,
        "reasoning": one.reasoning,
    }


def rule(rule_id: str, then: str, **when: Any) -> dict[str, Any]:
    """A rule as a model writes it."""
    return {"id": rule_id, "when": when, "then": then, "reason": f"{rule_id} says so"}


def below(*places: str) -> list[dict[str, Any]]:
    """Matchers that hold for places below others."""
    return [{"argument_roles": ["place"], "kind": "path", "among": [*places]}]
