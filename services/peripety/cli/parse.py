"""Plain JSON values to protobuf messages; the inverse of `peripety.cli.jsonify`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor

from peripety.cli.jsonify import enum_word
from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["messages_in"]

M = TypeVar("M", bound="Message")

_SCALARS: dict[int, tuple[type, str]] = {
    FieldDescriptor.TYPE_STRING: (str, "a string"),
    FieldDescriptor.TYPE_BOOL: (bool, "true or false"),
}


def messages_in(kind: type[M], value: Any, source: str) -> list[M]:
    """Convert a list of JSON objects to messages.

    Args:
        kind: the message type. Its fields are strings, booleans, enums, JSON and messages of these.
        value: the parsed list.
        source: the origin of the list, for error messages.

    Raises:
        InvalidArgumentError: the list is not valid; the violations name every place.
    """
    problems: list[FieldViolation] = []
    messages = []
    if not isinstance(value, list):
        problems.append(FieldViolation(source, "must be a list"))
    for index, item in enumerate(value if isinstance(value, list) else ()):
        message = kind()
        _fill(message, item, f"{source}[{index}]", problems)
        messages.append(message)
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise InvalidArgumentError(
            f"{source} is not valid: {count}", code="FILE_INVALID", violations=problems
        )
    return messages


def _fill(message: Message, value: Any, place: str, problems: list[FieldViolation]) -> None:
    if not isinstance(value, dict):
        problems.append(FieldViolation(place, "must be an object"))
        return
    fields = message.DESCRIPTOR.fields_by_name
    for name, given in value.items():
        field = fields.get(name)
        inner = f"{place}.{name}"
        if not isinstance(field, FieldDescriptor):
            problems.append(FieldViolation(inner, f"is not a known key; use one of {', '.join(fields)}"))
        elif not field.is_repeated:
            _set(message, field, given, inner, problems)
        elif not isinstance(given, list):
            problems.append(FieldViolation(inner, "must be a list"))
        else:
            for index, item in enumerate(given):
                _add(message, field, item, f"{inner}[{index}]", problems)


def _set(
    message: Message, field: FieldDescriptor, value: Any, place: str, problems: list[FieldViolation]
) -> None:
    if field.message_type is not None:
        getattr(message, field.name).SetInParent()
        _fill(getattr(message, field.name), value, place, problems)
        return
    try:
        setattr(message, field.name, _scalar(field, value))
    except ValueError as error:
        problems.append(FieldViolation(place, str(error)))


def _add(
    message: Message, field: FieldDescriptor, value: Any, place: str, problems: list[FieldViolation]
) -> None:
    items = getattr(message, field.name)
    if field.message_type is not None:
        _fill(items.add(), value, place, problems)
        return
    try:
        items.append(_scalar(field, value))
    except ValueError as error:
        problems.append(FieldViolation(place, str(error)))


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    if field.enum_type is not None:
        words = {enum_word(field, one.number): one.number for one in field.enum_type.values[1:]}
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return words[value]
    kind, told = _SCALARS[field.type]
    if isinstance(value, kind):
        return value
    raise ValueError(f"must be {told}")
