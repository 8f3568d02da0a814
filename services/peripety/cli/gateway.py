"""`peripety chat`, `peripety models` and `peripety usage`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer
from pydantic import TypeAdapter

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1 import gateway_pb2_grpc
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.cli.embedded_services import embedded_services
from peripety.cli.output import (
    error_console,
    explain_error,
    format_dollars,
    format_model_usage,
    format_usage,
    person_console,
    printable,
    result_console,
    start_table,
    table_console,
    write_json,
)
from peripety.cli.prompt import prompt_line
from peripety.core.config import Config
from peripety.errors import PeripetyError
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.models.model_data import ModelData
from peripety.gateway.models.prices import prices_on
from peripety.rpc.proto_json import to_json, without_provider_state

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from datetime import date

    import grpc.aio
    from rich.table import Table

    from peripety.gateway.models.model_data import CacheRules
    from peripety.gateway.models.prices import Price


commands = typer.Typer()


_HELP = """\
  /model NAME    switch to another model, such as anthropic/claude-opus-5-5; alone: the configured model
  /usage         show the usage of the conversation
  /fork [N]      continue in a new conversation that has the first N turns of this one, or all
  /rewind N      remove the last turns, so that N remain
  /new           start a new conversation
  /quit          stop; so does Ctrl-D"""


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
    async with embedded_services("gateway") as channel:
        talk = _ChatLoop(channel, options)
        await talk.begin()
        interactive = sys.stdin.isatty()
        for line in _typed_lines() if interactive else _piped_lines():
            if not await talk.handle_line(line) and not interactive:
                return 1
            if talk.is_over:
                break
        talk.print_resume_hint()
    return 0


def _typed_lines() -> Iterator[str]:
    result_console().print("Type a message; /help lists the commands.", style="dim")
    while (line := prompt_line("> ")) is not None:
        yield line


def _piped_lines() -> Iterator[str]:
    """Yield the lines of standard input; each is one message."""
    for line in sys.stdin:
        yield line.strip()


@dataclass
class _ChatLoop:
    """Chat loop. A fork switches it to another conversation."""

    channel: grpc.aio.Channel
    options: ChatSettings
    conversation: pb.Conversation = field(default_factory=pb.Conversation)
    is_over: bool = False

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

    async def handle_line(self, line: str) -> bool:
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
                error_console().print(f"{name}: unknown command; /help lists the commands.")
            elif line:
                await self._send(line)
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
        async for response in self.gateway.Generate(request):
            if self.options.as_json:
                write_json(to_json(without_provider_state(response)))
            else:
                self._show(response)
            if response.HasField("completed"):
                self.conversation.turn_count = response.completed.conversation_turn
                person_console().print(format_usage(response.completed), style="dim")

    def _show(self, response: pb.GenerateResponse) -> None:
        out = result_console()
        match response.WhichOneof("event"):
            case "text_delta":
                out.print(printable(response.text_delta), end="")
            case "reasoning_delta" if self.options.reasoning:
                out.print(printable(response.reasoning_delta), end="", style="dim italic")
            case "fallback_started":
                falling = response.fallback_started
                told = f"{falling.from_model}: {falling.cause.message}; asking {falling.to_model}"
                error_console().print(printable(told))
            case "completed":
                out.print()

    async def _help(self, _rest: str) -> None:
        result_console().print(_HELP)

    async def _model(self, name: str) -> None:
        self.options.model = name

    async def _usage(self, _rest: str) -> None:
        request = pb.GetConversationRequest(conversation_id=self.conversation.conversation_id)
        self.conversation = (await self.gateway.GetConversation(request)).conversation
        result_console().print(
            f"{self.conversation.turn_count} turns: {format_model_usage(self.conversation.usage)}",
        )

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
        self.is_over = True


_MODEL_COLUMNS = TypeAdapter(ModelData)
_PICO_DOLLARS = 10**6  # pico-dollars per token in one dollar per million tokens
_NUMERIC_MODEL_COLUMNS = ("context", "output", "input $", "output $", "cached $", "written $")


def _models_table(known: Iterable[ModelData], today: date) -> Table:
    """Return a table of capabilities and prices; dollars per million tokens."""
    table = start_table(("model", *_NUMERIC_MODEL_COLUMNS, "cache", "can"), _NUMERIC_MODEL_COLUMNS)
    for model in known:
        (_, first), *others = _current_and_announced_prices(model, today) or [("", None)]
        table.add_row(
            f"{model.provider}/{model.name}",
            f"{model.context_tokens:,}",
            f"{model.max_output_tokens:,}",
            *_format_prices(first),
            _format_cache_rules(model.cache),
            " ".join(_format_features(model)),
        )
        for when, price in others:
            table.add_row(f"  {when}", "", "", *_format_prices(price))
    return table


def _current_and_announced_prices(model: ModelData, today: date) -> list[tuple[str, Price | None]]:
    """Return today's prices, then announced ones, each with its validity.

    The price of small prompts is first.
    """
    now = sorted(prices_on(model.prices, today), key=lambda price: (price.min_input_tokens, bool(price.peak)))
    announced = [price for price in model.prices if price.effective and price.effective > today]
    return [(", ".join(_format_validity(price, today)), price) for price in (*now, *announced)]


def _format_features(model: ModelData) -> list[str]:
    return sorted(capability.value for capability in model.capabilities)


def _format_validity(price: Price, today: date) -> Iterator[str]:
    if price.effective and price.effective > today:
        yield f"from {price.effective}"
    if price.min_input_tokens:
        yield f"from {price.min_input_tokens:,} tokens"
    if price.peak:
        yield "at peak hours"


def _format_prices(price: Price | None) -> tuple[str, ...]:
    if price is None:
        return ("",) * 4
    written = " / ".join(map(_format_dollars, price.cache_write.values()))
    return (
        _format_dollars(price.input),
        _format_dollars(price.output),
        _format_dollars(price.cache_read),
        written,
    )


def _format_dollars(pico: int) -> str:
    """Format a price in dollars per million tokens, with two decimal places or more."""
    whole, fraction = divmod(pico, _PICO_DOLLARS)
    return f"{whole}.{f'{fraction:06}'.rstrip('0'):0<2}"


def _format_cache_rules(rules: CacheRules) -> str:
    ttls = f" for {' / '.join(rules.ttls)}" if rules.ttls else ""
    minimum = f" from {rules.minimum_tokens:,} tokens" if rules.minimum_tokens else ""
    return f"{rules.kind.value}{minimum}{ttls}"


_NUMERIC_USAGE_COLUMNS = ("calls", "input", "cached", "written", "output", "cost", "saved", "stored answers")
_DIMENSIONS = {
    "provider": pb.USAGE_DIMENSION_PROVIDER,
    "model": pb.USAGE_DIMENSION_MODEL,
    "conversation": pb.USAGE_DIMENSION_CONVERSATION,
    "day": pb.USAGE_DIMENSION_DAY,
}
_PAGE_SIZE = 1_000


async def _fetch_rows(names: Sequence[str]) -> list[pb.UsageRow]:
    request = pb.GetUsageRequest(group_by=[_DIMENSIONS[name] for name in names], page_size=_PAGE_SIZE)
    rows: list[pb.UsageRow] = []
    async with embedded_services("gateway") as channel:
        stub = GatewayServiceStub(channel)
        while True:
            page = await stub.GetUsage(request)
            rows.extend(page.rows)
            if not page.next_page_token:
                return rows
            request.page_token = page.next_page_token


def _usage_table(names: Sequence[str], rows: Iterable[pb.UsageRow]) -> Table:
    table = start_table((*dict.fromkeys(names), *_NUMERIC_USAGE_COLUMNS), _NUMERIC_USAGE_COLUMNS)
    for row in rows:
        table.add_row(*(_dimension_value(row, name) for name in dict.fromkeys(names)), *_usage_figures(row))
    return table


def _dimension_value(row: pb.UsageRow, name: str) -> str:
    if name == "day":
        return row.day.ToDatetime().date().isoformat()
    return printable(row.conversation_id if name == "conversation" else getattr(row, name)) or "-"


def _usage_figures(row: pb.UsageRow) -> list[str]:
    used = row.usage
    counts = (
        used.calls,
        used.tokens.input_tokens,
        used.tokens.cache_read_tokens,
        used.tokens.cache_write_tokens,
        used.tokens.output_tokens,
    )
    money = (
        format_dollars(amount.pico_units) if used.HasField("cost") else "?"
        for amount in (used.cost, used.cache_savings)
    )
    return [*(f"{count:,}" for count in counts), *money, f"{row.response_cache_hits:,}"]


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

    Without a terminal, each line of standard input is a message.
    """
    options = ChatSettings(model, system, conversation, max_output, reasoning, as_json)
    raise typer.Exit(asyncio.run(_chat(options)))


@commands.command()
def models(
    provider: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Show only the models of this provider. [default: all providers]"),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print each model as a line of JSON; prices in pico-dollars (10⁻¹² dollars) per token.",
        ),
    ] = False,
) -> None:
    """List known models: limits, prices, cache rules.

    Prices are in dollars per million tokens.
    """
    catalogue = ModelCatalog.load(Config.from_environment().models)
    known = catalogue.models(provider)
    if not known:
        providers = ", ".join(dict.fromkeys(model.provider for model in catalogue.models()))
        raise typer.BadParameter(f"--provider: unknown provider {provider}; use one of {providers}")
    if as_json:
        for model in known:
            write_json(
                _MODEL_COLUMNS.dump_python(model, mode="json") | {"capabilities": _format_features(model)},
            )
        return
    table_console().print(_models_table(known, datetime.now(UTC).date()))


@commands.command()
def usage(
    by: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Group by provider, model, conversation, day: any, with commas. [default: one total]",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print each row as a line of JSON.")] = False,
) -> None:
    """Show model usage: calls, tokens, cost, cache savings."""
    names = [name.strip() for name in by.split(",") if name.strip()]
    if unknown := [name for name in names if name not in _DIMENSIONS]:
        raise typer.BadParameter(f"--by: unknown dimension {unknown[0]}; use {', '.join(_DIMENSIONS)}")
    rows = asyncio.run(_fetch_rows(names))
    if as_json:
        for row in rows:
            write_json(to_json(row))
        return
    table_console().print(_usage_table(names, rows))
