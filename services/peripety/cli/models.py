"""`peripety models`: known models and their prices."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer
from pydantic import TypeAdapter
from rich.table import Table

from peripety.cli.output import tables, write_json
from peripety.config import Config
from peripety.gateway.catalogue import Catalogue, ModelData
from peripety.gateway.catalogue.prices import prices_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

    from peripety.gateway.catalogue import CacheRules, Price

__all__ = ["models"]

_MODEL = TypeAdapter(ModelData)
_PICO_DOLLARS = 10**6  # pico-dollars per token in one dollar per million tokens
_NUMBERS = ("context", "output", "input $", "output $", "cached $", "written $")


def models(provider: str | None, *, as_json: bool) -> None:
    """Print the named models of one provider, or of all."""
    catalogue = Catalogue.load(Config.from_environment().models)
    known = catalogue.models(provider)
    if not known:
        providers = ", ".join(dict.fromkeys(model.provider for model in catalogue.models()))
        raise typer.BadParameter(f"--provider: unknown provider {provider}; use one of {providers}")
    if as_json:
        for model in known:
            write_json(_MODEL.dump_python(model, mode="json") | {"capabilities": _can(model)})
        return
    tables().print(_table(known, datetime.now(UTC).date()))


def _table(known: Iterable[ModelData], today: date) -> Table:
    """Return a table of capabilities and prices; dollars per million tokens."""
    table = Table(box=None, pad_edge=False)
    for name in ("model", *_NUMBERS, "cache", "can"):
        table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for model in known:
        (_, first), *others = _prices(model, today) or [("", None)]
        table.add_row(
            f"{model.provider}/{model.name}",
            f"{model.context_tokens:,}",
            f"{model.max_output_tokens:,}",
            *_dollars(first),
            _rules(model.cache),
            " ".join(_can(model)),
        )
        for when, price in others:
            table.add_row(f"  {when}", "", "", *_dollars(price))
    return table


def _prices(model: ModelData, today: date) -> list[tuple[str, Price | None]]:
    """Return today's prices, then announced ones, each with its validity.

    The price of small prompts is first.
    """
    now = sorted(prices_on(model.prices, today), key=lambda price: (price.min_input_tokens, bool(price.peak)))
    announced = [price for price in model.prices if price.effective and price.effective > today]
    return [(", ".join(_when(price, today)), price) for price in (*now, *announced)]


def _can(model: ModelData) -> list[str]:
    return sorted(capability.value for capability in model.capabilities)


def _when(price: Price, today: date) -> Iterator[str]:
    if price.effective and price.effective > today:
        yield f"from {price.effective}"
    if price.min_input_tokens:
        yield f"from {price.min_input_tokens:,} tokens"
    if price.peak:
        yield "at peak hours"


def _dollars(price: Price | None) -> tuple[str, ...]:
    if price is None:
        return ("",) * 4
    written = " / ".join(map(_dollar, price.cache_write.values()))
    return _dollar(price.input), _dollar(price.output), _dollar(price.cache_read), written


def _dollar(pico: int) -> str:
    """Format a price in dollars per million tokens, with two decimal places or more."""
    whole, fraction = divmod(pico, _PICO_DOLLARS)
    return f"{whole}.{f'{fraction:06}'.rstrip('0'):0<2}"


def _rules(rules: CacheRules) -> str:
    ttls = f" for {' / '.join(rules.ttls)}" if rules.ttls else ""
    minimum = f" from {rules.minimum_tokens:,} tokens" if rules.minimum_tokens else ""
    return f"{rules.kind.value}{minimum}{ttls}"
