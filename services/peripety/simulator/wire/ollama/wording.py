"""Error messages of Ollama."""

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
    """Error messages of an Ollama server, mostly those of its JSON decoder."""

    def not_json(self, reason: str) -> ApiError:
        """Return the error for a body that is not JSON."""
        if reason.startswith("EOF while parsing a value at line 1 column 0"):
            return invalid("missing request body")
        return invalid(f"invalid JSON: {reason}")

    def missing(self, path: Path) -> ApiError:
        """Return the error for a missing required member."""
        return invalid(f"{path[-1]} is required", path)

    def mistyped(self, path: Path, wanted: Sequence[Kind], value: Any) -> ApiError:
        """Return the error for a value of the wrong type."""
        kind = Kind.of(value)
        names = ".".join(["Request", *(str(step) for step in path if isinstance(step, str))])
        return invalid(
            f"json: cannot unmarshal {_GOT.get(kind, kind)} into Go struct field {names} of type "
            f"{_WANTED.get(wanted[0], wanted[0])}",
            path,
        )

    def not_among(self, path: Path, choices: Sequence[str], value: str) -> ApiError:
        """Return the error for a text that is not an allowed value."""
        return invalid(f"invalid {path[-1]}: {value}, must be one of [{' '.join(choices)}]", path)

    def unexpected(self, path: Path) -> None:  # noqa: ARG002
        """Ignore unknown members."""
        return


def invalid(message: str, path: Path = ()) -> ApiError:
    """Return an invalid request error."""
    return ApiError(ErrorKind.INVALID_REQUEST, message, param=bracketed(path) or None)
