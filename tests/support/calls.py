"""Calls of providers, for tests of what providers make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.catalogue import Catalogue
from peripety.gateway.model import ChatMessage, GenerateRequest
from peripety.gateway.providers.base import Call

if TYPE_CHECKING:
    from peripety.gateway.model import CacheBreakpoint


def call_of(
    request: GenerateRequest,
    model: str = "m",
    provider: str = "generic",
    breakpoints: tuple[CacheBreakpoint, ...] = (),
) -> Call:
    """A call of a model with what the catalogue knows of it."""
    return Call(request, model, Catalogue.load().find(provider, model), breakpoints)


def asking(text: str = "u", **options: Any) -> GenerateRequest:
    """A question in one message."""
    return GenerateRequest("s", (ChatMessage.user(text),), **options)
