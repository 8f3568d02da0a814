"""Token usage of one answer: each event reports totals, and the last one is final."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import Usage
from peripety.gateway.providers.fields import count_in, object_in

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Counts"]


class Counts:
    """Token counts reported so far."""

    def __init__(self) -> None:
        self._told: dict[str, Any] = {}

    def update(self, usage: Mapping[str, Any]) -> None:
        """Merge the `usage` of an event: its values replace earlier ones."""
        self._told |= {name: value for name, value in usage.items() if value is not None}

    def usage(self) -> Usage:
        """Return the usage. The provider's input count covers only what follows the last cached block."""
        told = self._told
        read = count_in(told.get("cache_read_input_tokens"))
        written = count_in(told.get("cache_creation_input_tokens"))
        by_ttl = object_in(told.get("cache_creation"))
        return Usage(
            input_tokens=count_in(told.get("input_tokens")) + read + written,
            output_tokens=count_in(told.get("output_tokens")),
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=count_in(object_in(told.get("output_tokens_details")).get("thinking_tokens")),
            long_cache_write_tokens=count_in(by_ttl.get("ephemeral_1h_input_tokens")),
        )
