"""Estimate of the usage of a call, before it is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.calling.counters import Demand
from peripety.gateway.catalogue import most_it_can_cost
from peripety.gateway.sizes import prompt_tokens

if TYPE_CHECKING:
    from datetime import datetime

    from peripety.config import ProviderLimits
    from peripety.gateway.providers.base import Call

__all__ = ["answering_at_most", "demand_of", "longest_affordable"]


def demand_of(call: Call, limits: ProviderLimits, when: datetime) -> Demand:
    """Return the usage to reserve for a call.

    Args:
        call: the call.
        limits: limits of its account; an answer without a maximum length is assumed to fit into them.
        when: current time.
    """
    prompt = prompt_tokens(call.request)
    answer = call.request.max_output_tokens
    if answer is None:
        answer = call.data.default_output_tokens
        if limits.output_tokens_per_minute is not None:
            answer = min(answer, limits.output_tokens_per_minute)
        if limits.pico_dollars_per_minute is not None:
            answer = longest_affordable(call, prompt, answer, limits.pico_dollars_per_minute, when)
    return Demand(prompt, answer, most_it_can_cost(prompt, answer, call.data, when))


def longest_affordable(call: Call, prompt: int, most: int, cost: int, when: datetime) -> int:
    """Return the maximum number of output tokens, at least 1, with which a call costs no more than an amount.

    Args:
        call: the call.
        prompt: tokens of its prompt.
        most: the desired maximum.
        cost: the amount, in pico-dollars.
        when: current time.
    """
    fits, too_many = 1, most + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if (most_it_can_cost(prompt, middle, call.data, when) or 0) <= cost:
            fits = middle
        else:
            too_many = middle
    return fits


def answering_at_most(call: Call, tokens: int) -> Call:
    """Return the call with another maximum of output tokens."""
    return replace(call, request=replace(call.request, max_output_tokens=tokens))
