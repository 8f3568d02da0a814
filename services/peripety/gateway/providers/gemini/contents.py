"""Turns of a conversation as Gemini's contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ChatRole, ProviderState, Text, ToolCall, ToolResult
from peripety.gateway.providers.earlier_turns import arguments_of, as_user_text, tools_called
from peripety.gateway.providers.gemini.signatures import UNSIGNED, Signature
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.gateway.model import ChatMessage
    from peripety.gateway.providers.base import Call

__all__ = ["to_contents"]

_Json = dict[str, Any]


def to_contents(call: Call) -> list[_Json]:
    """Convert the turns; a turn without any supported part is omitted.

    Args:
        call: the call. Its messages are merged. Thought signatures are sent back only to the model that
            issued them. If the model requires signed calls, those of other models get the documented dummy
            signature.
    """
    messages = call.request.messages
    called = tools_called(messages)
    contents = [_content(message, called, call) for message in messages]
    return [content for content in contents if content["parts"]]


def _content(message: ChatMessage, called: Mapping[str, str], call: Call) -> _Json:
    role, parts = message.role, list[_Json]()
    match role:
        case ChatRole.SYSTEM:
            role, parts = ChatRole.USER, [{"text": as_user_text(message)}]
        case ChatRole.USER:
            parts = list(_asked(message, called))
        case ChatRole.ASSISTANT:
            parts = list(_answered(message, call))
            if call.data.traits.replays_reasoning:
                _sign_for_others(parts)
    return {"role": role.to_provider_string(call.data.provider), "parts": parts}


def _asked(message: ChatMessage, called: Mapping[str, str]) -> Iterator[_Json]:
    for part in message.parts:
        if isinstance(part, Text):
            yield {"text": part.text}
        elif isinstance(part, ToolResult):
            response = {"error" if part.is_error else "output": part.text}
            name = to_wire_name(called[part.call_id])
            yield {"functionResponse": {"id": part.call_id, "name": name, "response": response}}


def _answered(message: ChatMessage, call: Call) -> Iterator[_Json]:
    signature: Signature | None = None
    for part in message.parts:
        match part:
            case ProviderState():
                signature = Signature.of(part, call)
                if signature is not None and signature.characters == 0:
                    yield {"text": "", "thoughtSignature": signature.value}
            case Text():
                yield from _texts(part.text, signature)
                signature = None
            case ToolCall():
                yield _call(part, signature)
                signature = None


def _texts(text: str, signature: Signature | None) -> Iterator[_Json]:
    """Yield a text, split at the end of the part that its signature covers."""
    if signature is not None and signature.characters:
        yield {"text": text[: signature.characters], "thoughtSignature": signature.value}
        text = text[signature.characters :]
    if text:
        yield {"text": text}


def _call(call: ToolCall, signature: Signature | None) -> _Json:
    written = {"id": call.call_id, "name": to_wire_name(call.name), "args": arguments_of(call)}
    if signature is None or signature.characters is not None:
        return {"functionCall": written}
    return {"functionCall": written, "thoughtSignature": signature.value}


def _sign_for_others(parts: Iterable[_Json]) -> None:
    """Sign the first call of a turn with the dummy; parallel calls need no signature."""
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None:
        first.setdefault("thoughtSignature", UNSIGNED)
