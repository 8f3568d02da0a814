"""Conversion of Gemini requests to API-independent types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Block, Message, Section, Tool, ToolCall, ToolResult
from peripety.simulator.truth import tokens
from peripety.simulator.wire.gemini.schemas import json_schema
from peripety.simulator.wire.json_text import compact, content

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.simulator.wire.gemini.turns import Turn

__all__ = ["answer_schema", "blocks", "messages", "shows_thoughts", "system", "thinks", "tools"]

# Keys that clients use to wrap a function result in an object.
_WRAPPERS = ("output", "result", "error")
# Opaque state is not part of the model input.
_OPAQUE = "thought_signature"


def messages(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Return the conversation, one message per turn."""
    found: list[Message] = []
    for turn in turns:
        called = found[-1].calls if found else ()
        found.append(_message(turn, called))
    return tuple(found)


def _message(turn: Turn, called: Sequence[ToolCall]) -> Message:
    return Message(
        turn.role,
        "".join(part["text"] for part in turn.parts if "text" in part and not part.get("thought")),
        tuple(map(_call, turn.of("function_call"))),
        tuple(_results(turn.of("function_response"), called)),
    )


def _call(call: Mapping[str, Any]) -> ToolCall:
    return ToolCall(call["name"], call.get("args", {}), call.get("id", ""))


def _results(responses: Sequence[Mapping[str, Any]], called: Sequence[ToolCall]) -> Iterator[ToolResult]:
    """Yield results with the ids of their calls.

    A result without an id belongs to the next call of its function.
    """
    waiting = list(called)
    for each in responses:
        name, call_id = each["name"], each.get("id", "")
        call = next((call for call in waiting if call.name == name and call_id in {"", call.id}), None)
        if call is not None:
            waiting.remove(call)
            call_id = call.id
        yield ToolResult(_result_text(each.get("response", {})), call_id, name)


def _result_text(response: Mapping[str, Any]) -> str:
    """Return the result of a function without its wrapping object."""
    value: Any = response
    if len(response) == 1 and (name := next(iter(response))) in _WRAPPERS:
        value = response[name]
    return value if isinstance(value, str) else compact(value).decode()


def system(fields: Mapping[str, Any]) -> str:
    """Return the system prompt."""
    parts = fields.get("system_instruction", {}).get("parts", ())
    return "".join(part.get("text", "") for part in parts)


def tools(fields: Mapping[str, Any]) -> tuple[Tool, ...]:
    """Return the available functions."""
    return tuple(
        Tool(each["name"], each.get("description", ""), _parameters(each))
        for tool in fields.get("tools", ())
        for each in tool.get("function_declarations", ())
    )


def _parameters(declaration: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = declaration.get("parameters_json_schema")
    return schema if isinstance(schema, dict) else json_schema(declaration.get("parameters", {}))


def answer_schema(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the answer; `{}` for any JSON."""
    for name in ("response_json_schema", "_response_json_schema"):
        if isinstance(config.get(name), dict):
            return dict(config[name])
    if "response_schema" in config:
        return json_schema(config["response_schema"])
    return {} if config.get("response_mime_type") == "application/json" else None


def thinks(config: Mapping[str, Any]) -> bool:
    """Return True if reasoning is enabled."""
    return bool(config.get("thinking_config", {}).get("thinking_budget") != 0)


def shows_thoughts(config: Mapping[str, Any]) -> bool:
    """Return True if the caller requests visible reasoning."""
    return bool(config.get("thinking_config", {}).get("include_thoughts", False))


# ---- the prompt as it is counted and cached


def blocks(fields: Mapping[str, Any], first: int = 0) -> tuple[Block, ...]:
    """Return the pieces of a prompt: functions, parts of the system instruction, and parts of turns.

    Args:
        fields: the message with `tools`, `system_instruction` and `contents`.
        first: number of turns before its contents.
    """
    return tuple(_blocks(fields, first))


def _blocks(fields: Mapping[str, Any], first: int) -> Iterator[Block]:
    for tool in fields.get("tools", ()):
        for name, value in tool.items():
            for each in value if name == "function_declarations" else (value,):
                yield _block(Section.TOOLS, name, {name: each})
    for part in fields.get("system_instruction", {}).get("parts", ()):
        yield _block(Section.SYSTEM, _kind(part), part)
    for at, each in enumerate(fields.get("contents", ()), first):
        for part in each["parts"]:
            yield _block(Section.MESSAGES, _kind(part), part, role=each.get("role") or "user", message=at)


def _block(
    section: Section, kind: str, part: Mapping[str, Any], *, role: str = "", message: int = -1
) -> Block:
    written = content({"role": role, **part} if role else part, _OPAQUE)
    text = part["text"] if kind == "text" else content(part, _OPAQUE).decode()
    return Block(section, kind, written, tokens.count(text), message=message)


def _kind(part: Mapping[str, Any]) -> str:
    return next((name for name in part if name not in {"thought", _OPAQUE}), "thought")
