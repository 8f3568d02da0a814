"""How Ollama says what is wrong with a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.wire.reading import Kind, bracketed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.wire.reading import Path

__all__ = ["Wording", "invalid"]

_GOT = {Kind.INTEGER: "number", Kind.BOOLEAN: "bool"}
_WANTED = {
    Kind.INTEGER: "int",
    Kind.NUMBER: "float64",
    Kind.BOOLEAN: "bool",
    Kind.OBJECT: "map[string]interface {}",
    Kind.ARRAY: "[]interface {}",
}


class Wording:
    """The words of an Ollama server, which are mostly those of its JSON reader."""

    def not_json(self, reason: str) -> ApiError:
        """The body cannot be read as JSON."""
        if reason.startswith("EOF while parsing a value at line 1 column 0"):
            return invalid("missing request body")
        return invalid(f"invalid JSON: {reason}")

    def missing(self, path: Path) -> ApiError:
        """A required member is not there."""
        return invalid(f"{path[-1]} is required", path)

    def mistyped(self, path: Path, wanted: Sequence[Kind], value: Any) -> ApiError:
        """A value is of another type than those that are wanted."""
        kind = Kind.of(value)
        names = ".".join(["Request", *(str(step) for step in path if isinstance(step, str))])
        return invalid(
            f"json: cannot unmarshal {_GOT.get(kind, kind)} into Go struct field {names} of type "
            f"{_WANTED.get(wanted[0], wanted[0])}",
            path,
        )

    def not_among(self, path: Path, choices: Sequence[str], value: str) -> ApiError:
        """A text is none of those that are allowed."""
        return invalid(f"invalid {path[-1]}: {value}, must be one of [{' '.join(choices)}]", path)

    def unexpected(self, path: Path) -> None:  # noqa: ARG002
        """Unknown members are ignored."""
        return


def invalid(message: str, path: Path = ()) -> ApiError:
    """A request that is not valid."""
    return ApiError(ErrorKind.INVALID_REQUEST, message, param=bracketed(path) or None)
