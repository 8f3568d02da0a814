"""Protobuf messages to and from plain JSON: embedded JSON is inlined, enums are words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message


M = TypeVar("M", bound="Message")

_TEXT_FIELDS = {"peripety.api.testgen.v1.CommandTest.stdin"}
"""Bytes fields that hold text instead of JSON."""


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
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return to_json(value)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return enum_word(field, value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return value.decode(errors="replace") if field.full_name in _TEXT_FIELDS else json.loads(value)
    return value


def _drop_states(message: Message) -> None:
    if isinstance(message, pb.ChatMessage):
        parts = [part for part in message.parts if not part.HasField("provider_state")]
        del message.parts[:]
        message.parts.extend(parts)
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for inner in value if field.is_repeated else (value,):
                _drop_states(inner)


_SCALARS: dict[int, tuple[type, str]] = {
    FieldDescriptor.TYPE_STRING: (str, "a string"),
    FieldDescriptor.TYPE_BOOL: (bool, "true or false"),
}


def from_json(message_type: type[M], value: Any, source: str) -> list[M]:
    """Convert a list of JSON objects to messages.

    Args:
        message_type: the message type. Its fields are strings, booleans, enums, JSON and messages of these.
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
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise InvalidArgumentError(
            f"{source} is not valid: {count}",
            code="FILE_INVALID",
            violations=problems,
        )
    return [message_type(**members) for members in items]


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
    for name, given in value.items():
        inner = f"{place}.{name}"
        if name not in fields:
            problems.append(FieldViolation(inner, f"is not a known key; use one of {', '.join(fields)}"))
        elif not fields[name].is_repeated:
            members[name] = _parse_value(fields[name], given, inner, problems)
        elif not isinstance(given, list):
            problems.append(FieldViolation(inner, "must be a list"))
        else:
            members[name] = [
                _parse_value(fields[name], item, f"{inner}[{index}]", problems)
                for index, item in enumerate(given)
            ]
    return members


def _parse_value(field: FieldDescriptor, value: Any, place: str, problems: list[FieldViolation]) -> Any:
    if field.message_type is not None:
        return _parse_members(field.message_type, value, place, problems)
    try:
        return _parse_scalar(field, value)
    except ValueError as error:
        problems.append(FieldViolation(place, str(error)))
        return None


def _parse_scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    if field.enum_type is not None:
        words = {enum_word(field, one.number): one.number for one in field.enum_type.values[1:]}
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return words[value]
    kind, told = _SCALARS[field.type]
    if isinstance(value, str):
        value.encode()  # raises ValueError for a surrogate
    if isinstance(value, kind):
        return value
    raise ValueError(f"must be {told}")
