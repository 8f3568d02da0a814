"""Names of tools as providers take them: letters, digits, `_` and `-`, and not many of them."""

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
    """Knows the tools that one request offers by the names that they have on the wire.

    Args:
        names: the tools that are offered, and those that were called before.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._offered = {to_wire_name(name): name for name in names}

    @classmethod
    def of(cls, request: GenerateRequest) -> ToolNames:
        """The names in a request: a model may call a tool again that is offered no more."""
        called = (call.name for message in request.messages for call in message.tool_calls)
        return cls([*called, *(tool.name for tool in request.tools)])

    def from_wire(self, name: str) -> str:
        """The tool that a model means; a name that was never offered stays what it is."""
        return self._offered.get(name, name)


def to_wire_name(name: str) -> str:
    """The name of a tool in characters that every provider takes.

    A name that is made of these stays as it is. Any other becomes readable characters of it and a digest of
    it, so that the same name is always written the same way, whatever else is offered beside it: what
    providers cached of a conversation stays valid.
    """
    if _TAKEN_AS_IT_IS.fullmatch(name):
        return name
    readable = _FORBIDDEN.sub("_", name).strip("_-")
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{('t_' + readable)[: _LONGEST - _DIGEST - 1]}_{digest}"
