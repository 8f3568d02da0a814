"""`peripety chat`: talk to a model, and see what each turn used."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1 import gateway_pb2_grpc
from peripety.cli.choosing import ask
from peripety.cli.embedded import embedded_services
from peripety.cli.failure import explain
from peripety.cli.jsonify import jsonify, readable
from peripety.cli.output import asides, errors, results, write_json
from peripety.cli.spending import model_usage_line, usage_line
from peripety.cli.text import printable
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import grpc.aio

__all__ = ["ChatOptions", "chat"]

_HELP = """\
  /model NAME    go on with another model, such as anthropic/claude-opus-5-5; alone: the configured one
  /usage         what the conversation has used
  /fork [N]      go on in a new conversation that has the first N turns of this one, or all
  /rewind N      take the last turns back, so that N remain
  /new           start a new conversation
  /quit          stop; so does Ctrl-D"""


@dataclass
class ChatOptions:
    """How to talk.

    Attributes:
        model: as in `GenerationOptions.model`; empty for the configured one.
        system: the instructions of a new conversation.
        conversation_id: the conversation to go on with; None starts one.
        max_output_tokens: the most that an answer may have; None for the model's default.
        reasoning: whether to show what the model thinks.
        as_json: whether to print events instead of text.
    """

    model: str = ""
    system: str = ""
    conversation_id: str | None = None
    max_output_tokens: int | None = None
    reasoning: bool = False
    as_json: bool = False


def chat(options: ChatOptions) -> int:
    """Talk until the person, or standard input, has nothing more to say; return the exit code."""
    return asyncio.run(_chat(options))


async def _chat(options: ChatOptions) -> int:
    async with embedded_services("gateway") as channel:
        talk = _Talk(channel, options)
        await talk.begin()
        interactive = sys.stdin.isatty()
        for line in _asked() if interactive else _piped():
            if not await talk.hear(line) and not interactive:
                return 1
            if talk.over:
                break
        talk.goodbye()
    return 0


def _asked() -> Iterator[str]:
    results().print("Say something; /help shows what else there is.", style="dim")
    while (line := ask("> ")) is not None:
        yield line


def _piped() -> Iterator[str]:
    """Each line is a message."""
    for line in sys.stdin:
        yield line.strip()


@dataclass
class _Talk:
    """One person's conversation, which may become another one."""

    channel: grpc.aio.Channel
    options: ChatOptions
    conversation: pb.Conversation = field(default_factory=pb.Conversation)
    over: bool = False

    @property
    def gateway(self) -> gateway_pb2_grpc.GatewayServiceAsyncStub:
        """The service that is talked to."""
        return gateway_pb2_grpc.GatewayServiceStub(self.channel)

    async def begin(self) -> None:
        """Find the conversation to go on with, or start one."""
        if self.options.conversation_id is None:
            await self._new("")
            return
        request = pb.GetConversationRequest(conversation_id=self.options.conversation_id)
        self.conversation = (await self.gateway.GetConversation(request)).conversation

    async def hear(self, line: str) -> bool:
        """Do what a line says; False when that failed."""
        name, _, rest = line.partition(" ")
        commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/help": self._help,
            "/model": self._model,
            "/usage": self._usage,
            "/fork": self._fork,
            "/rewind": self._rewind,
            "/new": self._new,
            "/quit": self._quit,
        }
        try:
            if name in commands:
                await commands[name](rest.strip())
            elif name.startswith("/"):
                errors().print(f"There is no {name}; /help shows what there is.")
            elif line:
                await self._say(line)
        except PeripetyError as error:
            explain(error)
            return False
        except ValueError:
            errors().print(f"{name} takes a number of turns.")
            return False
        return True

    def goodbye(self) -> None:
        """Say how to go on another time."""
        if self.conversation.turn_count:
            asides().print(f"Go on with: peripety chat --conversation {self.conversation.conversation_id}")

    async def _say(self, text: str) -> None:
        message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text)])
        request = pb.GenerateRequest(
            request_id=str(uuid4()),
            conversation_id=self.conversation.conversation_id,
            expected_turn_count=self.conversation.turn_count,
            prompt=pb.Prompt(messages=[message]),
            options=pb.GenerationOptions(
                model=self.options.model, max_output_tokens=self.options.max_output_tokens
            ),
        )
        async for response in self.gateway.Generate(request):
            if self.options.as_json:
                write_json(jsonify(readable(response)))
            else:
                self._show(response)
            if response.HasField("completed"):
                self.conversation.turn_count = response.completed.conversation_turn
                asides().print(usage_line(response.completed), style="dim")

    def _show(self, response: pb.GenerateResponse) -> None:
        out = results()
        match response.WhichOneof("event"):
            case "text_delta":
                out.print(printable(response.text_delta), end="")
            case "reasoning_delta" if self.options.reasoning:
                out.print(printable(response.reasoning_delta), end="", style="dim italic")
            case "fallback_started":
                falling = response.fallback_started
                told = f"{falling.from_model}: {falling.cause.message}; asking {falling.to_model}"
                errors().print(printable(told))
            case "completed":
                out.print()

    async def _help(self, _rest: str) -> None:
        results().print(_HELP)

    async def _model(self, name: str) -> None:
        self.options.model = name

    async def _usage(self, _rest: str) -> None:
        request = pb.GetConversationRequest(conversation_id=self.conversation.conversation_id)
        self.conversation = (await self.gateway.GetConversation(request)).conversation
        results().print(f"{self.conversation.turn_count} turns: {model_usage_line(self.conversation.usage)}")

    async def _fork(self, count: str) -> None:
        request = pb.ForkConversationRequest(
            request_id=str(uuid4()),
            conversation_id=self.conversation.conversation_id,
            turn_count=int(count) if count else None,
        )
        self.conversation = (await self.gateway.ForkConversation(request)).conversation

    async def _rewind(self, count: str) -> None:
        request = pb.RewindConversationRequest(
            request_id=str(uuid4()),
            conversation_id=self.conversation.conversation_id,
            turn_count=int(count),
        )
        self.conversation = (await self.gateway.RewindConversation(request)).conversation

    async def _new(self, _rest: str) -> None:
        request = pb.CreateConversationRequest(request_id=str(uuid4()), system=self.options.system)
        self.conversation = (await self.gateway.CreateConversation(request)).conversation

    async def _quit(self, _rest: str) -> None:
        self.over = True
