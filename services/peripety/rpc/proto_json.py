"""Protobuf messages to and from plain JSON: embedded JSON is inlined, enums are words.

The standard JSON form of protobuf has documents in base64 and 64-bit numbers as text, which people and most
clients would have to decode again. Here a `bytes` field is the value that it holds, an enum is a word, times
are text (RFC 3339, or seconds with an `s`), and the value of a parameter is a number, a text or a boolean.
Every number of the contract is exact in a binary64.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.common.v1.engine_pb2 import ParamValue
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message


M = TypeVar("M", bound="Message")

_TEXT_FIELDS = {"peripety.api.testgen.v1.CommandTest.stdin"}
"""Bytes fields that hold text instead of JSON."""

_BINARY_FIELDS = frozenset({"chunk", "data"})
"""Names of bytes fields that hold parts of files or other bytes; base64 in JSON."""


def to_json(message: Message) -> dict[str, Any]:
    """Return the set fields of a message by name. Most `bytes` fields hold JSON and become its value."""
    return {field.name: _field_to_json(field, value) for field, value in message.ListFields()}


def without_provider_state(message: M) -> M:
    """Return a copy of a message without fields that only a provider can read."""
    copy = type(message)()
    copy.CopyFrom(message)
    _drop_states(copy)
    return copy


def enum_word(field: FieldDescriptor, number: int) -> str:
    """Return the last part of an enum value's name in lower case: `RUN_STATUS_KIND_LOST` becomes `lost`."""
    names = {value.number: value.name for value in field.enum_type.values} if field.enum_type else {}
    if number not in names:
        return str(number)
    return names[number].removeprefix(names[0].removesuffix("UNSPECIFIED")).lower()


def _field_to_json(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {str(key): _value_to_json(inner, value[key]) for key in sorted(value)}
    if field.is_repeated:
        return [_value_to_json(field, item) for item in value]
    return _value_to_json(field, value)


def _value_to_json(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, (Timestamp, Duration)):
        return value.ToJsonString()
    if isinstance(value, ParamValue):
        return getattr(value, value.WhichOneof("kind") or "", None)
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return to_json(value)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return enum_word(field, value)
    return _bytes_to_json(field, value) if field.type == FieldDescriptor.TYPE_BYTES else value


def _bytes_to_json(field: FieldDescriptor, value: bytes) -> Any:
    if field.name in _BINARY_FIELDS:
        return base64.b64encode(value).decode()
    return value.decode(errors="replace") if field.full_name in _TEXT_FIELDS else json.loads(value)


def _drop_states(message: Message) -> None:
    if isinstance(message, pb.ChatMessage):
        parts = [part for part in message.parts if not part.HasField("provider_state")]
        del message.parts[:]
        message.parts.extend(parts)
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for inner in value if field.is_repeated else (value,):
                _drop_states(inner)


_INTEGERS = {
    FieldDescriptor.TYPE_INT32: 2**31,
    FieldDescriptor.TYPE_INT64: 2**53,
}
"""Integer types and the first number that is too large; larger ones than 2^53 - 1 are not exact in JSON."""


def from_json(message_type: type[M], value: Any, source: str) -> list[M]:
    """Convert a list of JSON objects to messages.

    Args:
        message_type: the message type.
        value: the parsed list.
        source: the origin of the list, for error messages.

    Raises:
        InvalidArgumentError: the list is not valid; the violations name every place.
    """
    problems: list[FieldViolation] = []
    if not isinstance(value, list):
        problems.append(FieldViolation(source, "must be a list"))
    items = [
        _parse_members(cast("Descriptor", message_type.DESCRIPTOR), item, f"{source}[{index}]", problems)
        for index, item in enumerate(value if isinstance(value, list) else ())
    ]
    _raise_problems(problems, source)
    return [message_type(**members) for members in items]


def message_from_json(message_type: type[M], value: Any, source: str) -> M:
    """Convert one JSON object to a message; the inverse of `to_json`.

    Args:
        message_type: the message type.
        value: the parsed object.
        source: the origin of the object, for error messages; fields are named without it.

    Raises:
        InvalidArgumentError: the object is not valid; the violations name every place.
    """
    problems: list[FieldViolation] = []
    members = _parse_members(cast("Descriptor", message_type.DESCRIPTOR), value, "", problems)
    _raise_problems(problems, source)
    return message_type(**members)


def _raise_problems(problems: list[FieldViolation], source: str) -> None:
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise InvalidArgumentError(
            f"{source} is not valid: {count}",
            code="FILE_INVALID",
            violations=problems,
        )


def _parse_members(
    message_type: Descriptor,
    value: Any,
    place: str,
    problems: list[FieldViolation],
) -> dict[str, Any]:
    """Return the arguments of a message's constructor."""
    if not isinstance(value, dict):
        problems.append(FieldViolation(place, "must be an object"))
        return {}
    fields = message_type.fields_by_name
    members: dict[str, Any] = {}
    chosen: dict[str, str] = {}
    for name, given in value.items():
        inner = f"{place}.{name}" if place else name
        if name not in fields:
            problems.append(FieldViolation(inner, f"is not a known key; use one of {', '.join(fields)}"))
            continue
        field = fields[name]
        choice = field.containing_oneof
        # A field with explicit presence has a oneof of its own, which has no other member.
        if choice is not None and chosen.setdefault(choice.name, name) != name:
            problems.append(FieldViolation(inner, f"cannot be set together with {chosen[choice.name]}"))
        elif not field.is_repeated:
            members[name] = _parse_value(field, given, inner, problems)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            members[name] = _parse_map(field, given, inner, problems)
        elif not isinstance(given, list):
            problems.append(FieldViolation(inner, "must be a list"))
        else:
            members[name] = [
                _parse_value(field, item, f"{inner}[{index}]", problems) for index, item in enumerate(given)
            ]
    return members


def _parse_map(field: FieldDescriptor, value: Any, place: str, problems: list[FieldViolation]) -> Any:
    if not isinstance(value, dict):
        problems.append(FieldViolation(place, "must be an object"))
        return {}
    inner = cast("Descriptor", field.message_type).fields_by_name["value"]
    return {key: _parse_value(inner, item, f"{place}.{key}", problems) for key, item in value.items()}


def _parse_value(field: FieldDescriptor, value: Any, place: str, problems: list[FieldViolation]) -> Any:
    kind = field.message_type
    if kind is not None and kind.full_name not in _SCALAR_MESSAGES:
        return _parse_members(kind, value, place, problems)
    try:
        return _parse_scalar(field, value)
    except ValueError as error:
        problems.append(FieldViolation(place, str(error)))
        return None


def _parse_scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return _SCALAR_MESSAGES[field.message_type.full_name](value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _parse_bytes(field, value)
    if field.enum_type is not None:
        words = {enum_word(field, one.number): one.number for one in field.enum_type.values[1:]}
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return words[value]
    if field.type == FieldDescriptor.TYPE_STRING:
        return _parse_text(value)
    return _parse_number(field, value)


def _parse_number(field: FieldDescriptor, value: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_BOOL:
        return _require(isinstance(value, bool), value, "true or false")
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return _require(is_number, value, "a number")
    limit = _INTEGERS[field.type]
    is_whole = is_number and value == int(value) and -limit < value < limit
    return int(_require(is_whole, value, f"a whole number, less than {limit}"))


def _require(condition: bool, value: Any, wanted: str) -> Any:  # noqa: FBT001 - a predicate of the value beside it
    if not condition:
        raise ValueError(f"must be {wanted}")
    return value


def _parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - one kind of error for every defect
    value.encode()  # raises ValueError for a surrogate
    return value


def _parse_bytes(field: FieldDescriptor, value: Any) -> bytes:
    if field.name in _BINARY_FIELDS:
        try:
            return base64.b64decode(_parse_text(value), validate=True)
        except binascii.Error:
            raise ValueError("must be bytes in base64") from None
    if field.full_name in _TEXT_FIELDS:
        return _parse_text(value).encode()
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _parse_timestamp(value: Any) -> Timestamp:
    time = Timestamp()
    try:
        time.FromJsonString(_parse_text(value))
    except ValueError:
        raise ValueError("must be a time such as 2030-01-31T12:00:00Z") from None
    return time


def _parse_duration(value: Any) -> Duration:
    time = Duration()
    try:
        time.FromJsonString(_parse_text(value))
    except ValueError:
        raise ValueError("must be a number of seconds such as 90s") from None
    return time


def _parse_param(value: Any) -> ParamValue:
    if isinstance(value, bool):
        return ParamValue(flag=value)
    if isinstance(value, int | float) and math.isfinite(value):
        return ParamValue(number=value)
    if isinstance(value, str):
        return ParamValue(text=_parse_text(value))
    raise ValueError("must be a number, a string, true or false")


_SCALAR_MESSAGES: dict[str, Callable[[Any], Message]] = {
    "google.protobuf.Timestamp": _parse_timestamp,
    "google.protobuf.Duration": _parse_duration,
    "peripety.api.common.v1.ParamValue": _parse_param,
}
"""Messages that are a single value in JSON."""
