"""`peripety usage`: model usage and cost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.cli.embedded import embedded_services
from peripety.cli.jsonify import jsonify
from peripety.cli.output import tables, write_json
from peripety.cli.spending import dollars
from peripety.cli.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["usage"]

_NUMBERS = ("calls", "input", "cached", "written", "output", "cost", "saved", "stored answers")
_DIMENSIONS = {
    "provider": pb.USAGE_DIMENSION_PROVIDER,
    "model": pb.USAGE_DIMENSION_MODEL,
    "conversation": pb.USAGE_DIMENSION_CONVERSATION,
    "day": pb.USAGE_DIMENSION_DAY,
}
_PAGE = 1_000


def usage(by: str, *, as_json: bool) -> None:
    """Print sums of usage, one per combination of the dimensions in `by`; one total if it is empty."""
    names = [name.strip() for name in by.split(",") if name.strip()]
    if unknown := [name for name in names if name not in _DIMENSIONS]:
        raise typer.BadParameter(f"--by: unknown dimension {unknown[0]}; use {', '.join(_DIMENSIONS)}")
    rows = asyncio.run(_rows(names))
    if as_json:
        for row in rows:
            write_json(jsonify(row))
        return
    tables().print(_table(names, rows))


async def _rows(names: Sequence[str]) -> list[pb.UsageRow]:
    request = pb.GetUsageRequest(group_by=[_DIMENSIONS[name] for name in names], page_size=_PAGE)
    rows: list[pb.UsageRow] = []
    async with embedded_services("gateway") as channel:
        stub = GatewayServiceStub(channel)
        while True:
            page = await stub.GetUsage(request)
            rows.extend(page.rows)
            if not page.next_page_token:
                return rows
            request.page_token = page.next_page_token


def _table(names: Sequence[str], rows: Iterable[pb.UsageRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in (*dict.fromkeys(names), *_NUMBERS):
        table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(_of(row, name) for name in dict.fromkeys(names)), *_figures(row))
    return table


def _of(row: pb.UsageRow, name: str) -> str:
    if name == "day":
        return row.day.ToDatetime().date().isoformat()
    return printable(row.conversation_id if name == "conversation" else getattr(row, name)) or "-"


def _figures(row: pb.UsageRow) -> list[str]:
    used = row.usage
    counts = (
        used.calls,
        used.tokens.input_tokens,
        used.tokens.cache_read_tokens,
        used.tokens.cache_write_tokens,
        used.tokens.output_tokens,
    )
    money = (
        dollars(amount.pico_units) if used.HasField("cost") else "?"
        for amount in (used.cost, used.cache_savings)
    )
    return [*(f"{count:,}" for count in counts), *money, f"{row.response_cache_hits:,}"]
