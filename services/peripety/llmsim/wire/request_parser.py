"""Request body parser: reads member by member; errors name the place in the provider's own words.

`MessageBuilder` is for APIs with one message per part of a conversation.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from peripety.llmsim.types import SimMessage, SimRole
from peripety.llmsim.wire.base import parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.llmsim.types import ApiError, SimToolCall, SimToolResult


class MessageBuilder:
    """Builder of a conversation.

    Leading instructions are the system prompt. Tool results and the user text after them are one message, as
    are a model text and the tool calls after it.
    """

    def __init__(self) -> None:
        self._messages: list[SimMessage] = []
        self._system: list[str] = []

    @property
    def messages(self) -> tuple[SimMessage, ...]:
        """The messages without the system prompt."""
        return tuple(self._messages)

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(self._system)

    def add_instructions(self, text: str) -> None:
        """Add instructions of the developer or system role."""
        if self._messages:
            self._messages.append(SimMessage(SimRole.SYSTEM, text))
        else:
            self._system.append(text)

    def add_user_text(self, text: str) -> None:
        """Add a user text."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.results and not last.text:
            self._messages[-1] = replace(last, text=text)
        else:
            self._messages.append(SimMessage(SimRole.USER, text))

    def add_model_text(self, text: str) -> None:
        """Add a model text."""
        self._messages.append(SimMessage(SimRole.ASSISTANT, text))

    def add_call(self, call: SimToolCall) -> None:
        """Add a tool call, after the model text of the same message."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.role is SimRole.ASSISTANT:
            self._messages[-1] = replace(last, calls=(*last.calls, call))
        else:
            self._messages.append(SimMessage(SimRole.ASSISTANT, calls=(call,)))

    def add_result(self, result: SimToolResult) -> None:
        """Add a tool result."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.results and not last.text:
            self._messages[-1] = replace(last, results=(*last.results, result))
        else:
            self._messages.append(SimMessage(SimRole.USER, results=(result,)))


Path = tuple[str | int, ...]
D = TypeVar("D")

_REQUIRED: Any = object()


class JsonType(StrEnum):
    """JSON value types; integers are distinct from other numbers."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"
    NULL = "null"

    @classmethod
    def of_value(cls, value: Any) -> JsonType:
        """Return the type of a value."""
        return _KINDS[type(value)]


_KINDS = {
    str: JsonType.STRING,
    int: JsonType.INTEGER,
    float: JsonType.NUMBER,
    bool: JsonType.BOOLEAN,
    dict: JsonType.OBJECT,
    list: JsonType.ARRAY,
    type(None): JsonType.NULL,
}


class ErrorMessages(Protocol):
    """Error messages of a provider for invalid bodies."""

    def not_json(self, reason: str) -> ApiError:
        """Return the error for a body that is not JSON."""
        ...

    def missing_member(self, path: Path) -> ApiError:
        """Return the error for a missing required member."""
        ...

    def wrong_type(self, path: Path, wanted: Sequence[JsonType], value: Any) -> ApiError:
        """Return the error for a value of the wrong type."""
        ...

    def invalid_choice(self, path: Path, choices: Sequence[str], value: str) -> ApiError:
        """Return the error for a text that is not an allowed value."""
        ...

    def unexpected_member(self, path: Path) -> ApiError | None:
        """Return the error for an unknown member; None if unknown members are ignored."""
        ...


def dotted_path(path: Path) -> str:
    """Format a path as `messages.0.content`."""
    return ".".join(map(str, path))


def bracketed_path(path: Path) -> str:
    """Format a path as `messages[0].content`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


class Fields:
    """The members of a JSON object in a request.

    An optional member is read with a default; with the default None, null is equivalent.

    Attributes:
        value: the object.
        path: its path in the body.
        messages: the error messages; every reader of a member raises `ApiError` with them.
    """

    __slots__ = ("messages", "path", "value")

    def __init__(self, value: dict[str, Any], path: Path, wording: ErrorMessages) -> None:
        self.value = value
        self.path = path
        self.messages = wording

    @classmethod
    def parse(cls, body: bytes, wording: ErrorMessages) -> Fields:
        """Parse a body that must be a JSON object."""
        try:
            value = parse_json(body)
        except ValueError as error:
            raise wording.not_json(str(error)) from None
        return cls.from_value(value, (), wording)

    @classmethod
    def from_value(cls, value: Any, path: Path, wording: ErrorMessages) -> Fields:
        """Return the members of a value that must be an object."""
        if not isinstance(value, dict):
            raise wording.wrong_type(path, (JsonType.OBJECT,), value)
        return cls(value, path, wording)

    def __contains__(self, name: str) -> bool:
        return name in self.value

    def path_of(self, name: str | int) -> Path:
        """Return the path of a member."""
        return (*self.path, name)

    def reject_others(self, *names: str) -> None:
        """Reject other members, if the provider does."""
        if not self.value.keys() <= set(names):
            first = next(name for name in self.value if name not in names)
            fault = self.messages.unexpected_member(self.path_of(first))
            if fault is not None:
                raise fault

    def get(self, name: str, *kinds: JsonType, default: Any = _REQUIRED) -> Any:
        """Return a member of one of these types; of any type if none is given."""
        value = self.value.get(name, _REQUIRED)
        if value is _REQUIRED or (value is None and default is None):
            if default is _REQUIRED:
                raise self.messages.missing_member(self.path_of(name))
            return default
        if kinds and JsonType.of_value(value) not in kinds:
            raise self.messages.wrong_type(self.path_of(name), kinds, value)
        return value

    @overload
    def text(self, name: str) -> str: ...
    @overload
    def text(self, name: str, default: D) -> str | D: ...
    def text(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return a string."""
        return self.get(name, JsonType.STRING, default=default)

    @overload
    def flag(self, name: str) -> bool: ...
    @overload
    def flag(self, name: str, default: D) -> bool | D: ...
    def flag(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return a boolean."""
        return self.get(name, JsonType.BOOLEAN, default=default)

    @overload
    def integer(self, name: str) -> int: ...
    @overload
    def integer(self, name: str, default: D) -> int | D: ...
    def integer(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return an integer."""
        return self.get(name, JsonType.INTEGER, default=default)

    @overload
    def number(self, name: str) -> float: ...
    @overload
    def number(self, name: str, default: D) -> float | D: ...
    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return a number, integer or not."""
        if isinstance(value := self.value.get(name), int | float) and not isinstance(value, bool):
            return value
        return self.get(name, JsonType.NUMBER, default=default)

    @overload
    def choice(self, name: str, choices: Sequence[str]) -> str: ...
    @overload
    def choice(self, name: str, choices: Sequence[str], default: D) -> str | D: ...
    def choice(self, name: str, choices: Sequence[str], default: Any = _REQUIRED) -> Any:
        """Return a string that is one of the choices."""
        value = self.get(name, JsonType.STRING, default=default)
        if value is not default and value not in choices:
            raise self.messages.invalid_choice(self.path_of(name), choices, value)
        return value

    @overload
    def object(self, name: str) -> Fields: ...
    @overload
    def object(self, name: str, default: D) -> Fields | D: ...
    def object(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return an object."""
        value = self.get(name, JsonType.OBJECT, default=default)
        return value if value is default else Fields(value, self.path_of(name), self.messages)

    def objects(self, name: str, default: Any = _REQUIRED) -> list[Fields]:
        """Return the items of an array of objects; empty if the member is missing and has a default."""
        items = self.get(name, JsonType.ARRAY, default=default) or ()
        return [
            Fields.from_value(item, (*self.path, name, at), self.messages) for at, item in enumerate(items)
        ]

    def texts(self, name: str, default: Any = _REQUIRED) -> list[str]:
        """Return the items of an array of strings; empty if the member is missing and has a default."""
        items = self.get(name, JsonType.ARRAY, default=default) or []
        for at, item in enumerate(items):
            if not isinstance(item, str):
                raise self.messages.wrong_type((*self.path, name, at), (JsonType.STRING,), item)
        return list(items)
