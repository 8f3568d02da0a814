"""Ollama request parser: chat and generate bodies."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, Block, Prompt, Request, Role, Section, Tool, ToolCall, ToolResult
from peripety.simulator.truth import tokens
from peripety.simulator.wire.dialogue import Dialogue
from peripety.simulator.wire.json_text import content
from peripety.simulator.wire.ollama.wording import Wording, invalid
from peripety.simulator.wire.reading import Fields, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["read_chat", "read_generate", "read_model"]

# Default context size; `options.num_ctx` overrides it. Longer input is truncated without an error.
USUAL_CONTEXT = 4096

_ROLES = ("system", "user", "assistant", "tool")
_THINKING = (True, False, "low", "medium", "high", "max")


def read_model(data: bytes) -> tuple[Fields, str]:
    """Parse a body and the model name.

    Raises:
        ApiError: the body is not valid or lacks the model.
    """
    body = Fields.parse(data, Wording())
    model = _text(body, "model") or _text(body, "name")
    if not model:
        raise body.wording.missing(body.at("model"))
    return body, model


def read_chat(data: bytes) -> Request:
    """Parse the body of `/api/chat`.

    Raises:
        ApiError: the body is not valid.
    """
    body, model = read_model(data)
    messages = body.objects("messages", None)
    dialogue = Dialogue()
    for message in messages:
        _listen(dialogue, message)
    tools = body.objects("tools", None)
    blocks = [*map(_declaration, tools), *map(_block, messages, range(len(messages)))]
    return _request("chat", body, model, dialogue, blocks, tuple(map(_tool, tools)))


def read_generate(data: bytes) -> Request:
    """Parse the body of `/api/generate`.

    Raises:
        ApiError: the body is not valid.
    """
    body, model = read_model(data)
    dialogue = Dialogue()
    blocks = []
    system, prompt = body.text("system", None), body.text("prompt", None)
    _check_images(body)
    if system:
        dialogue.instruct(system)
        blocks.append(Block(Section.SYSTEM, "system", system.encode(), tokens.count(system)))
    if prompt:
        dialogue.ask(prompt)
        blocks.append(Block(Section.MESSAGES, "user", prompt.encode(), tokens.count(prompt), message=0))
    return _request("generate", body, model, dialogue, blocks)


def _request(
    form: str, body: Fields, model: str, dialogue: Dialogue, blocks: list[Block], tools: tuple[Tool, ...] = ()
) -> Request:
    options = body.object("options", None) or Fields({}, body.at("options"), body.wording)
    predict, room = options.integer("num_predict", None), options.integer("num_ctx", None)
    keep = body.get("keep_alive", Kind.STRING, Kind.INTEGER, Kind.NUMBER, default=None)
    # Without a prompt, the request only loads or unloads the model.
    loading = None if dialogue.messages or dialogue.system else "unload" if keep in (0, "0", "0s") else "load"
    stream = body.flag("stream", default=None)
    return Request(
        api=Api.OLLAMA,
        model=model,
        messages=dialogue.messages,
        system=dialogue.system,
        tools=tools,
        prompt=Prompt(_kept(blocks, room or USUAL_CONTEXT)),
        max_tokens=predict if predict is not None and predict >= 0 else None,
        stop=_stops(options),
        stream=True if stream is None else stream,
        reasoning=_thinking(body),
        schema=_schema(body),
        options={"form": form, "loading": loading},
    )


def _text(fields: Fields, name: str) -> str:
    """Return a string member; empty if missing."""
    value = fields.text(name, None)
    return value or ""


# ---- messages


def _listen(dialogue: Dialogue, message: Fields) -> None:
    role = message.choice("role", _ROLES)
    text = _text(message, "content")
    message.text("thinking", None)
    _check_images(message)
    match role:
        case "system":
            dialogue.instruct(text)
        case "user":
            dialogue.ask(text)
        case "tool":
            name = _text(message, "tool_name") or _text(message, "name")
            dialogue.result(ToolResult(text, _text(message, "tool_call_id"), name))
        case _:
            dialogue.answer(text)
            for call in message.objects("tool_calls", None):
                dialogue.call(_call(call))


def _call(fields: Fields) -> ToolCall:
    function = fields.object("function")
    arguments = function.object("arguments", None)
    return ToolCall(function.text("name"), {} if arguments is None else arguments.value, _text(fields, "id"))


def _check_images(fields: Fields) -> None:
    for image in fields.texts("images", None):
        try:
            base64.b64decode(image, validate=True)
        except ValueError:  # including non-ASCII characters
            raise invalid("illegal base64 data in an image", fields.at("images")) from None


def _block(message: Fields, index: int) -> Block:
    """Return the prompt block of a message: text, reasoning and tool calls. Images are not counted."""
    said = {name: value for name, value in message.value.items() if name not in ("images", "role") and value}
    calls = said.pop("tool_calls", [])
    weight = sum(tokens.count(text) for text in said.values() if isinstance(text, str))
    weight += sum(tokens.count(content(call).decode()) for call in calls)
    section = Section.SYSTEM if message.value["role"] == Role.SYSTEM else Section.MESSAGES
    return Block(section, message.value["role"], content(message.value), weight, message=index)


def _kept(blocks: list[Block], room: int) -> tuple[Block, ...]:
    """Return the blocks that fit into the context; tools, instructions and the latest message always do."""
    excess = sum(block.tokens for block in blocks) - room
    kept: list[Block] = []
    for number, block in enumerate(blocks):
        if excess > 0 and block.section is Section.MESSAGES and number < len(blocks) - 1:
            excess -= block.tokens
        else:
            kept.append(block)
    return tuple(kept)


# ---- the rest


def _tool(fields: Fields) -> Tool:
    function = fields.object("function")
    parameters = function.object("parameters", None)
    return Tool(
        function.text("name"),
        _text(function, "description"),
        {} if parameters is None else parameters.value,
    )


def _declaration(fields: Fields) -> Block:
    text = content(fields.value)
    return Block(Section.TOOLS, "tool", text, tokens.count(text.decode()))


def _stops(options: Fields) -> tuple[str, ...]:
    value = options.get("stop", Kind.STRING, Kind.ARRAY, default=None)
    return (value,) if isinstance(value, str) else tuple(options.texts("stop", None))


def _thinking(body: Fields) -> bool:
    """Return True unless the request disables reasoning."""
    value = body.get("think", Kind.BOOLEAN, Kind.STRING, default=None)
    if value is not None and value not in _THINKING:
        raise invalid(
            f'invalid think value: "{value}" (must be "high", "medium", "low", "max", true, or false)',
            body.at("think"),
        )
    return value is not False


def _schema(body: Fields) -> Mapping[str, Any] | None:
    value = body.get("format", Kind.STRING, Kind.OBJECT, default=None)
    if isinstance(value, str) and value not in ("", "json"):
        raise invalid(
            f'invalid format: "{value}"; expected "json" or a valid JSON Schema object', body.at("format")
        )
    if value == "json":
        return {}
    return value if isinstance(value, dict) else None
