"""Decoders of the content blocks of a streamed answer, one per block type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from peripety.gateway.providers.fields import malformed, object_in, text_in
from peripety.gateway.providers.states import keep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.providers.assembling import Assembly, GrowingCall
    from peripety.gateway.providers.base import Call, Delta
    from peripety.gateway.providers.earlier_turns import CallIds
    from peripety.gateway.tool_names import ToolNames

__all__ = ["OpenBlock", "open_block"]


class OpenBlock(Protocol):
    """Decoder of a content block that has started."""

    def feed(self, delta: Mapping[str, Any]) -> Sequence[Delta]:
        """Add the next delta; return the neutral deltas that result.

        Raises:
            UnavailableError: a block of this type has no such deltas.
        """
        ...

    def close(self) -> None:
        """End the block."""
        ...


def open_block(
    block: Mapping[str, Any], assembly: Assembly, names: ToolNames, ids: CallIds, call: Call
) -> tuple[OpenBlock, Sequence[Delta]]:
    """Start a block.

    Args:
        block: its start event.
        assembly: collects the answer.
        names: the offered tools.
        ids: the ids of earlier calls.
        call: the call that is answered.

    Returns:
        The decoder, and the deltas of the start event.
    """
    match text_in(block.get("type")):
        case "text":
            return _TextBlock(assembly), assembly.add_text(text_in(block.get("text")))
        case "tool_use":
            call_id, name = text_in(block.get("id")), text_in(block.get("name"))
            if not call_id or not name:
                raise malformed("a tool call lacks its id or its name")
            tool_call = assembly.open_call(ids.unlike(call_id), names.from_wire(name))
            # Some compatible servers send all arguments at once.
            whole = object_in(block.get("input"))
            arguments = json.dumps(whole, ensure_ascii=False) if whole else ""
            return _CallBlock(assembly, tool_call), assembly.add_arguments(tool_call, arguments)
        case "thinking":
            return _ThinkingBlock(assembly, call, block), ()
        case "redacted_thinking":
            assembly.add_state(keep(call, block))
            return _OtherBlock(), ()
        case _:
            return _OtherBlock(), ()


class _TextBlock:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def feed(self, delta: Mapping[str, Any]) -> Sequence[Delta]:
        if delta.get("type") == "citations_delta":
            return ()
        return self._assembly.add_text(_piece(delta, "text_delta", "text"))

    def close(self) -> None:
        """End the block; a text needs no action."""


class _CallBlock:
    def __init__(self, assembly: Assembly, call: GrowingCall) -> None:
        self._assembly = assembly
        self._call = call

    def feed(self, delta: Mapping[str, Any]) -> Sequence[Delta]:
        return self._assembly.add_arguments(self._call, _piece(delta, "input_json_delta", "partial_json"))

    def close(self) -> None:
        """End the block; its arguments are parsed with the whole answer."""


class _ThinkingBlock:
    def __init__(self, assembly: Assembly, call: Call, block: Mapping[str, Any]) -> None:
        self._assembly = assembly
        self._call = call
        self._block = block
        self._thinking = [text_in(block.get("thinking"))]
        self._signature = [text_in(block.get("signature"))]

    def feed(self, delta: Mapping[str, Any]) -> Sequence[Delta]:
        if delta.get("type") == "signature_delta":
            self._signature.append(_piece(delta, "signature_delta", "signature"))
            return ()
        self._thinking.append(_piece(delta, "thinking_delta", "thinking"))
        return self._assembly.add_reasoning(self._thinking[-1])

    def close(self) -> None:
        """Store the block unchanged for the next call.

        One without signature was truncated and would be rejected.
        """
        whole = {"thinking": "".join(self._thinking), "signature": "".join(self._signature)}
        if whole["signature"]:
            self._assembly.add_state(keep(self._call, {**self._block, **whole}))


class _OtherBlock:
    """Decoder of a block without content for the user, or of unknown type."""

    def feed(self, _delta: Mapping[str, Any]) -> Sequence[Delta]:
        return ()

    def close(self) -> None:
        """End the block; it has no content to store."""


def _piece(delta: Mapping[str, Any], kind: str, field: str) -> str:
    if delta.get("type") != kind:
        raise malformed(f"{kind} is missing where one belongs")
    return text_in(delta.get(field))
