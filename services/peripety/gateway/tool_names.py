"""Wire names of tools: the characters and lengths that every provider accepts."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.gateway.model import GenerateRequest

__all__ = ["ToolNames", "to_wire_name"]

_TAKEN_AS_IT_IS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 64
_DIGEST = 8


class ToolNames:
    """Mapping between the tools of one request and their wire names.

    Args:
        names: the offered tools, and those that were called before.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._offered = {to_wire_name(name): name for name in names}

    @classmethod
    def of(cls, request: GenerateRequest) -> ToolNames:
        """Return the names in a request; a model may also call a tool that is no longer offered."""
        called = (call.name for message in request.messages for call in message.tool_calls)
        return cls([*called, *(tool.name for tool in request.tools)])

    def from_wire(self, name: str) -> str:
        """Return the tool with a wire name; an unknown name is returned unchanged."""
        return self._offered.get(name, name)


def to_wire_name(name: str) -> str:
    """Return a tool's name in characters that every provider accepts.

    A valid name is returned unchanged. Any other becomes a readable form with a digest appended. The result
    depends only on the name, not on other tools, so cached prompt prefixes stay valid.
    """
    if _TAKEN_AS_IT_IS.fullmatch(name):
        return name
    readable = _FORBIDDEN.sub("_", name).strip("_-")
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{('t_' + readable)[: _LONGEST - _DIGEST - 1]}_{digest}"
