"""Usage lines for people, and budgets of requests."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from peripety.api.common.v1 import common_pb2 as common

if TYPE_CHECKING:
    from peripety.api.gateway.v1 import gateway_pb2 as pb

__all__ = ["budget", "dollars", "model_usage_line", "usage_line"]

_PICO = 10**12


def budget(*, calls: int = 0, tokens: int = 0, dollars: float = 0.0, seconds: float = 0.0) -> common.Budget:
    """Return a budget; 0 means no limit."""
    written = common.Budget(max_calls=calls, max_tokens=tokens)
    if dollars:
        written.max_cost.currency_code = "USD"
        written.max_cost.pico_units = round(dollars * _PICO)
    if seconds:
        written.max_time.FromTimedelta(timedelta(seconds=seconds))
    return written


def usage_line(completion: pb.Completion) -> str:
    """Format the usage of an answer: tokens, prompt cache result and forecast, cost."""
    usage = completion.usage
    words = [f"{usage.input_tokens:,} in"]
    if usage.cache_read_tokens or usage.cache_write_tokens or completion.cache_plan.breakpoints:
        plan = completion.cache_plan
        words[0] += (
            f" ({usage.cache_read_tokens:,} cached, {usage.cache_write_tokens:,} written;"
            f" expected {plan.predicted_read_tokens:,}, {plan.predicted_write_tokens:,})"
        )
    words.append(_output(usage))
    if completion.HasField("cost"):
        words.append(_money(completion.cost, completion.cache_savings))
    words.append(f"{completion.provider}/{completion.model}")
    if completion.from_response_cache:
        words.append("stored answer")
    return " · ".join(words)


def model_usage_line(used: common.ModelUsage) -> str:
    """Format the usage of several calls, with the share of cached input."""
    tokens = used.tokens
    share = tokens.cache_read_tokens / max(tokens.input_tokens, 1)
    words = [
        f"{used.calls:,} call{'' if used.calls == 1 else 's'}",
        f"{tokens.input_tokens:,} in ({tokens.cache_read_tokens:,} cached, {share:.0%})",
        _output(tokens),
    ]
    if used.HasField("cost"):
        words.append(_money(used.cost, used.cache_savings))
    return " · ".join(words)


def dollars(pico_units: int) -> str:
    """Format an amount in pico-dollars (10^-12), with more decimal places for small amounts."""
    amount = abs(pico_units)
    places = 2 if amount >= _PICO or not amount else 6
    return f"{'-' if pico_units < 0 else ''}${amount / _PICO:,.{places}f}"


def _output(usage: common.TokenUsage) -> str:
    reasoning = f" ({usage.reasoning_tokens:,} reasoning)" if usage.reasoning_tokens else ""
    return f"{usage.output_tokens:,} out{reasoning}"


def _money(cost: common.Money, savings: common.Money) -> str:
    saved = f" (cache saved {dollars(savings.pico_units)})" if savings.pico_units else ""
    return f"{dollars(cost.pico_units)}{saved}"
