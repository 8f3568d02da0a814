"""The conversation in which a document is written, or changed: the same beginning every time."""

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
    """A new conversation for a `Writer`, whose system text and schema a provider's prompt cache may have.

    Args:
        gateway: answers.
        model: as in `GenerateRequest.model`.
        limits: as many questions may come, all of them under the same schema.
    """
    cache = CacheConfig(expected_reuse=limits.answers - 1)
    return Conversation(gateway, prompt("generate"), options=Options(model=model, cache=cache))
