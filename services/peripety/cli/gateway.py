"""`peripety models` and `peripety usage`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import TypeAdapter

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.cli.embedded_services import embedded_services
from peripety.cli.output import (
    format_dollars,
    printable,
    start_table,
    table_console,
    write_json,
)
from peripety.core.config import Config
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.models.model_data import ModelData
from peripety.gateway.models.prices import prices_on
from peripety.rpc.proto_json import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

    from rich.table import Table

    from peripety.gateway.models.model_data import CacheRules
    from peripety.gateway.models.prices import Price


commands = typer.Typer()


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
            help="Group by provider, model, conversation or day; several with commas. [default: one total]",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print each row as a line of JSON.")] = False,
) -> None:
    """Show model usage: calls, tokens, cost, cache savings.

    A question mark replaces a sum that includes a call whose cost is not known, such as an interrupted one.
    """
    names = [name.strip() for name in by.split(",") if name.strip()]
    if unknown := [name for name in names if name not in _DIMENSIONS]:
        raise typer.BadParameter(f"--by: unknown dimension {unknown[0]}; use {', '.join(_DIMENSIONS)}")
    rows = asyncio.run(_fetch_rows(names))
    if as_json:
        for row in rows:
            write_json(to_json(row))
        return
    table_console().print(_usage_table(names, rows))
