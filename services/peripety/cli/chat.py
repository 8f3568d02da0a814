"""`peripety chat`: a conversation with a model at the terminal, or from standard input."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1 import gateway_pb2_grpc
from peripety.cli.embedded_services import embedded_services
from peripety.cli.output import (
    MAX_INPUT_BYTES,
    error_console,
    explain_error,
    format_model_usage,
    format_usage,
    person_console,
    printable,
    result_console,
    write_json,
)
from peripety.cli.prompt import prompt_line
from peripety.cli.render.prose import MarkdownWriter
from peripety.errors import FailedPreconditionError, InvalidArgumentError, PeripetyError
from peripety.rpc.proto_json import to_json, without_provider_state

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    import grpc.aio


commands = typer.Typer()


_HELP = """\
  /retry         get another answer to the last message
  /edit TEXT     replace the last message by TEXT
  /rewind N      remove the last turns, so that N remain
  /fork [N]      continue in a new conversation that has the first N turns of this one, or all
  /model NAME    switch to another model, such as anthropic/claude-opus-5-5; alone: the configured model
  /usage         show the usage of the conversation
  /new           start a new conversation
  /quit          stop; so does Ctrl-D
  @FILE          in a message: include the text of a file
  \"\"\"            begin and end a message of several lines; or end a line with \\"""
_BLOCK = '"""'
_LINE_CONTINUES = "\\"


@dataclass
class ChatSettings:
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


async def _chat(options: ChatSettings) -> int:
    """Chat to the end of the input; 1 if a line failed that no user could correct."""
    has_failed = False
    async with embedded_services("gateway") as channel:
        talk = _ChatLoop(channel, options)
        await talk.begin()
        is_interactive = sys.stdin.isatty()
        for message in join_lines(_typed_lines() if is_interactive else _piped_lines()):
            has_failed |= not await talk.handle_line(message)
            if talk.is_over:
                break
        talk.print_resume_hint()
    return int(has_failed and not is_interactive)


def _typed_lines() -> Iterator[str]:
    result_console().print("Type a message; /help lists the commands.", style="dim")
    while (line := prompt_line("> ")) is not None:
        yield line


def _piped_lines() -> Iterator[str]:
    """Yield the lines of standard input; each is one message."""
    for line in sys.stdin:
        yield line.strip()


def join_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield messages: lines, or several lines in triple quotes or with a backslash at their ends."""
    parts: list[str] = []
    is_block = False
    for line in lines:
        text = line
        if not parts and not is_block and text.startswith(_BLOCK):
            is_block, text = True, text.removeprefix(_BLOCK)
            if not text:
                continue
        if is_block:
            is_block = not text.endswith(_BLOCK)
            parts.append(text.removesuffix(_BLOCK))
            continues = is_block
        else:
            continues = text.endswith(_LINE_CONTINUES)
            parts.append(text.removesuffix(_LINE_CONTINUES))
        if not continues:
            yield "\n".join(parts).strip()
            parts = []
    if parts:
        yield "\n".join(parts).strip()


def include_files(message: str) -> str:
    """Return a message with the text of each `@FILE` behind it; a word that names no file stays as it is.

    Raises:
        InvalidArgumentError: a file is too large, or is not text.
    """
    names = dict.fromkeys(word[1:].rstrip(".,;:!?)") for word in message.split() if word.startswith("@"))
    parts = [message]
    for name in names:
        path = Path(name).expanduser()
        if name and path.is_file():
            parts.append(f"{name}:\n\n```\n{_read_text(path)}\n```")
    return "\n\n".join(parts)


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MAX_INPUT_BYTES + 1)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or len(content) > MAX_INPUT_BYTES:
        problem = "is not a text in UTF-8" if text is None else "is larger than 1 MiB"
        raise InvalidArgumentError(f"{printable(str(path))} {problem}; leave it out", code="BAD_TEXT")
    return text.rstrip("\n")


@dataclass
class _ChatLoop:
    """Chat loop. A fork switches it to another conversation.

    Attributes:
        channel: the channel to the gateway.
        options: the options.
        conversation: the conversation after its last turn.
        is_over: True after `/quit`.
        unanswered: the last message if it failed, for `/retry`.
    """

    channel: grpc.aio.Channel
    options: ChatSettings
    conversation: pb.Conversation = field(default_factory=pb.Conversation)
    is_over: bool = False
    unanswered: str = ""

    @property
    def gateway(self) -> gateway_pb2_grpc.GatewayServiceAsyncStub:
        """The gateway stub of this chat."""
        return gateway_pb2_grpc.GatewayServiceStub(self.channel)

    async def begin(self) -> None:
        """Load the conversation to continue, or start a new one."""
        if self.options.conversation_id is None:
            await self._create()
            return
        request = pb.GetConversationRequest(conversation_id=self.options.conversation_id)
        self.conversation = (await self.gateway.GetConversation(request)).conversation

    async def handle_line(self, line: str) -> bool:
        """Process an input line; return False if it failed."""
        name, _, rest = line.partition(" ")
        commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/help": self._help,
            "/retry": self._retry,
            "/edit": self._edit,
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
                error_console().print(f"{name}: unknown command; /help lists the commands.")
                return False
            elif line:
                await self._send(include_files(line))
        except PeripetyError as error:
            explain_error(error)
            return False
        except ValueError:
            error_console().print(f"{name} needs a number of turns.")
            return False
        return True

    def print_resume_hint(self) -> None:
        """Print the command that continues the conversation."""
        if self.conversation.turn_count:
            person_console().print(
                f"Continue with: peripety chat --conversation {self.conversation.conversation_id}",
            )

    async def _send(self, text: str) -> None:
        message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text)])
        request = pb.GenerateRequest(
            request_id=str(uuid4()),
            conversation_id=self.conversation.conversation_id,
            expected_turn_count=self.conversation.turn_count,
            prompt=pb.Prompt(messages=[message]),
            options=pb.GenerationOptions(
                model=self.options.model,
                max_output_tokens=self.options.max_output_tokens,
            ),
        )
        self.unanswered = text
        answer = MarkdownWriter(result_console())
        if not self.options.as_json:
            answer.wait()
        try:
            async for response in self.gateway.Generate(request):
                if self.options.as_json:
                    write_json(to_json(without_provider_state(response)))
                else:
                    self._show(response, answer)
                if response.HasField("completed"):
                    self.unanswered = ""
                    self.conversation.turn_count = response.completed.conversation_turn
                    person_console().print(format_usage(response.completed), style="dim")
        finally:
            answer.stop_waiting()

    def _show(self, response: pb.GenerateResponse, answer: MarkdownWriter) -> None:
        match response.WhichOneof("event"):
            case "text_delta":
                answer.write(response.text_delta)
            case "reasoning_delta" if self.options.reasoning:
                answer.stop_waiting()
                result_console().print(printable(response.reasoning_delta), end="", style="dim italic")
            case "fallback_started":
                answer.stop_waiting()
                falling = response.fallback_started
                told = f"{falling.from_model}: {falling.cause.message}; asking {falling.to_model}"
                error_console().print(printable(told))
            case "completed":
                answer.end()

    async def _retry(self, _rest: str) -> None:
        """Send the last message again; its old answer is removed."""
        text = self.unanswered
        if not text:
            text = await self._last_message()
            await self._rewind_to(self.conversation.turn_count - 1)
        await self._send(text)

    async def _edit(self, text: str) -> None:
        """Send another message in place of the last one."""
        if not text:
            last = self.unanswered or await self._last_message()
            self._tell(f"Write /edit and the new message. The last one is: {last}")
            return
        if not self.unanswered:
            await self._last_message()
            await self._rewind_to(self.conversation.turn_count - 1)
        await self._send(include_files(text))

    async def _last_message(self) -> str:
        """Return the text of the last message.

        Raises:
            FailedPreconditionError: the conversation is empty.
        """
        if not self.conversation.turn_count:
            raise FailedPreconditionError("the conversation has no message yet")
        token = ""
        while True:
            request = pb.ListConversationTurnsRequest(
                conversation_id=self.conversation.conversation_id, page_token=token
            )
            page = await self.gateway.ListConversationTurns(request)
            token = page.next_page_token
            if not token:
                break
        return "\n".join(part.text for message in page.turns[-1].messages for part in message.parts)

    def _tell(self, text: str) -> None:
        """Print what a command has done; not among the events of `--json`."""
        if not self.options.as_json:
            result_console().print(printable(text), style="dim")

    async def _help(self, _rest: str) -> None:
        result_console().print(_HELP)

    async def _model(self, name: str) -> None:
        self.options.model = name
        self._tell(f"The next answers come from {name or 'the configured model'}.")

    async def _usage(self, _rest: str) -> None:
        request = pb.GetConversationRequest(conversation_id=self.conversation.conversation_id)
        self.conversation = (await self.gateway.GetConversation(request)).conversation
        result_console().print(
            f"{self.conversation.turn_count} turns: {format_model_usage(self.conversation.usage)}",
        )

    async def _fork(self, count: str) -> None:
        before = self.conversation.conversation_id
        request = pb.ForkConversationRequest(
            request_id=str(uuid4()),
            conversation_id=before,
            turn_count=int(count) if count else None,
        )
        self.conversation = (await self.gateway.ForkConversation(request)).conversation
        self._tell(
            f"You continue in a copy with {_count_turns(self.conversation.turn_count)}. "
            f"The conversation so far stays: peripety chat --conversation {before}"
        )

    async def _rewind(self, count: str) -> None:
        before = self.conversation.turn_count
        await self._rewind_to(int(count))
        removed = before - self.conversation.turn_count
        self._tell(
            f"{_count_turns(removed)} removed; {_count_turns(self.conversation.turn_count)} remain"
            f"{'s' if self.conversation.turn_count == 1 else ''}."
        )

    async def _rewind_to(self, count: int) -> None:
        request = pb.RewindConversationRequest(
            request_id=str(uuid4()),
            conversation_id=self.conversation.conversation_id,
            turn_count=count,
        )
        self.conversation = (await self.gateway.RewindConversation(request)).conversation
        self.unanswered = ""

    async def _new(self, _rest: str) -> None:
        await self._create()
        self._tell("A new conversation starts.")

    async def _create(self) -> None:
        request = pb.CreateConversationRequest(request_id=str(uuid4()), system=self.options.system)
        self.conversation = (await self.gateway.CreateConversation(request)).conversation
        self.unanswered = ""

    async def _quit(self, _rest: str) -> None:
        self.is_over = True


def _count_turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


@commands.command()
def chat(
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Model: provider/model, or a name from `peripety models`. [default: the configured model]",
        ),
    ] = "",
    system: Annotated[
        str,
        typer.Option(metavar="TEXT", help="Instructions of a new conversation. [default: no instructions]"),
    ] = "",
    conversation: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Continue this conversation. [default: a new conversation]"),
    ] = None,
    max_output: Annotated[
        int | None, typer.Option(min=1, help="Maximum tokens of an answer. [default: the limit of the model]")
    ] = None,
    reasoning: Annotated[bool, typer.Option("--reasoning", help="Show the reasoning of the model.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Chat with a model and see the usage of each turn.

    Without a terminal, each line of standard input is a message; a line that fails does not end the chat, but
    the exit code is 1.
    """
    options = ChatSettings(model, system, conversation, max_output, reasoning, as_json)
    raise typer.Exit(asyncio.run(_chat(options)))
