"""Conversations whose provider changes at every turn."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import StopReason
from peripety.llmsim import types as simulated
from peripety.llmsim.determinism import make_signature
from support.examples import example_count
from support.gateway.providers import HTTP_PROVIDERS, Asked, before_history, history_of, models_of
from support.gateway.requests import call_of
from support.llmsim.simulator import reply

if TYPE_CHECKING:
    from peripety.core.config import ProviderName
    from peripety.gateway.types.message import Part


TOOLS = (
    Tool("look", "Looks.", {"type": "object", "properties": {"a": {"type": "string"}}}),
    Tool("näme of another", "", {"type": "object"}),
)
EXAMPLES = example_count(150)
FOREIGN = "canary-of-nobody"


@dataclass(frozen=True)
class Turn:
    """Messages of one turn, and the provider that answers it.

    Attributes:
        provider: the provider that answers.
        thinks: whether it thinks, if it can.
        text: text of its answer.
        calls: the tools that it calls, by their index.
        chunk: number of bytes of its answer that arrive at once.
        stranger: whether a state of an unknown issuer is in the answer.
        reply: the next message of the user.
        instructions: the message of the system before that.
        reverse: whether the results come in reverse order.
        renames: whether the calls get ids that no provider would give them.
    """

    provider: ProviderName
    thinks: bool
    text: str
    calls: tuple[int, ...]
    chunk: int
    stranger: bool
    reply: str
    instructions: str
    reverse: bool
    renames: bool


SAID = st.sampled_from(["a", "b é\u2028", "<system>\nc", '{"d": 1}'])
TURNS = st.lists(
    st.builds(
        Turn,
        st.sampled_from(HTTP_PROVIDERS),
        st.booleans(),
        SAID,
        st.lists(st.integers(0, 1), max_size=3).map(tuple),
        st.integers(1, 200),
        st.booleans(),
        SAID,
        st.just("") | SAID,
        st.booleans(),
        st.booleans(),
    ),
    min_size=2,
    max_size=9,
)
MODELS = st.fixed_dictionaries(
    {provider: st.sampled_from(models_of(provider)) for provider in HTTP_PROVIDERS}
)


@dataclass
class Dialogue:
    """A conversation under way.

    Attributes:
        models: the model of each provider.
        messages: the messages so far.
        sent: the last request to each provider, in its own format.
        secrets: parts of each provider's answers that no other provider may receive.
    """

    models: dict[ProviderName, str]
    messages: list[ChatMessage] = field(default_factory=lambda: [ChatMessage.user("begin")])
    sent: dict[ProviderName, tuple[str, list[str]]] = field(default_factory=dict)
    secrets: list[tuple[ProviderName, str]] = field(default_factory=list)

    def take(self, turn: Turn) -> None:
        """Play a turn: let the provider answer, and append the next message."""
        asked = self._ask(turn.provider)
        self._check_what_was_sent(turn.provider, asked)
        calls = self._answer(turn, asked)
        self._go_on(turn, calls)

    def _ask(self, provider: ProviderName) -> Asked:
        request = GenerateRequest("s", normalize_messages(self.messages), tools=TOOLS)
        return Asked.of(provider, call_of(request, self.models[provider], provider.value))

    def _check_what_was_sent(self, provider: ProviderName, asked: Asked) -> None:
        document = asked.body.document
        beginning, history = before_history(document), history_of(document)
        if provider in self.sent:
            known_beginning, known_history = self.sent[provider]
            assert beginning == known_beginning
            assert history[: len(known_history)] == known_history
        self.sent[provider] = beginning, history
        written = json.dumps(document)
        assert FOREIGN not in written
        for issuer, secret in self.secrets:
            assert issuer is provider or secret not in written

    def _answer(self, turn: Turn, asked: Asked) -> list[ToolCall]:
        parts = self._scripted(turn, asked)
        stop = simulated.SimStopReason.TOOL_USE if turn.calls else simulated.SimStopReason.END
        end = asked.answered(reply(*parts, model=asked.call.model, stop=stop), turn.chunk)
        said: list[Part] = [*end.parts]
        calls = [part for part in said if isinstance(part, ToolCall)]
        assert end.stop_reason is (StopReason.TOOL_USE if turn.calls else StopReason.END)
        assert "".join(part.text for part in said if isinstance(part, Text)) == turn.text
        assert [call.name for call in calls] == [TOOLS[place].name for place in turn.calls]
        assert [json.loads(call.arguments) for call in calls] == [{"a": turn.text}] * len(turn.calls)
        if turn.renames:
            said = [_renamed(part) for part in said]
        if turn.stranger:
            said.append(ProviderState("nobody", FOREIGN.encode()))
        self.messages.append(ChatMessage(ChatRole.ASSISTANT, tuple(said)))
        return [part for part in said if isinstance(part, ToolCall)]

    def _scripted(self, turn: Turn, asked: Asked) -> list[simulated.ReplyPart]:
        place = len(self.messages)
        parts: list[simulated.ReplyPart] = []
        if turn.thinks and asked.request.reasoning:
            thought = f"thought {place} of {turn.provider.value}"
            parts.append(simulated.ReasoningPart((thought[:3], thought[3:]), make_signature(thought)))
            self.secrets += [(turn.provider, thought), (turn.provider, make_signature(thought))]
        parts.append(simulated.TextPart((turn.text[:1], turn.text[1:])))
        for number, tool in enumerate(turn.calls):
            mark = make_signature(f"{place} {number}")
            self.secrets.append((turn.provider, mark))
            name = asked.request.tools[tool].name
            arguments = json.dumps({"a": turn.text})
            parts.append(simulated.ToolUsePart(f"{place:012}{number:012}", name, (arguments,), mark))
        return parts

    def _go_on(self, turn: Turn, calls: list[ToolCall]) -> None:
        results: list[Part] = [
            ToolResult(call.call_id, f"r{place}", is_error=bool(place)) for place, call in enumerate(calls)
        ]
        if results:
            said = (*reversed(results), Text(turn.reply)) if turn.reverse else tuple(results)
            self.messages.append(ChatMessage(ChatRole.USER, said))
            return
        if turn.instructions:
            self.messages.append(ChatMessage.system(turn.instructions))
        self.messages.append(ChatMessage.user(turn.reply))


def _renamed(part: Part) -> Part:
    return replace(part, call_id=f"ä {part.call_id} {'x' * 80}") if isinstance(part, ToolCall) else part


@settings(max_examples=EXAMPLES, deadline=None)
@given(TURNS, MODELS)
def test_every_provider_takes_what_the_others_said_and_what_it_was_sent_before_stays_as_it_was(
    turns: list[Turn],
    models: dict[ProviderName, str],
) -> None:
    dialogue = Dialogue(models)
    for turn in turns:
        dialogue.take(turn)
