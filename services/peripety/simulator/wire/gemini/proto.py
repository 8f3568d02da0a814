"""proto3 JSON parser for Gemini bodies, with the leniency and the errors of the API.

Names may be in camelCase or in snake_case, a repeated field may be a single value, null means unset, numbers
may be strings, and enumerations are case-insensitive. All errors are reported together.
"""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.wire.gemini.fields import ENUMERATIONS, MESSAGES, ONE_OF
from peripety.simulator.wire.json_text import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BadFieldsError", "read"]

_PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta."
_DURATION = re.compile(r"-?\d{1,12}(\.\d{1,9})?s")


class BadFieldsError(ApiError):
    """A body does not match its message type.

    Attributes:
        violations: for each error the path of its message, and the description.
    """

    def __init__(self, *violations: tuple[str, str]) -> None:
        super().__init__(
            ErrorKind.INVALID_REQUEST,
            "\n".join(description for _, description in violations),
            param=violations[0][0] or None,
        )
        self.violations = violations


def read(message: str, body: bytes) -> dict[str, Any]:
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
        value = parse(body)
    except ValueError as error:
        raise BadFieldsError(("", f"Invalid JSON payload received. {error}")) from None
    if not isinstance(value, dict):
        raise BadFieldsError(
            ("", 'Invalid JSON payload received. Unknown name "": Root element must be a message.')
        )
    reader = _Reader()
    fields = reader.message(message, value, "")
    if reader.violations:
        raise BadFieldsError(*reader.violations)
    return fields


class _InvalidError(Exception):
    """A value is not valid for its type; the text is the error message."""


class _Reader:
    def __init__(self) -> None:
        self.violations: list[tuple[str, str]] = []

    def message(self, name: str, value: Mapping[str, Any], path: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        known = _spellings(name)
        for key, item in value.items():
            field = known.get(key)
            if field is None:
                self._refuse(key, path, "Cannot find field.")
            elif item is not None and not self._already_set(name, key, field, fields, path):
                fields[field] = self._field(key, MESSAGES[name][field], item, path, field)
        return fields

    def _already_set(self, name: str, key: str, field: str, fields: Mapping[str, Any], path: str) -> bool:
        for group, members in ONE_OF.get(name, {}).items():
            if field in members and any(member in fields for member in members):
                what = f"Proto oneof field '{group}' is already set. Cannot set '{key}'"
                self._refuse(key, path, what)
                return True
        return False

    def _field(self, key: str, type_name: str, value: Any, path: str, field: str) -> Any:
        inner = f"{path}.{field}" if path else field
        if type_name.endswith("[]"):
            items = value if isinstance(value, list) else [value]
            return [self._one(type_name[:-2], item, f"{inner}[{at}]") for at, item in enumerate(items)]
        if type_name.endswith("{}"):
            if not isinstance(value, dict):
                return self._invalid(inner, f"(Map), {_shown(value)}")
            return {
                name: self._one(type_name[:-2], item, f"{inner}[{at}].value")
                for at, (name, item) in enumerate(value.items())
            }
        if isinstance(value, list) and type_name != "value":
            return self._refuse(key, path, "Proto field is not repeating, cannot start list.")
        return self._one(type_name, value, inner)

    def _one(self, type_name: str, value: Any, path: str) -> Any:
        if type_name in MESSAGES:
            if isinstance(value, dict):
                return self.message(type_name, value, path)
            return self._invalid(path, f"({_PACKAGE}{type_name}), {_shown(value)}")
        try:
            if type_name in ENUMERATIONS:
                return _enumeration(type_name, value)
            return _SCALARS[type_name](value)
        except _InvalidError as error:
            return self._invalid(path, str(error))

    def _refuse(self, key: str, path: str, reason: str) -> None:
        place = f" at '{path}'" if path else ""
        description = f'Invalid JSON payload received. Unknown name "{key}"{place}: {reason}'
        self.violations.append((path, description))

    def _invalid(self, path: str, reason: str) -> None:
        self.violations.append((path, f"Invalid value at '{path}' {reason}"))


@cache
def _spellings(message: str) -> Mapping[str, str]:
    """Return the accepted names of the fields of a message."""
    names: dict[str, str] = {}
    for field in MESSAGES[message]:
        camel = re.sub(r"(?<=[a-z])_([a-z])", lambda match: match[1].upper(), field)
        names |= {field: field, camel: field}
    return names


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _enumeration(name: str, value: Any) -> str:
    full_name, members = ENUMERATIONS[name]
    if not isinstance(value, str) or value.upper() not in members:
        raise _InvalidError(f"({_PACKAGE}{full_name}), {_shown(value)}")
    return value.upper()


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _InvalidError(f"(TYPE_STRING), {_shown(value)}")
    return value


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _InvalidError(f"(TYPE_BOOL), {_shown(value)}")
    return value


def _integer(bits: int) -> Callable[[Any], int]:
    def read_integer(value: Any) -> int:
        number = _as_number(value)
        if number is None or number != int(number) or not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise _InvalidError(f"(TYPE_INT{bits}), {_shown(value)}")
        return int(number)

    return read_integer


def _float(name: str) -> Callable[[Any], float]:
    def read_float(value: Any) -> float:
        number = _as_number(value)
        if number is None:
            raise _InvalidError(f"({name}), {_shown(value)}")
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
        raise _InvalidError(f"(TYPE_BYTES), Base64 decoding failed for {_shown(value)}") from None
    return base64.b64encode(decoded).decode()


def _duration(value: Any) -> float:
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        what = f"Field 'ttl', Illegal duration format; duration must end with 's', {_shown(value)}"
        raise _InvalidError(f"(type.googleapis.com/google.protobuf.Duration), {what}")
    return float(value[:-1])


def _timestamp(value: Any) -> float:
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.timestamp()
    except (TypeError, ValueError):
        pass
    raise _InvalidError(
        "(type.googleapis.com/google.protobuf.Timestamp), "
        f"Field 'expireTime', Invalid time format: {_shown(value)}"
    )


def _struct(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _InvalidError(f"(type.googleapis.com/google.protobuf.Struct), {_shown(value)}")
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
