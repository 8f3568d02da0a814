"""Protobuf messages to plain JSON values: embedded JSON is inlined, enums become words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.gateway.v1 import gateway_pb2 as pb

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["enum_word", "jsonify", "readable"]

M = TypeVar("M", bound="Message")

_TEXTS = {"peripety.api.testgen.v1.CommandTest.stdin"}
"""Bytes fields that hold text instead of JSON."""


def jsonify(message: Message) -> dict[str, Any]:
    """Return the set fields of a message by name. Most `bytes` fields hold JSON and become its value."""
    return {field.name: _field(field, value) for field, value in message.ListFields()}


def readable(message: M) -> M:
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


def _field(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {str(key): _value(inner, value[key]) for key in sorted(value)}
    if field.is_repeated:
        return [_value(field, item) for item in value]
    return _value(field, value)


def _value(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, (Timestamp, Duration)):
        return value.ToJsonString()
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return jsonify(value)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return enum_word(field, value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return value.decode(errors="replace") if field.full_name in _TEXTS else json.loads(value)
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
