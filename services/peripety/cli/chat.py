"""`peripety chat`: a conversation with a model, with the usage of each turn."""

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
  /model NAME    switch to another model, such as anthropic/claude-opus-5-5; alone: the configured model
  /usage         show the usage of the conversation
  /fork [N]      continue in a new conversation that has the first N turns of this one, or all
  /rewind N      remove the last turns, so that N remain
  /new           start a new conversation
  /quit          stop; so does Ctrl-D"""


@dataclass
class ChatOptions:
    """Options of a chat.

    Attributes:
        model: as in `GenerationOptions.model`; empty for the configured one.
        system: the instructions of a new conversation.
        conversation_id: the conversation to continue; None starts a new one.
        max_output_tokens: the limit of an answer; None for the model's default.
        reasoning: True to show the reasoning of the model.
        as_json: True to print events instead of text.
    """

    model: str = ""
    system: str = ""
    conversation_id: str | None = None
    max_output_tokens: int | None = None
    reasoning: bool = False
    as_json: bool = False


def chat(options: ChatOptions) -> int:
    """Chat until the input ends or the user quits; return the exit code."""
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
    results().print("Type a message; /help lists the commands.", style="dim")
    while (line := ask("> ")) is not None:
        yield line


def _piped() -> Iterator[str]:
    """Yield the lines of standard input; each is one message."""
    for line in sys.stdin:
        yield line.strip()


@dataclass
class _Talk:
    """Chat loop. A fork switches it to another conversation."""

    channel: grpc.aio.Channel
    options: ChatOptions
    conversation: pb.Conversation = field(default_factory=pb.Conversation)
    over: bool = False

    @property
    def gateway(self) -> gateway_pb2_grpc.GatewayServiceAsyncStub:
        """The gateway stub of this chat."""
        return gateway_pb2_grpc.GatewayServiceStub(self.channel)

    async def begin(self) -> None:
        """Load the conversation to continue, or start a new one."""
        if self.options.conversation_id is None:
            await self._new("")
            return
        request = pb.GetConversationRequest(conversation_id=self.options.conversation_id)
        self.conversation = (await self.gateway.GetConversation(request)).conversation

    async def hear(self, line: str) -> bool:
        """Process an input line; return False if it failed."""
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
                errors().print(f"{name}: unknown command; /help lists the commands.")
            elif line:
                await self._say(line)
        except PeripetyError as error:
            explain(error)
            return False
        except ValueError:
            errors().print(f"{name} needs a number of turns.")
            return False
        return True

    def goodbye(self) -> None:
        """Print the command that continues the conversation."""
        if self.conversation.turn_count:
            asides().print(f"Continue with: peripety chat --conversation {self.conversation.conversation_id}")

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
