"""Ollama request parser: chat and generate bodies, with Ollama's error messages."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules import models
from peripety.llmsim.types import (
    Api,
    ApiError,
    ApiErrorKind,
    CacheSection,
    SimBlock,
    SimPrompt,
    SimRequest,
    SimRole,
    SimTool,
    SimToolCall,
    SimToolResult,
)
from peripety.llmsim.wire.base import block_cache_key
from peripety.llmsim.wire.request_parser import Fields, JsonType, MessageBuilder, bracketed_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.wire.request_parser import Path


_ACTUAL_TYPE_NAMES = {JsonType.INTEGER: "number", JsonType.BOOLEAN: "bool"}
_EXPECTED_TYPE_NAMES = {
    JsonType.INTEGER: "int",
    JsonType.NUMBER: "float64",
    JsonType.BOOLEAN: "bool",
    JsonType.OBJECT: "map[string]interface {}",
    JsonType.ARRAY: "[]interface {}",
}


class OllamaErrorMessages:
    """Error messages of an Ollama server, mostly those of its JSON decoder."""

    def not_json(self, reason: str) -> ApiError:
        """Return the error for a body that is not JSON."""
        if reason.startswith("EOF while parsing a value at line 1 column 0"):
            return invalid_request("missing request body")
        return invalid_request(f"invalid JSON: {reason}")

    def missing_member(self, path: Path) -> ApiError:
        """Return the error for a missing required member."""
        return invalid_request(f"{path[-1]} is required", path)

    def wrong_type(self, path: Path, wanted: Sequence[JsonType], value: Any) -> ApiError:
        """Return the error for a value of the wrong type."""
        kind = JsonType.of_value(value)
        names = ".".join(["Request", *(str(step) for step in path if isinstance(step, str))])
        return invalid_request(
            f"json: cannot unmarshal {_ACTUAL_TYPE_NAMES.get(kind, kind)} into Go struct "
            f"field {names} of type "
            f"{_EXPECTED_TYPE_NAMES.get(wanted[0], wanted[0])}",
            path,
        )

    def invalid_choice(self, path: Path, choices: Sequence[str], value: str) -> ApiError:
        """Return the error for a text that is not an allowed value."""
        return invalid_request(f"invalid {path[-1]}: {value}, must be one of [{' '.join(choices)}]", path)

    def unexpected_member(self, path: Path) -> None:  # noqa: ARG002
        """Ignore unknown members."""
        return


def invalid_request(message: str, path: Path = ()) -> ApiError:
    """Return an invalid request error."""
    return ApiError(ApiErrorKind.INVALID_REQUEST, message, param=bracketed_path(path) or None)


# Default context size; `options.num_ctx` overrides it. Longer input is truncated without an error.
DEFAULT_CONTEXT = 4096

_ROLES = ("system", "user", "assistant", "tool")
_THINKING = (True, False, "low", "medium", "high", "max")


def read_model(data: bytes) -> tuple[Fields, str]:
    """Parse a body and the model name.

    Raises:
        ApiError: the body is not valid or lacks the model.
    """
    body = Fields.parse(data, OllamaErrorMessages())
    model = _read_text(body, "model") or _read_text(body, "name")
    if not model:
        raise body.messages.missing_member(body.path_of("model"))
    return body, model


def read_chat(data: bytes) -> SimRequest:
    """Parse the body of `/api/chat`.

    Raises:
        ApiError: the body is not valid.
    """
    body, model = read_model(data)
    messages = body.objects("messages", None)
    dialogue = MessageBuilder()
    for message in messages:
        _read_chat_message(dialogue, message)
    tools = body.objects("tools", None)
    blocks = [*map(_declaration, tools), *map(_message_block, messages, range(len(messages)))]
    return _request("chat", body, model, dialogue, blocks, tuple(map(_to_sim_tool, tools)))


def read_generate(data: bytes) -> SimRequest:
    """Parse the body of `/api/generate`.

    Raises:
        ApiError: the body is not valid.
    """
    body, model = read_model(data)
    dialogue = MessageBuilder()
    blocks = []
    system, prompt = body.text("system", None), body.text("prompt", None)
    _check_images(body)
    if system:
        dialogue.add_instructions(system)
        blocks.append(SimBlock(CacheSection.SYSTEM, "system", system.encode(), models.count_tokens(system)))
    if prompt:
        dialogue.add_user_text(prompt)
        blocks.append(
            SimBlock(CacheSection.MESSAGES, "user", prompt.encode(), models.count_tokens(prompt), message=0),
        )
    return _request("generate", body, model, dialogue, blocks)


def _request(
    form: str,
    body: Fields,
    model: str,
    dialogue: MessageBuilder,
    blocks: list[SimBlock],
    tools: tuple[SimTool, ...] = (),
) -> SimRequest:
    options = body.object("options", None) or Fields({}, body.path_of("options"), body.messages)
    predict, room = options.integer("num_predict", None), options.integer("num_ctx", None)
    keep = body.get("keep_alive", JsonType.STRING, JsonType.INTEGER, JsonType.NUMBER, default=None)
    # Without a prompt, the request only loads or unloads the model.
    loading = None if dialogue.messages or dialogue.system else "unload" if keep in (0, "0", "0s") else "load"
    stream = body.flag("stream", default=None)
    return SimRequest(
        api=Api.OLLAMA,
        model=model,
        messages=dialogue.messages,
        system=dialogue.system,
        tools=tools,
        prompt=SimPrompt(_fit_context(blocks, room or DEFAULT_CONTEXT)),
        max_tokens=predict if predict is not None and predict >= 0 else None,
        stop=_read_stops(options),
        stream=True if stream is None else stream,
        reasoning=_is_reasoning_enabled(body),
        schema=_read_schema(body),
        options={"form": form, "loading": loading},
    )


def _read_text(fields: Fields, name: str) -> str:
    """Return a string member; empty if missing."""
    value = fields.text(name, None)
    return value or ""


# ---- messages


def _read_chat_message(dialogue: MessageBuilder, message: Fields) -> None:
    role = message.choice("role", _ROLES)
    text = _read_text(message, "content")
    message.text("thinking", None)
    _check_images(message)
    match role:
        case "system":
            dialogue.add_instructions(text)
        case "user":
            dialogue.add_user_text(text)
        case "tool":
            name = _read_text(message, "tool_name") or _read_text(message, "name")
            dialogue.add_result(SimToolResult(text, _read_text(message, "tool_call_id"), name))
        case _:
            dialogue.add_model_text(text)
            for call in message.objects("tool_calls", None):
                dialogue.add_call(_call(call))


def _call(fields: Fields) -> SimToolCall:
    function = fields.object("function")
    arguments = function.object("arguments", None)
    return SimToolCall(
        function.text("name"),
        {} if arguments is None else arguments.value,
        _read_text(fields, "id"),
    )


def _check_images(fields: Fields) -> None:
    for image in fields.texts("images", None):
        try:
            base64.b64decode(image, validate=True)
        except ValueError:  # including non-ASCII characters
            raise invalid_request("illegal base64 data in an image", fields.path_of("images")) from None


def _message_block(message: Fields, index: int) -> SimBlock:
    """Return the prompt block of a message: text, reasoning and tool calls. Images are not counted."""
    said = {name: value for name, value in message.value.items() if name not in ("images", "role") and value}
    calls = said.pop("tool_calls", [])
    weight = sum(models.count_tokens(text) for text in said.values() if isinstance(text, str))
    weight += sum(models.count_tokens(block_cache_key(call).decode()) for call in calls)
    section = CacheSection.SYSTEM if message.value["role"] == SimRole.SYSTEM else CacheSection.MESSAGES
    return SimBlock(section, message.value["role"], block_cache_key(message.value), weight, message=index)


def _fit_context(blocks: list[SimBlock], room: int) -> tuple[SimBlock, ...]:
    """Return the blocks that fit into the context; tools, instructions and the latest message always do."""
    excess = sum(block.tokens for block in blocks) - room
    kept: list[SimBlock] = []
    for number, block in enumerate(blocks):
        if excess > 0 and block.section is CacheSection.MESSAGES and number < len(blocks) - 1:
            excess -= block.tokens
        else:
            kept.append(block)
    return tuple(kept)


# ---- the rest


def _to_sim_tool(fields: Fields) -> SimTool:
    function = fields.object("function")
    parameters = function.object("parameters", None)
    return SimTool(
        function.text("name"),
        _read_text(function, "description"),
        {} if parameters is None else parameters.value,
    )


def _declaration(fields: Fields) -> SimBlock:
    text = block_cache_key(fields.value)
    return SimBlock(CacheSection.TOOLS, "tool", text, models.count_tokens(text.decode()))


def _read_stops(options: Fields) -> tuple[str, ...]:
    value = options.get("stop", JsonType.STRING, JsonType.ARRAY, default=None)
    return (value,) if isinstance(value, str) else tuple(options.texts("stop", None))


def _is_reasoning_enabled(body: Fields) -> bool:
    """Return True unless the request disables reasoning."""
    value = body.get("think", JsonType.BOOLEAN, JsonType.STRING, default=None)
    if value is not None and value not in _THINKING:
        raise invalid_request(
            f'invalid think value: "{value}" (must be "high", "medium", "low", "max", true, or false)',
            body.path_of("think"),
        )
    return value is not False


def _read_schema(body: Fields) -> Mapping[str, Any] | None:
    value = body.get("format", JsonType.STRING, JsonType.OBJECT, default=None)
    if isinstance(value, str) and value not in ("", "json"):
        raise invalid_request(
            f'invalid format: "{value}"; expected "json" or a valid JSON Schema object',
            body.path_of("format"),
        )
    if value == "json":
        return {}
    return value if isinstance(value, dict) else None
