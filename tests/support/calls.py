"""Calls of providers, for tests of what providers make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.providers.provider import ProviderCall
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest

if TYPE_CHECKING:
    from peripety.gateway.types.response import CacheBreakpoint


def call_of(
    request: GenerateRequest,
    model: str = "m",
    provider: str = "generic",
    breakpoints: tuple[CacheBreakpoint, ...] = (),
) -> ProviderCall:
    """A call of a model with what the catalogue knows of it."""
    return ProviderCall(request, model, ModelCatalog.load().find(provider, model), breakpoints)


def asking(text: str = "u", **options: Any) -> GenerateRequest:
    """A question in one message."""
    return GenerateRequest("s", (ChatMessage.user(text),), **options)
