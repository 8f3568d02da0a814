"""Model of the providers' prompt caches, and random conversations that are checked against it."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Self

from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.prompt_cache.planner import PromptCache
from peripety.gateway.providers.anthropic.request_body import (
    AnthropicMessages,
    AnthropicSchemas,
    tools_to_json,
)
from peripety.gateway.providers.anthropic.response_stream import MessagesWire
from peripety.gateway.providers.gemini.response_stream import GeminiWire
from peripety.gateway.providers.history_compat import unwrap_state, wrap_state
from peripety.gateway.providers.openai.dialect import DEEPSEEK, OPENAI
from peripety.gateway.providers.openai.request_body import to_messages
from peripety.gateway.providers.openai.response_stream import ChatCompletionsWire
from peripety.gateway.providers.provider import AnswerFinished, ProviderCall
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.request import CacheConfig, CacheTTL, GenerateRequest, ResponseSchema
from peripety.gateway.types.response import CacheBlock, StopReason, Usage
from peripety.llmsim.determinism import make_signature
from peripety.llmsim.provider_rules.models import count_tokens, load_models
from peripety.llmsim.provider_rules.prompt_cache import SimPromptCaches
from peripety.llmsim.state import StateTable
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from peripety.llmsim.wire.anthropic.content_blocks import ContentBlock
from peripety.llmsim.wire.base import block_cache_key, compact_json
from peripety.llmsim.wire.deepseek import DeepSeekWire, answer_to_blocks
from peripety.llmsim.wire.gemini.api import GeminiWire as api_GeminiWire
from peripety.llmsim.wire.openai.api import OpenAiChat
from support.gateway.requests import asking, call_of
from support.llmsim.simulator import FakeService, call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from peripety.gateway.prompt_cache.planner import CacheCallTracker
    from peripety.gateway.prompt_cache.prefix import CountTokens, Segment
    from peripety.gateway.providers import wire_protocol as providers
    from peripety.gateway.types.message import Part
    from peripety.llmsim.provider_rules import cache_entries as truth
    from peripety.llmsim.provider_rules.cache_entries import SimCacheVisit
    from peripety.llmsim.types import SimBlock, SimRequest
    from peripety.llmsim.wire import base as simulator


_WIRES: dict[str, tuple[providers.WireProtocol, simulator.Wire]] = {
    "anthropic": (MessagesWire(), AnthropicWire()),
    "openai": (ChatCompletionsWire(OPENAI), OpenAiChat()),
    "deepseek": (ChatCompletionsWire(DEEPSEEK), DeepSeekWire()),
    "gemini": (GeminiWire(), api_GeminiWire()),
}


class CacheTruth:
    """The prompt caches of one account."""

    def __init__(self) -> None:
        tables: dict[str, StateTable] = defaultdict(StateTable)
        self._caches = SimPromptCaches(tables["cache"], tables["contents"])

    def look(self, request: SimRequest, now: float) -> SimCacheVisit:
        """Look up what a request finds."""
        return self._caches.begin_visit(
            load_models().find(request.model, request.api),
            "one",
            request.prompt,
            now,
        )


class TrueTokens:
    """Counts the tokens of prompts as the scripted LLM does."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, Segment], int] = {}

    def counter_for(self, call: ProviderCall) -> CountTokens:
        """Return what counts the pieces of a call's prompt."""
        if call.data.provider == "anthropic":
            return lambda piece: self._count(piece, call)
        # Nothing is left out on the way, so that each piece is the next block.
        blocks = iter(read_as_sent(call).prompt.blocks)
        return lambda _: next(blocks).tokens

    def _count(self, piece: Segment, call: ProviderCall) -> int:
        if isinstance(piece.content, Tool):
            return _count(piece, call)
        if (call.model, piece) not in self._counted:
            self._counted[call.model, piece] = _count(piece, call)
        return self._counted[call.model, piece]

    def calibrate(self, call: ProviderCall, counted: int, reported: int) -> None:
        """Do nothing: the count is exact, not an estimate."""
        assert counted == reported, call


def read_as_sent(asked: ProviderCall, change: dict[str, Any] | None = None) -> SimRequest:
    """Read a call as it is sent, with other members of its body if that is wanted.

    Raises:
        ApiError: it is refused.
    """
    writes, reads = _WIRES[asked.data.provider]
    document = {**writes.body(asked).document, **(change or {})}
    headers = writes.headers(asked, None)
    sent = call(reads, compact_json(document), headers, params={"model": asked.model, "alt": "sse"})
    return reads.parse_request(sent, FakeService())


def kept_answer(asked: ProviderCall, answer: ChatMessage) -> Sequence[SimBlock]:
    """Return an answer as its provider caches it behind the prompt; empty if the provider does not."""
    if asked.data.provider != "deepseek":
        return ()
    messages = (*asked.request.messages, answer)
    written = to_messages(replace(asked, request=replace(asked.request, messages=messages)))
    return answer_to_blocks(written[-1], len(written) - 1)


def usage_of(found: SimCacheVisit) -> Usage:
    """Return the usage that a provider reports for the prompt, with an answer of one token."""
    written = sum(found.written.values())
    long = found.written.get("1h", 0)
    return Usage(found.fresh + found.read + written, 1, found.read, written, 0, long)


def _count(piece: Segment, call: ProviderCall) -> int:
    match piece.content:
        case Tool():
            (written,) = tools_to_json([piece.content], AnthropicSchemas())
            return count_tokens(block_cache_key(written).decode())
        case Text(text) if piece.section is CacheBlock.SYSTEM:
            return count_tokens(text)
        case ProviderState() if unwrap_state(call, piece.content) is None:
            return 0
        case ResponseSchema():
            raise AssertionError("a schema is no block")
        case part:
            alone = ChatMessage(piece.role, (part,))
    request = replace(call.request, messages=(ChatMessage.user("u"), alone))
    *_, (block,) = AnthropicMessages(replace(call, request=request)).blocks
    return ContentBlock(block["type"], block, ()).tokens


PAUSES = (0, 0, 1, 30, 200, 298, 299, 300, 301, 1799, 1800, 1801, 3599, 3600, 3601, 10_799, 10_800)
MOST_MARKERS = 4
STEP = 128
SCHEMA = ResponseSchema(
    "a",
    {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True)
class Provider:
    """A provider, and how far its cache is predictable.

    Attributes:
        name: its name.
        models: the models under test.
        thinking: those of them whose answers hold thoughts.
        mixes: True if texts and calls come in any order, each a block of its own.
        within: by how many tokens a prediction may be above what is found; None when it is equal to it.
    """

    name: str
    models: tuple[str, ...]
    thinking: frozenset[str] = frozenset()
    mixes: bool = False
    within: int | None = None


PROVIDERS = {
    # Their shortest cached prefixes are 512, 1,024, 2,048 and 4,096 tokens; the first takes system messages.
    "anthropic": Provider(
        "anthropic",
        ("claude-opus-5-5", "claude-sonnet-5", "claude-opus-4-7", "claude-haiku-4-5"),
        frozenset({"claude-opus-5-5", "claude-sonnet-5"}),
        mixes=True,
    ),
    "openai": Provider("openai", ("gpt-6-sol", "gpt-5.6-luna")),
    # These find what blocks begin with as well, in steps of so many tokens, and so more than is predicted.
    "older openai": Provider("openai", ("gpt-4.1", "gpt-5.5"), within=0),
    "deepseek": Provider("deepseek", ("deepseek-flash", "deepseek-v4-pro"), within=0),
    "gemini": Provider("gemini", ("gemini-2.5-pro", "gemini-2.5-flash"), within=128),
}


@dataclass
class Tally:
    """Counts of what happened: a run in which nothing happens proves nothing.

    Attributes:
        requests: how many requests were made.
        reading: how many of them read from the cache.
        writing: how many wrote to it.
        missed: of how many more was found than predicted.
        markers: how many requests had so many markers.
    """

    requests: int = 0
    reading: int = 0
    writing: int = 0
    missed: int = 0
    markers: dict[int, int] = field(default_factory=dict)

    def __iadd__(self, other: Tally) -> Self:
        self.requests += other.requests
        self.reading += other.reading
        self.writing += other.writing
        self.missed += other.missed
        for number, times in other.markers.items():
            self.markers[number] = self.markers.get(number, 0) + times
        return self


@dataclass(frozen=True)
class Talk:
    """One line of a conversation: the next request is the sum of it."""

    model: str
    system: str | None
    tools: tuple[Tool, ...]
    messages: tuple[ChatMessage, ...] = ()
    tool_choice: ToolChoice | None = None
    schema: ResponseSchema | None = None
    cache: CacheConfig = field(default_factory=CacheConfig)

    def saying(self, *messages: ChatMessage) -> Talk:
        return replace(self, messages=(*self.messages, *messages))


def converse(seed: str, provider: Provider = PROVIDERS["anthropic"]) -> Tally:
    """Play a conversation with its forks, in random steps, and compare every request.

    Args:
        seed: everything that happens depends on it alone.
        provider: the provider under test.

    Raises:
        AssertionError: a prediction differs from the provider's books.
    """
    world = _World(Random(seed), provider)
    try:
        for _ in range(world.random.randint(6, 14)):
            world.step()
    except AssertionError as error:
        raise AssertionError(f"seed {seed!r}, request {world.tally.requests}: {error}") from error
    return world.tally


class _Asked:
    """A request under way, at the gateway and at the provider."""

    def __init__(self, world: _World, talk: Talk) -> None:
        self._world = world
        self.talk = talk
        request = GenerateRequest(
            talk.system,
            normalize_messages(talk.messages),
            schema=talk.schema,
            model=f"{world.provider.name}/{talk.model}",
            tools=talk.tools,
            tool_choice=talk.tool_choice if talk.tools else None,
            cache=talk.cache,
        )
        self._call = ProviderCall(
            request,
            talk.model,
            ModelCatalog.load().find(world.provider.name, talk.model),
        )
        self._visit: CacheCallTracker = world.cache.plan_call(world.provider.name, "one", self._call)
        self._read = read_as_sent(self._visit.call)
        self._found: truth.SimCacheVisit = world.truth.look(self._read, world.now)

    def compare(self, tally: Tally) -> None:
        """Hold the plan to what the provider finds."""
        found, plan = self._found, self._visit.plan
        markers = sum(block.marker is not None for block in self._read.prompt.blocks)
        tally.requests += 1
        tally.reading += found.read > 0
        tally.writing += bool(found.written)
        tally.markers[markers] = tally.markers.get(markers, 0) + 1
        assert markers <= MOST_MARKERS
        if plan is None:
            # A provider that caches by default does so unless there is a way to turn it off.
            assert (found.written, markers) == ({}, 0)
            assert found.read == 0 or self._world.provider.within is not None
            return
        assert markers == len(plan.breakpoints), "a planned marker found no block"
        assert plan.predicted_write_tokens == sum(found.written.values())
        within = self._world.provider.within
        if within is None:
            assert plan.predicted_read_tokens == found.read
        else:
            assert plan.predicted_read_tokens <= found.read + within, (plan, found.read)
            tally.missed += found.read > plan.predicted_read_tokens + STEP

    def accepted(self) -> None:
        """The provider lets it in."""
        self._found.on_accepted()

    def started(self) -> None:
        """The answer has begun."""
        self._found.on_started()
        self._visit.on_first_event()

    def ended(self, answer: ChatMessage) -> None:
        """The whole answer has come."""
        self._found.on_finished(self._world.now, kept_answer(self._call, answer))
        usage = usage_of(self._found)
        self._visit.on_finished(AnswerFinished(answer.parts, StopReason.END, usage, self.talk.model))


class _World:
    """A gateway, a provider, and the lines of one conversation."""

    def __init__(self, random: Random, provider: Provider) -> None:
        self.random = random
        self.provider = provider
        self.now = 1_000.0
        self.tally = Tally()
        self.truth = CacheTruth()
        day = datetime(2026, 11, 22, tzinfo=UTC)
        self.cache = PromptCache(lambda: self.now, lambda: day, TrueTokens())
        self._names = self._numbered()
        system = self._text((0, 40, 4_000, 16_000)) or None
        tools = tuple(self._tool() for _ in range(random.choice((0, 0, 1, 3))))
        self._talks = [Talk(random.choice(provider.models), system, tools, cache=self._config())]
        self._moves: list[tuple[int, Callable[[Talk], Talk | None]]] = [
            (3, self._pause),
            (2, self._rewind),
            (2, self._edit),
            (1, self._switch_model),
            (1, self._set_options),
            (2, self._fork),
        ]

    def step(self) -> None:
        """Change a line of the conversation, or the time, and send a request."""
        random = self.random
        number = random.randrange(len(self._talks))
        talk = self._talks[number]
        if random.random() < 0.4:
            weights, moves = zip(*self._moves, strict=True)
            (move,) = random.choices(moves, weights)
            talk = move(talk) or talk
        self._talks[number] = self._ask(self._with_question(talk))

    # ---- requests

    def _ask(self, talk: Talk) -> Talk:
        if self.random.random() < 0.1:
            return self._ask_two(talk)
        asked = _Asked(self, talk)
        asked.compare(self.tally)
        fate = self.random.random()
        if fate < 0.07:
            return talk  # refused: the next step repeats the request
        asked.accepted()
        self._wait()
        asked.started()
        if fate < 0.14:
            return talk  # broken off
        self._wait()
        answer = self._answer(talk)
        asked.ended(answer)
        return talk.saying(answer)

    def _ask_two(self, talk: Talk) -> Talk:
        """Send two requests at the same time: the second finds nothing of what the first is going to
        write.
        """
        other = talk.saying(ChatMessage.user(self._text((40, 4_000))))
        both = [_Asked(self, each) for each in (talk, other)]
        for asked in both:
            asked.compare(self.tally)
            asked.accepted()
        self.random.shuffle(both)
        for asked in both:
            asked.started()
        self._wait()
        for asked in both:
            asked.ended(ChatMessage.assistant("a"))
        return talk.saying(ChatMessage.assistant("a"))

    def _wait(self) -> None:
        self.now += self.random.choice((0, 0.5, 2))

    def _with_question(self, talk: Talk) -> Talk:
        """Return the conversation with something to answer: results of its calls, or a message of the
        user.
        """
        if talk.messages and talk.messages[-1].role is ChatRole.USER and self.random.random() < 0.7:
            return talk
        calls = talk.messages[-1].tool_calls if talk.messages else ()
        results = tuple(
            ToolResult(call.call_id, self._text((8, 200, 3_000)), is_error=self.random.random() < 0.1)
            for call in calls
        )
        said: list[ChatMessage] = [ChatMessage(ChatRole.USER, results)] if results else []
        if not results or self.random.random() < 0.3:
            said.append(ChatMessage.user(self._text((8, 40, 200, 3_000, 9_000))))
        if talk.messages and not results and self.random.random() < 0.1:
            said.insert(0, ChatMessage.system(self._text((40, 200))))
        return talk.saying(*said)

    def _answer(self, talk: Talk) -> ChatMessage:
        random = self.random
        parts: list[Part] = []
        for _ in range(random.choice((1, 1, 1, 1, 2, 2, 3, 25)) if self.provider.mixes else 1):
            if talk.model in self.provider.thinking and random.random() < 0.3:
                parts.append(self._thought(talk.model))
            if random.random() < 0.7:
                parts.append(Text(self._text((8, 40, 400, 2_000))))
            if talk.tools and random.random() < 0.6:
                parts += [self._call(talk) for _ in range(random.choice((1, 1, 3)))]
        if not any(isinstance(part, Text | ToolCall) for part in parts):
            parts.append(Text("a"))
        if self.provider.name == "deepseek" and any(isinstance(part, ToolCall) for part in parts):
            parts.insert(0, ProviderState("deepseek", self._text((8, 400)).encode()))
        return ChatMessage(ChatRole.ASSISTANT, tuple(parts))

    def _thought(self, model: str) -> ProviderState:
        thought = self._text((8, 400))
        return wrap_state(
            call_of(asking(), model, "anthropic"),
            {"type": "thinking", "thinking": thought, "signature": make_signature(thought)},
        )

    def _call(self, talk: Talk) -> ToolCall:
        arguments = json.dumps({"a": self._text((8, 200))})
        return ToolCall(next(self._names), self.random.choice(talk.tools).name, arguments)

    # ---- what happens between requests

    def _pause(self, _talk: Talk) -> None:
        self.now += self.random.choice(PAUSES)

    def _rewind(self, talk: Talk) -> Talk:
        ends = [0, *(at + 1 for at, message in enumerate(talk.messages) if _is_plain_answer(message))]
        return replace(talk, messages=talk.messages[: self.random.choice(ends)])

    def _fork(self, talk: Talk) -> None:
        self._talks.append(talk)

    def _switch_model(self, talk: Talk) -> Talk:
        return replace(talk, model=self.random.choice(self.provider.models))

    def _edit(self, talk: Talk) -> Talk:
        """Break the prefix somewhere."""
        place = self.random.choice(("tools", "system", "message"))
        if place == "tools" and not any(message.tool_calls for message in talk.messages):
            return replace(talk, tools=(*talk.tools[1:], self._tool()))
        if place == "system":
            return replace(talk, system=self._text((0, 40, 4_000)) or None)
        said = [at for at, message in enumerate(talk.messages) if message.parts == (Text(message.text),)]
        if not said:
            return talk
        at = self.random.choice(said)
        edited = replace(talk.messages[at], parts=(Text(self._text((8, 400))),))
        return replace(talk, messages=(*talk.messages[:at], edited, *talk.messages[at + 1 :]))

    def _set_options(self, talk: Talk) -> Talk:
        choices = [None, ToolChoice(), ToolChoice(ToolChoiceMode.NONE)]
        if self.provider.within is None:
            choices.append(ToolChoice(disable_parallel=True))
        return replace(
            talk,
            tool_choice=self.random.choice(choices),
            # A text that contains the schema becomes one block with the user's text.
            schema=self.random.choice((None, SCHEMA)) if self.provider.name != "deepseek" else None,
            cache=self._config(),
        )

    def _config(self) -> CacheConfig:
        random = self.random
        return CacheConfig(
            enabled=random.random() < 0.95,
            ttl=random.choice((CacheTTL.FIVE_MINUTES, CacheTTL.FIVE_MINUTES, CacheTTL.ONE_HOUR)),
            expected_reuse=random.choice((0, 0, 0, 1, 3)),
        )

    # ---- what it is made of

    def _text(self, sizes: tuple[int, ...]) -> str:
        """Return a new, unused text of about so many bytes."""
        size = self.random.choice(sizes)
        if not size:
            return ""
        letter = self.random.choice("xé\u4e16")
        return f"{self.random.getrandbits(40):x} {letter * self.random.randint(size // 2, size)}"

    def _tool(self) -> Tool:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        return Tool(next(self._names), self._text((40, 400, 6_000)), schema)

    def _numbered(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"n{number}"


def _is_plain_answer(message: ChatMessage) -> bool:
    return message.role is ChatRole.ASSISTANT and not message.tool_calls
