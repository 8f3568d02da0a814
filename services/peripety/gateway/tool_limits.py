"""Limits of providers on tools, besides their names: their number, and the names of arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.config import ProviderName
from peripety.errors import FieldViolation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.gateway.model import Tool

__all__ = ["not_taken"]

_MOST = {
    ProviderName.OPENAI: 128,
    ProviderName.OPENAI_RESPONSES: 128,
    ProviderName.AZURE: 128,
    ProviderName.DEEPSEEK: 128,
    ProviderName.GEMINI: 512,
}
_ARGUMENTS = {ProviderName.ANTHROPIC: re.compile(r"[A-Za-z0-9_.-]{1,64}")}


def not_taken(tools: Sequence[Tool], provider: ProviderName) -> Iterator[FieldViolation]:
    """Yield the violations for which a provider would reject tools; empty if it accepts all of them."""
    most, argument = _MOST.get(provider), _ARGUMENTS.get(provider)
    if most is not None and len(tools) > most:
        yield FieldViolation("tools", f"are {len(tools)}, and {provider.value} accepts at most {most}")
    if argument is None:
        return
    for index, tool in enumerate(tools):
        for name in tool.input_schema.get("properties", {}):
            if not argument.fullmatch(name):
                reason = f"has '{name[:80]}'; {provider.value} accepts names of 1 to 64 of A-Z a-z 0-9 _ . -"
                yield FieldViolation(f"tools[{index}].input_schema.properties", reason)
