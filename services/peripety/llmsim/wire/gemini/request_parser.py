"""Gemini request parser: semantic checks with the provider's own messages, and API-independent types.

Consecutive contents of one role are one turn: clients that store stream chunks as history send an answer
back as several contents. Gemini's schemas, a subset of OpenAPI, are converted to JSON Schema.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.llmsim.determinism import is_own_signature
from peripety.llmsim.provider_rules import models
from peripety.llmsim.types import (
    ApiError,
    ApiErrorKind,
    CacheSection,
    SimBlock,
    SimMessage,
    SimRole,
    SimTool,
    SimToolCall,
    SimToolResult,
)
from peripety.llmsim.wire.base import block_cache_key, compact_json
from peripety.llmsim.wire.gemini.proto_json import ONE_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


ROLES = {"": SimRole.USER, "user": SimRole.USER, "function": SimRole.USER, "model": SimRole.ASSISTANT}


class ContentTurn(NamedTuple):
    """Consecutive contents of one role.

    Attributes:
        role: the role.
        first: the index of its first content.
        parts: all parts.
    """

    role: SimRole
    first: int
    parts: Sequence[Mapping[str, Any]]

    def values_of(self, kind: str) -> list[Any]:
        """Return the values of parts of one kind."""
        return [part[kind] for part in self.parts if kind in part]


def group_turns(contents: Sequence[Mapping[str, Any]]) -> list[ContentTurn]:
    """Return the turns of a conversation."""
    found = []
    for role, group in groupby(enumerate(contents), lambda item: ROLES[item[1].get("role", "")]):
        numbered = list(group)
        parts = [part for _, content in numbered for part in content["parts"]]
        found.append(ContentTurn(role, numbered[0][0], parts))
    return found


# Placeholder signature for a history of another model.
_NO_SIGNATURE = "skip_thought_signature_validator"

_OUT_OF_TURN_MESSAGE = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn."
)
_UNCALLED_MESSAGE = "Please ensure that function response turn comes immediately after a function call turn."
_UNANSWERED_MESSAGE = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
_UNSIGNED_MESSAGE = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
    "function call `default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_MISNAMED_MESSAGE = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_MEDIA = (
    "allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and "
    "`text/x.enum`."
)
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_MEDIA_TYPES = ("text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum")
_MAX_STOP_SEQUENCES = 5


def invalid_argument(message: str, param: str | None = None) -> ApiError:
    """Return an INVALID_ARGUMENT error."""
    return ApiError(ApiErrorKind.INVALID_REQUEST, message, param=param)


def _raise_violations(faults: Iterator[tuple[str, str]], root: str) -> None:
    found = list(faults)
    if found:
        raise invalid_argument("".join(f"* {root}.{path}: {what}\n" for path, what in found), found[0][0])


# ---- contents


def check_contents(fields: Mapping[str, Any], root: str, *, required: bool = True) -> None:
    """Reject contents and system instructions without parts, or with an invalid role.

    Args:
        fields: the message that contains them.
        root: the path of that message in errors.
        required: True if contents are required.
    """
    _raise_violations(_empty_contents(fields, required=required), root)
    if any(each.get("role", "") not in ROLES for each in fields.get("contents", ())):
        raise invalid_argument("Please use a valid role: user, model.", "contents")


def _empty_contents(fields: Mapping[str, Any], *, required: bool) -> Iterator[tuple[str, str]]:
    contents = fields.get("contents", ())
    if required and not contents:
        yield "contents", "contents is not specified"
    for at, each in enumerate(contents):
        yield from _empty_parts(each, f"contents[{at}]")
    if "system_instruction" in fields:
        yield from _empty_parts(fields["system_instruction"], "system_instruction")


def _empty_parts(each: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    parts = each.get("parts", ())
    if not parts:
        yield f"{path}.parts", "contents.parts must not be empty."
    for at, part in enumerate(parts):
        if not any(name in part for name in ONE_OF["Part"]["data"]):
            reason = "required oneof field 'data' must have one initialized field"
            yield f"{path}.parts[{at}].data", reason
        for kind in ("function_call", "function_response"):
            if kind in part and not part[kind].get("name"):
                yield f"{path}.parts[{at}].{kind}.name", "Name cannot be empty."


def check_turns(turns: Sequence[ContentTurn]) -> None:
    """Reject function calls and function responses that do not match."""
    called = 0  # calls of the previous turn, which must be answered now
    for turn in turns:
        calls, responses = len(turn.values_of("function_call")), len(turn.values_of("function_response"))
        if calls and turn.first == 0:
            raise invalid_argument(_OUT_OF_TURN_MESSAGE, "contents[0]")
        if responses and not called:
            raise invalid_argument(_UNCALLED_MESSAGE, f"contents[{turn.first}]")
        if responses != called:
            raise invalid_argument(_UNANSWERED_MESSAGE, f"contents[{turn.first}]")
        called = calls
    if called:
        raise invalid_argument(_UNANSWERED_MESSAGE, f"contents[{turns[-1].first}]")


def check_signatures(turns: Sequence[ContentTurn], *, required: bool) -> None:
    """Reject foreign signatures and, if signatures are required, function calls without one.

    A signature is required on the first function call of each step since the last user text.
    """
    for turn in turns:
        for part in turn.parts:
            if "thought_signature" in part and not _is_genuine(part["thought_signature"]):
                raise invalid_argument("Corrupted thought signature.", f"contents[{turn.first}]")
    if required:
        begin = max((at for at, turn in enumerate(turns) if _has_content(turn)), default=-1)
        for turn in turns[begin + 1 :]:
            _require_signature(turn)


def _is_genuine(value: str) -> bool:
    dummy = _NO_SIGNATURE.encode()
    # Some clients send the placeholder as text, others base64-encode it as bytes.
    return is_own_signature(value) or base64.b64decode(value) in {dummy, base64.urlsafe_b64decode(dummy)}


def _has_content(turn: ContentTurn) -> bool:
    return turn.role is SimRole.USER and len(turn.values_of("function_response")) < len(turn.parts)


def _require_signature(turn: ContentTurn) -> None:
    first = next((part for part in turn.parts if "function_call" in part), None)
    if first is not None and "thought_signature" not in first:
        name = first["function_call"]["name"]
        raise invalid_argument(
            _UNSIGNED_MESSAGE.format(name=name, position=turn.first + 1),
            f"contents[{turn.first}]",
        )


# ---- tools and configuration


def check_tools(fields: Mapping[str, Any], root: str) -> None:
    """Reject invalid functions, and a calling mode that does not match them."""
    declared = [
        (f"tools[{at}].function_declarations[{number}]", each)
        for at, tool in enumerate(fields.get("tools", ()))
        for number, each in enumerate(tool.get("function_declarations", ()))
    ]
    _raise_violations(_misnamed_functions(declared), root)
    names = [each["name"] for _, each in declared]
    for name, times in Counter(names).items():
        if times > 1:
            raise invalid_argument(f"Duplicate function declaration found: {name}", "tools")
    _raise_violations(
        _calling_mode_faults(fields.get("tool_config", {}).get("function_calling_config"), names),
        root,
    )


def _misnamed_functions(declared: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, str]]:
    for path, each in declared:
        if not _FUNCTION_NAME.fullmatch(each.get("name", "")):
            yield f"{path}.name", _MISNAMED_MESSAGE
        if "parameters" in each and "parameters_json_schema" in each:
            yield f"{path}.parameters", "parameters and parameters_json_schema cannot both be set."


def _calling_mode_faults(config: Mapping[str, Any] | None, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    if config is None:
        return
    path = "tool_config.function_calling_config"
    mode = config.get("mode", "AUTO")
    allowed = config.get("allowed_function_names", ())
    if mode in {"ANY", "VALIDATED"} and not names:
        yield path, "Function calling config is set without function_declarations."
    if allowed and mode not in {"ANY", "VALIDATED"}:
        what = "Allowed function names can only be set when the function calling mode is ANY or VALIDATED."
        yield f"{path}.allowed_function_names", what
    for name in allowed:
        if name not in names:
            what = f"Allowed function name `{name}` is not among the function declarations."
            yield f"{path}.allowed_function_names", what


_RANGES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (lambda value: 0 <= value <= 2, "temperature must be in the range [0.0, 2.0]."),  # noqa: PLR2004
    "top_p": (lambda value: 0 <= value <= 1, "top_p must be in the range [0.0, 1.0]."),
    "top_k": (lambda value: value > 0, "top_k must be positive."),
    "max_output_tokens": (lambda value: value > 0, "max_output_tokens must be positive."),
    "candidate_count": (
        lambda value: value == 1,
        "Only one candidate can be specified in the current model.",
    ),
    "stop_sequences": (
        lambda value: len(value) <= _MAX_STOP_SEQUENCES,
        f"must have at most {_MAX_STOP_SEQUENCES} stop sequences.",
    ),
    "response_mime_type": (lambda value: value in _MEDIA_TYPES, _MEDIA),
}


def check_configuration(config: Mapping[str, Any], root: str) -> None:
    """Reject generation settings out of range, and schemas for non-JSON answers."""
    _raise_violations(_range_faults(config), f"{root}.generation_config")


def _range_faults(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, (fits, what) in _RANGES.items():
        if name in config and not fits(config[name]):
            yield name, what
    schemas = [name for name in config if name.lstrip("_") in {"response_schema", "response_json_schema"}]
    if schemas and config.get("response_mime_type") not in {"application/json", "text/x.enum"}:
        yield schemas[0], "response_mime_type must be `application/json` when a response schema is set."
    if len(schemas) > 1:
        yield schemas[1], f"{schemas[0]} is set as well; only one response schema can be set."


_NAMES = {
    "title": "title",
    "description": "description",
    "format": "format",
    "default": "default",
    "required": "required",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "additional_properties": "additionalProperties",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "ref": "$ref",
}
_UNSPECIFIED = "TYPE_UNSPECIFIED"


def to_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a parsed `Schema` message to JSON Schema."""
    written = {_NAMES[name]: value for name, value in schema.items() if name in _NAMES}
    nullable = schema.get("nullable", False)
    if (kind := schema.get("type", _UNSPECIFIED)) != _UNSPECIFIED:
        written["type"] = [kind.lower(), "null"] if nullable else kind.lower()
    if "enum" in schema:
        written["enum"] = [*schema["enum"], None] if nullable else schema["enum"]
    if "items" in schema:
        written["items"] = to_json_schema(schema["items"])
    if "any_of" in schema:
        written["anyOf"] = [to_json_schema(each) for each in schema["any_of"]]
    for name, keyword in (("properties", "properties"), ("defs", "$defs")):
        if name in schema:
            written[keyword] = {key: to_json_schema(each) for key, each in schema[name].items()}
    return written


# Keys that clients use to wrap a function result in an object.
_WRAPPERS = ("output", "result", "error")
# Opaque state is not part of the model input.
_OPAQUE = "thought_signature"


def to_messages(turns: Sequence[ContentTurn]) -> tuple[SimMessage, ...]:
    """Return the conversation, one message per turn."""
    found: list[SimMessage] = []
    for turn in turns:
        called = found[-1].calls if found else ()
        found.append(_turn_to_message(turn, called))
    return tuple(found)


def _turn_to_message(turn: ContentTurn, called: Sequence[SimToolCall]) -> SimMessage:
    return SimMessage(
        turn.role,
        "".join(part["text"] for part in turn.parts if "text" in part and not part.get("thought")),
        tuple(map(_to_tool_call, turn.values_of("function_call"))),
        tuple(_to_tool_results(turn.values_of("function_response"), called)),
    )


def _to_tool_call(call: Mapping[str, Any]) -> SimToolCall:
    return SimToolCall(call["name"], call.get("args", {}), call.get("id", ""))


def _to_tool_results(
    responses: Sequence[Mapping[str, Any]],
    called: Sequence[SimToolCall],
) -> Iterator[SimToolResult]:
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
        yield SimToolResult(_result_text(each.get("response", {})), call_id, name)


def _result_text(response: Mapping[str, Any]) -> str:
    """Return the result of a function without its wrapping object."""
    value: Any = response
    if len(response) == 1 and (name := next(iter(response))) in _WRAPPERS:
        value = response[name]
    return value if isinstance(value, str) else compact_json(value).decode()


def system_prompt(fields: Mapping[str, Any]) -> str:
    """Return the system prompt."""
    parts = fields.get("system_instruction", {}).get("parts", ())
    return "".join(part.get("text", "") for part in parts)


def declared_functions(fields: Mapping[str, Any]) -> tuple[SimTool, ...]:
    """Return the available functions."""
    return tuple(
        SimTool(each["name"], each.get("description", ""), _parameters(each))
        for tool in fields.get("tools", ())
        for each in tool.get("function_declarations", ())
    )


def _parameters(declaration: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = declaration.get("parameters_json_schema")
    return schema if isinstance(schema, dict) else to_json_schema(declaration.get("parameters", {}))


def answer_schema(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the answer; `{}` for any JSON."""
    for name in ("response_json_schema", "_response_json_schema"):
        if isinstance(config.get(name), dict):
            return dict(config[name])
    if "response_schema" in config:
        return to_json_schema(config["response_schema"])
    return {} if config.get("response_mime_type") == "application/json" else None


def is_reasoning_enabled(config: Mapping[str, Any]) -> bool:
    """Return True if reasoning is enabled."""
    return bool(config.get("thinking_config", {}).get("thinking_budget") != 0)


def shows_reasoning(config: Mapping[str, Any]) -> bool:
    """Return True if the caller requests visible reasoning."""
    return bool(config.get("thinking_config", {}).get("include_thoughts", False))


# ---- the prompt as it is counted and cached


def prompt_blocks(fields: Mapping[str, Any], first: int = 0) -> tuple[SimBlock, ...]:
    """Return the pieces of a prompt: functions, parts of the system instruction, and parts of turns.

    Args:
        fields: the message with `tools`, `system_instruction` and `contents`.
        first: number of turns before its contents.
    """
    return tuple(_iterate_blocks(fields, first))


def _iterate_blocks(fields: Mapping[str, Any], first: int) -> Iterator[SimBlock]:
    for tool in fields.get("tools", ()):
        for name, value in tool.items():
            for each in value if name == "function_declarations" else (value,):
                yield _make_block(CacheSection.TOOLS, name, {name: each})
    for part in fields.get("system_instruction", {}).get("parts", ()):
        yield _make_block(CacheSection.SYSTEM, _part_kind(part), part)
    for at, each in enumerate(fields.get("contents", ()), first):
        for part in each["parts"]:
            yield _make_block(
                CacheSection.MESSAGES,
                _part_kind(part),
                part,
                role=each.get("role") or "user",
                message=at,
            )


def _make_block(
    section: CacheSection,
    kind: str,
    part: Mapping[str, Any],
    *,
    role: str = "",
    message: int = -1,
) -> SimBlock:
    written = block_cache_key({"role": role, **part} if role else part, _OPAQUE)
    text = part["text"] if kind == "text" else block_cache_key(part, _OPAQUE).decode()
    return SimBlock(section, kind, written, models.count_tokens(text), message=message)


def _part_kind(part: Mapping[str, Any]) -> str:
    return next((name for name in part if name not in {"thought", _OPAQUE}), "thought")
