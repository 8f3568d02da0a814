"""What a request may use, told before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.calling.counters import Demand
from peripety.gateway.sizes import prompt_tokens

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest

__all__ = ["demand_of"]

_USUAL_ANSWER = 4096


def demand_of(request: GenerateRequest, output_limit: int | None) -> Demand:
    """Return the tokens to set aside for a request.

    Args:
        request: the question.
        output_limit: the output tokens that its account has in a minute; an answer whose length was left open
            is taken to fit into them.
    """
    answer = request.max_output_tokens
    if answer is None:
        answer = _USUAL_ANSWER if output_limit is None else min(_USUAL_ANSWER, output_limit)
    return Demand(prompt_tokens(request), answer)
