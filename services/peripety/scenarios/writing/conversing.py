"""Conversation of generation and amendment, with a constant prefix for the prompt cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.conversations import Conversation
from peripety.gateway.model import CacheConfig, Options
from peripety.scenarios.prompts import prompt

if TYPE_CHECKING:
    from peripety.gateway.model import ModelGateway
    from peripety.scenarios.model import GenerationLimits

__all__ = ["conversation_about_a_document"]


def conversation_about_a_document(
    gateway: ModelGateway, model: str | None, limits: GenerationLimits
) -> Conversation:
    """Return a new conversation for the repair loop, with a system prompt and schema that are cacheable.

    Args:
        gateway: the model gateway.
        model: as in `GenerateRequest.model`.
        limits: the maximum number of requests, all with the same schema.
    """
    cache = CacheConfig(expected_reuse=limits.answers - 1)
    return Conversation(gateway, prompt("generate"), options=Options(model=model, cache=cache))
