"""proto3 JSON parser for Gemini bodies, with the leniency and the errors of the API.

Names may be in camelCase or in snake_case, a repeated field may be a single value, null means unset,
numbers may be strings, and enumerations are case-insensitive. All errors are reported together.

A type in a message table is a proto3 scalar in lower case, `value` and `struct` for any JSON value and any
JSON object, or the name of a message or an enumeration; `[]` repeats it, `{}` maps strings to it. Parts of
the API without an effect on answers are a `struct` and are not checked.
"""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from peripety.llmsim.types import ApiError, ApiErrorKind
from peripety.llmsim.wire.base import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_REQUEST = {
    "model": "string",
    "contents": "Content[]",
    "system_instruction": "Content",
    "tools": "Tool[]",
    "tool_config": "ToolConfig",
}

MESSAGES: dict[str, dict[str, str]] = {
    "GenerateContentRequest": {
        **_REQUEST,
        "safety_settings": "SafetySetting[]",
        "generation_config": "GenerationConfig",
        "cached_content": "string",
        "service_tier": "string",
        "store": "bool",
        "labels": "string{}",
        "continuation_token": "bytes",
    },
    "CountTokensRequest": {
        "model": "string",
        "contents": "Content[]",
        "generate_content_request": "GenerateContentRequest",
    },
    "CachedContent": {
        **_REQUEST,
        "name": "string",
        "display_name": "string",
        "create_time": "timestamp",
        "update_time": "timestamp",
        "expire_time": "timestamp",
        "ttl": "duration",
        "usage_metadata": "struct",
    },
    "Content": {"parts": "Part[]", "role": "string"},
    "Part": {
        "text": "string",
        "inline_data": "Blob",
        "file_data": "FileData",
        "function_call": "FunctionCall",
        "function_response": "FunctionResponse",
        "executable_code": "ExecutableCode",
        "code_execution_result": "CodeExecutionResult",
        "tool_call": "struct",
        "tool_response": "struct",
        "thought": "bool",
        "thought_signature": "bytes",
        "video_metadata": "struct",
        "media_resolution": "struct",
        "media_processing": "struct",
        "part_metadata": "struct",
        "audio_transcription": "struct",
        "speech_metadata": "struct",
        "document_metadata": "struct",
        "spreadsheet_metadata": "struct",
        "audio_metadata": "struct",
    },
    "Blob": {"mime_type": "string", "data": "bytes", "display_name": "string"},
    "FileData": {"mime_type": "string", "file_uri": "string", "display_name": "string"},
    "FunctionCall": {"id": "string", "name": "string", "args": "struct"},
    "FunctionResponse": {
        "id": "string",
        "name": "string",
        "response": "struct",
        "parts": "struct[]",
        "will_continue": "bool",
        "scheduling": "Scheduling",
    },
    "ExecutableCode": {"id": "string", "language": "Language", "code": "string"},
    "CodeExecutionResult": {"id": "string", "outcome": "Outcome", "output": "string"},
    "Tool": {
        "function_declarations": "FunctionDeclaration[]",
        "google_search": "struct",
        "google_search_retrieval": "struct",
        "google_maps": "struct",
        "code_execution": "struct",
        "computer_use": "struct",
        "file_search": "struct",
        "url_context": "struct",
        "mcp_servers": "struct[]",
    },
    "FunctionDeclaration": {
        "name": "string",
        "description": "string",
        "parameters": "Schema",
        "parameters_json_schema": "value",
        "response": "Schema",
        "response_json_schema": "value",
        "behavior": "Behavior",
    },
    "ToolConfig": {
        "function_calling_config": "FunctionCallingConfig",
        "retrieval_config": "struct",
        "include_server_side_tool_invocations": "bool",
    },
    "FunctionCallingConfig": {"mode": "Mode", "allowed_function_names": "string[]"},
    "SafetySetting": {"category": "HarmCategory", "threshold": "HarmBlockThreshold"},
    "GenerationConfig": {
        "candidate_count": "int32",
        "stop_sequences": "string[]",
        "max_output_tokens": "int32",
        "temperature": "float",
        "top_p": "float",
        "top_k": "int32",
        "seed": "int32",
        "presence_penalty": "float",
        "frequency_penalty": "float",
        "response_logprobs": "bool",
        "logprobs": "int32",
        "response_mime_type": "string",
        "response_schema": "Schema",
        "response_json_schema": "value",
        "_response_json_schema": "value",
        "response_modalities": "Modality[]",
        "response_format": "struct[]",
        "thinking_config": "ThinkingConfig",
        "media_resolution": "string",
        "speech_config": "struct",
        "image_config": "struct",
        "translation_config": "struct",
        "audio_transcription_config": "struct",
        "enable_enhanced_civic_answers": "bool",
    },
    "ThinkingConfig": {
        "include_thoughts": "bool",
        "thinking_budget": "int32",
        "thinking_level": "ThinkingLevel",
    },
    "Schema": {
        "type": "Type",
        "format": "string",
        "title": "string",
        "description": "string",
        "nullable": "bool",
        "default": "value",
        "example": "value",
        "enum": "string[]",
        "items": "Schema",
        "min_items": "int64",
        "max_items": "int64",
        "properties": "Schema{}",
        "property_ordering": "string[]",
        "required": "string[]",
        "min_properties": "int64",
        "max_properties": "int64",
        "additional_properties": "value",
        "minimum": "double",
        "maximum": "double",
        "min_length": "int64",
        "max_length": "int64",
        "pattern": "string",
        "any_of": "Schema[]",
        "ref": "string",
        "defs": "Schema{}",
    },
}

ONE_OF: dict[str, dict[str, tuple[str, ...]]] = {
    "Part": {
        "data": (
            "text",
            "inline_data",
            "file_data",
            "function_call",
            "function_response",
            "executable_code",
            "code_execution_result",
            "tool_call",
            "tool_response",
        ),
    },
    "CachedContent": {"expiration": ("ttl", "expire_time")},
}

ENUMERATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Type": (
        "Type",
        ("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"),
    ),
    "Mode": ("FunctionCallingConfig.Mode", ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")),
    "Modality": (
        "GenerationConfig.Modality",
        ("MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "AUDIO", "VIDEO"),
    ),
    "ThinkingLevel": (
        "ThinkingConfig.ThinkingLevel",
        ("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"),
    ),
    "HarmCategory": (
        "HarmCategory",
        (
            "HARM_CATEGORY_UNSPECIFIED",
            "HARM_CATEGORY_HARASSMENT",
            "HARM_CATEGORY_HATE_SPEECH",
            "HARM_CATEGORY_SEXUALLY_EXPLICIT",
            "HARM_CATEGORY_DANGEROUS_CONTENT",
            "HARM_CATEGORY_CIVIC_INTEGRITY",
            "HARM_CATEGORY_JAILBREAK",
            "HARM_CATEGORY_IMAGE_HATE",
            "HARM_CATEGORY_IMAGE_DANGEROUS_CONTENT",
            "HARM_CATEGORY_IMAGE_HARASSMENT",
            "HARM_CATEGORY_IMAGE_SEXUALLY_EXPLICIT",
        ),
    ),
    "HarmBlockThreshold": (
        "SafetySetting.HarmBlockThreshold",
        (
            "HARM_BLOCK_THRESHOLD_UNSPECIFIED",
            "BLOCK_LOW_AND_ABOVE",
            "BLOCK_MEDIUM_AND_ABOVE",
            "BLOCK_ONLY_HIGH",
            "BLOCK_NONE",
            "OFF",
        ),
    ),
    "Behavior": ("FunctionDeclaration.Behavior", ("UNSPECIFIED", "BLOCKING", "NON_BLOCKING")),
    "Scheduling": (
        "FunctionResponse.Scheduling",
        ("SCHEDULING_UNSPECIFIED", "SILENT", "WHEN_IDLE", "INTERRUPT"),
    ),
    "Language": ("ExecutableCode.Language", ("LANGUAGE_UNSPECIFIED", "PYTHON")),
    "Outcome": (
        "CodeExecutionResult.Outcome",
        ("OUTCOME_UNSPECIFIED", "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"),
    ),
}


_PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta."
_DURATION = re.compile(r"-?\d{1,12}(\.\d{1,9})?s")


class BadFieldsError(ApiError):
    """A body does not match its message type.

    Attributes:
        violations: for each error the path of its message, and the description.
    """

    def __init__(self, *violations: tuple[str, str]) -> None:
        super().__init__(
            ApiErrorKind.INVALID_REQUEST,
            "\n".join(description for _, description in violations),
            param=violations[0][0] or None,
        )
        self.violations = violations


def read_message(message: str, body: bytes) -> dict[str, Any]:
    """Parse a body as a message.

    Args:
        message: its type, one of `fields.MESSAGES`.
        body: its JSON text.

    Returns:
        The set fields under their names in snake_case: enumerations as names, durations and timestamps as
        seconds, bytes in the standard alphabet of base64.

    Raises:
        BadFieldsError: the body is not JSON, or not such a message.
    """
    try:
        value = parse_json(body)
    except ValueError as error:
        raise BadFieldsError(("", f"Invalid JSON payload received. {error}")) from None
    if not isinstance(value, dict):
        raise BadFieldsError(
            ("", 'Invalid JSON payload received. Unknown name "": Root element must be a message.'),
        )
    reader = _MessageReader()
    fields = reader.read_message(message, value, "")
    if reader.violations:
        raise BadFieldsError(*reader.violations)
    return fields


class _InvalidValueError(Exception):
    """A value is not valid for its type; the text is the error message."""


class _MessageReader:
    def __init__(self) -> None:
        self.violations: list[tuple[str, str]] = []

    def read_message(self, name: str, value: Mapping[str, Any], path: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        known = _accepted_names(name)
        for key, item in value.items():
            field = known.get(key)
            if field is None:
                self._add_violation(key, path, "Cannot find field.")
            elif item is not None and not self._already_set(name, key, field, fields, path):
                fields[field] = self._read_field(key, MESSAGES[name][field], item, path, field)
        return fields

    def _already_set(self, name: str, key: str, field: str, fields: Mapping[str, Any], path: str) -> bool:
        for group, members in ONE_OF.get(name, {}).items():
            if field in members and any(member in fields for member in members):
                what = f"Proto oneof field '{group}' is already set. Cannot set '{key}'"
                self._add_violation(key, path, what)
                return True
        return False

    def _read_field(self, key: str, type_name: str, value: Any, path: str, field: str) -> Any:
        inner = f"{path}.{field}" if path else field
        if type_name.endswith("[]"):
            items = value if isinstance(value, list) else [value]
            return [self._read_one(type_name[:-2], item, f"{inner}[{at}]") for at, item in enumerate(items)]
        if type_name.endswith("{}"):
            if not isinstance(value, dict):
                return self._add_invalid_value(inner, f"(Map), {_format_value(value)}")
            return {
                name: self._read_one(type_name[:-2], item, f"{inner}[{at}].value")
                for at, (name, item) in enumerate(value.items())
            }
        if isinstance(value, list) and type_name != "value":
            return self._add_violation(key, path, "Proto field is not repeating, cannot start list.")
        return self._read_one(type_name, value, inner)

    def _read_one(self, type_name: str, value: Any, path: str) -> Any:
        if type_name in MESSAGES:
            if isinstance(value, dict):
                return self.read_message(type_name, value, path)
            return self._add_invalid_value(path, f"({_PACKAGE}{type_name}), {_format_value(value)}")
        try:
            if type_name in ENUMERATIONS:
                return _enumeration(type_name, value)
            return _SCALARS[type_name](value)
        except _InvalidValueError as error:
            return self._add_invalid_value(path, str(error))

    def _add_violation(self, key: str, path: str, reason: str) -> None:
        place = f" at '{path}'" if path else ""
        description = f'Invalid JSON payload received. Unknown name "{key}"{place}: {reason}'
        self.violations.append((path, description))

    def _add_invalid_value(self, path: str, reason: str) -> None:
        self.violations.append((path, f"Invalid value at '{path}' {reason}"))


@cache
def _accepted_names(message: str) -> Mapping[str, str]:
    """Return the accepted names of the fields of a message."""
    names: dict[str, str] = {}
    for field in MESSAGES[message]:
        camel = re.sub(r"(?<=[a-z])_([a-z])", lambda match: match[1].upper(), field)
        names |= {field: field, camel: field}
    return names


def _format_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _enumeration(name: str, value: Any) -> str:
    full_name, members = ENUMERATIONS[name]
    if not isinstance(value, str) or value.upper() not in members:
        raise _InvalidValueError(f"({_PACKAGE}{full_name}), {_format_value(value)}")
    return value.upper()


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _InvalidValueError(f"(TYPE_STRING), {_format_value(value)}")
    return value


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _InvalidValueError(f"(TYPE_BOOL), {_format_value(value)}")
    return value


def _integer(bits: int) -> Callable[[Any], int]:
    def read_integer(value: Any) -> int:
        number = _as_number(value)
        if number is None or number != int(number) or not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise _InvalidValueError(f"(TYPE_INT{bits}), {_format_value(value)}")
        return int(number)

    return read_integer


def _float(name: str) -> Callable[[Any], float]:
    def read_float(value: Any) -> float:
        number = _as_number(value)
        if number is None:
            raise _InvalidValueError(f"({name}), {_format_value(value)}")
        return float(number)

    return read_float


def _as_number(value: Any) -> float | None:
    """Return a finite number from a number or a numeric string; None otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if isinstance(value, str) else value
        return number if math.isfinite(number) else None
    except (OverflowError, ValueError):
        return None


def _bytes(value: Any) -> str:
    text = _string(value)
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        raise _InvalidValueError(f"(TYPE_BYTES), Base64 decoding failed for {_format_value(value)}") from None
    return base64.b64encode(decoded).decode()


def _duration(value: Any) -> float:
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        what = f"Field 'ttl', Illegal duration format; duration must end with 's', {_format_value(value)}"
        raise _InvalidValueError(f"(type.googleapis.com/google.protobuf.Duration), {what}")
    return float(value[:-1])


def _timestamp(value: Any) -> float:
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.timestamp()
    except (TypeError, ValueError):
        pass
    raise _InvalidValueError(
        "(type.googleapis.com/google.protobuf.Timestamp), "
        f"Field 'expireTime', Invalid time format: {_format_value(value)}",
    )


def _struct(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _InvalidValueError(f"(type.googleapis.com/google.protobuf.Struct), {_format_value(value)}")
    return value


def _any(value: Any) -> Any:
    return value


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "string": _string,
    "bool": _bool,
    "int32": _integer(32),
    "int64": _integer(64),
    "float": _float("TYPE_FLOAT"),
    "double": _float("TYPE_DOUBLE"),
    "bytes": _bytes,
    "duration": _duration,
    "timestamp": _timestamp,
    "struct": _struct,
    "value": _any,
}
