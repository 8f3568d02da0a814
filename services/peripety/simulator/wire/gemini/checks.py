"""Semantic checks of Gemini requests, with the provider's own messages."""

from __future__ import annotations

import base64
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from peripety.simulator.chance import is_signature
from peripety.simulator.model import ApiError, ErrorKind, Role
from peripety.simulator.wire.gemini.fields import ONE_OF
from peripety.simulator.wire.gemini.turns import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.simulator.wire.gemini.turns import Turn

__all__ = [
    "check_configuration",
    "check_contents",
    "check_signatures",
    "check_tools",
    "check_turns",
    "invalid",
]

# Placeholder signature for a history of another model.
_NO_SIGNATURE = "skip_thought_signature_validator"

_OUT_OF_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn."
)
_UNCALLED = "Please ensure that function response turn comes immediately after a function call turn."
_UNANSWERED = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
_UNSIGNED = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
    "function call `default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_MISNAMED = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_MEDIA = (
    "allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and "
    "`text/x.enum`."
)
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_MEDIA_TYPES = ("text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum")
_MOST_STOP_SEQUENCES = 5


def invalid(message: str, param: str | None = None) -> ApiError:
    """Return an INVALID_ARGUMENT error."""
    return ApiError(ErrorKind.INVALID_REQUEST, message, param=param)


def _refuse(faults: Iterator[tuple[str, str]], root: str) -> None:
    found = list(faults)
    if found:
        raise invalid("".join(f"* {root}.{path}: {what}\n" for path, what in found), found[0][0])


# ---- contents


def check_contents(fields: Mapping[str, Any], root: str, *, required: bool = True) -> None:
    """Reject contents and system instructions without parts, or with an invalid role.

    Args:
        fields: the message that contains them.
        root: the path of that message in errors.
        required: True if contents are required.
    """
    _refuse(_empty_contents(fields, required=required), root)
    if any(each.get("role", "") not in ROLES for each in fields.get("contents", ())):
        raise invalid("Please use a valid role: user, model.", "contents")


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


def check_turns(turns: Sequence[Turn]) -> None:
    """Reject function calls and function responses that do not match."""
    called = 0  # calls of the previous turn, which must be answered now
    for turn in turns:
        calls, responses = len(turn.of("function_call")), len(turn.of("function_response"))
        if calls and turn.first == 0:
            raise invalid(_OUT_OF_TURN, "contents[0]")
        if responses and not called:
            raise invalid(_UNCALLED, f"contents[{turn.first}]")
        if responses != called:
            raise invalid(_UNANSWERED, f"contents[{turn.first}]")
        called = calls
    if called:
        raise invalid(_UNANSWERED, f"contents[{turns[-1].first}]")


def check_signatures(turns: Sequence[Turn], *, required: bool) -> None:
    """Reject foreign signatures and, if signatures are required, function calls without one.

    A signature is required on the first function call of each step since the last user text.
    """
    for turn in turns:
        for part in turn.parts:
            if "thought_signature" in part and not _is_genuine(part["thought_signature"]):
                raise invalid("Corrupted thought signature.", f"contents[{turn.first}]")
    if required:
        begin = max((at for at, turn in enumerate(turns) if _says_something(turn)), default=-1)
        for turn in turns[begin + 1 :]:
            _require_signature(turn)


def _is_genuine(value: str) -> bool:
    dummy = _NO_SIGNATURE.encode()
    # Some clients send the placeholder as text, others base64-encode it as bytes.
    return is_signature(value) or base64.b64decode(value) in {dummy, base64.urlsafe_b64decode(dummy)}


def _says_something(turn: Turn) -> bool:
    return turn.role is Role.USER and len(turn.of("function_response")) < len(turn.parts)


def _require_signature(turn: Turn) -> None:
    first = next((part for part in turn.parts if "function_call" in part), None)
    if first is not None and "thought_signature" not in first:
        name = first["function_call"]["name"]
        raise invalid(_UNSIGNED.format(name=name, position=turn.first + 1), f"contents[{turn.first}]")


# ---- tools and configuration


def check_tools(fields: Mapping[str, Any], root: str) -> None:
    """Reject invalid functions, and a calling mode that does not match them."""
    declared = [
        (f"tools[{at}].function_declarations[{number}]", each)
        for at, tool in enumerate(fields.get("tools", ()))
        for number, each in enumerate(tool.get("function_declarations", ()))
    ]
    _refuse(_misnamed(declared), root)
    names = [each["name"] for _, each in declared]
    for name, times in Counter(names).items():
        if times > 1:
            raise invalid(f"Duplicate function declaration found: {name}", "tools")
    _refuse(_misconfigured(fields.get("tool_config", {}).get("function_calling_config"), names), root)


def _misnamed(declared: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, str]]:
    for path, each in declared:
        if not _FUNCTION_NAME.fullmatch(each.get("name", "")):
            yield f"{path}.name", _MISNAMED
        if "parameters" in each and "parameters_json_schema" in each:
            yield f"{path}.parameters", "parameters and parameters_json_schema cannot both be set."


def _misconfigured(config: Mapping[str, Any] | None, names: Sequence[str]) -> Iterator[tuple[str, str]]:
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
        lambda value: len(value) <= _MOST_STOP_SEQUENCES,
        f"must have at most {_MOST_STOP_SEQUENCES} stop sequences.",
    ),
    "response_mime_type": (lambda value: value in _MEDIA_TYPES, _MEDIA),
}


def check_configuration(config: Mapping[str, Any], root: str) -> None:
    """Reject generation settings out of range, and schemas for non-JSON answers."""
    _refuse(_out_of_range(config), f"{root}.generation_config")


def _out_of_range(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, (fits, what) in _RANGES.items():
        if name in config and not fits(config[name]):
            yield name, what
    schemas = [name for name in config if name.lstrip("_") in {"response_schema", "response_json_schema"}]
    if schemas and config.get("response_mime_type") not in {"application/json", "text/x.enum"}:
        yield schemas[0], "response_mime_type must be `application/json` when a response schema is set."
    if len(schemas) > 1:
        yield schemas[1], f"{schemas[0]} is set as well; only one response schema can be set."
