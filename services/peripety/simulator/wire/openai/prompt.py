"""Prompt draft: the conversation of a request, and its blocks for counting and caching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Block, Prompt, Section
from peripety.simulator.truth.tokens import count
from peripety.simulator.wire.dialogue import Dialogue
from peripety.simulator.wire.json_text import content, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.model import Marker

__all__ = ["Draft", "arguments"]

_MESSAGE_TOKENS = 3  # OpenAI's token count for message boundaries
_BREAKPOINT = "prompt_cache_breakpoint"
_INSTRUCTING = ("system", "developer")


class Draft(Dialogue):
    """Builder of a conversation with its blocks."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Block] = []

    def prompt(self, settings: Mapping[str, Any], controls: Mapping[str, Any]) -> Prompt:
        """Return all blocks as a prompt.

        Args:
            settings: settings whose change invalidates the whole cache; unset ones are left out.
            controls: the cache controls of the request.
        """
        kept = {name: value for name, value in settings.items() if value is not None}
        return Prompt(tuple(self._blocks), {Section.TOOLS: content(kept)}, controls)

    # ---- what is counted

    def add_tool(self, tool: Mapping[str, Any]) -> None:
        """Add a block for a tool."""
        data = content(tool)
        self._blocks.append(Block(Section.TOOLS, "tool", data, count(data.decode())))

    def add_schema(self, schema: Mapping[str, Any]) -> None:
        """Add a block for the schema of the answer, before the system prompt."""
        data = content(schema)
        self._blocks.append(Block(Section.SYSTEM, "json_schema", data, count(data.decode())))

    def add(
        self,
        message: int,
        role: str,
        block: Mapping[str, Any],
        *,
        tokens: int | None = None,
        marker: Marker | None = None,
    ) -> None:
        """Add a block of a message. The first block of each message has additional tokens.

        Args:
            message: the index of the message.
            role: the role.
            block: the content, with its type.
            tokens: its number of tokens; by default that of its JSON.
            marker: the breakpoint on it.
        """
        instructing = role in _INSTRUCTING and not self._messages
        begins = not self._blocks or self._blocks[-1].message != message
        data = content({**block, "role": role}, _BREAKPOINT)
        self._blocks.append(
            Block(
                section=Section.SYSTEM if instructing else Section.MESSAGES,
                kind=block["type"],
                content=data,
                tokens=(count(data.decode()) if tokens is None else tokens) + _MESSAGE_TOKENS * begins,
                marker=marker,
                message=message,
            )
        )


def arguments(text: str) -> Any:
    """Return the value of tool call arguments; None if they are not JSON, as models may write them."""
    try:
        return parse(text.encode())
    except ValueError:
        return None
