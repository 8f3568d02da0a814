"""How Anthropic says what is wrong with a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.wire.reading import Kind, bracketed, dotted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.wire.reading import Path

__all__ = ["Wording", "invalid"]

_NAMES = {Kind.ARRAY: "list", Kind.OBJECT: "dictionary"}


class Wording:
    """The words of `api.anthropic.com`."""

    def not_json(self, reason: str) -> ApiError:
        """The body cannot be read as JSON."""
        return invalid(f"The request body is not valid JSON: {reason}")

    def missing(self, path: Path) -> ApiError:
        """A required member is not there."""
        return invalid("Field required", path)

    def mistyped(self, path: Path, wanted: Sequence[Kind], value: Any) -> ApiError:  # noqa: ARG002
        """A value is of another type than those that are wanted."""
        return invalid(
            f"Input should be a valid {' or '.join(_NAMES.get(kind, kind) for kind in wanted)}", path
        )

    def not_among(self, path: Path, choices: Sequence[str], value: str) -> ApiError:  # noqa: ARG002
        """A text is none of those that are allowed."""
        *most, last = (f"'{choice}'" for choice in choices)
        return invalid(f"Input should be {', '.join(most)}{' or ' if most else ''}{last}", path)

    def unexpected(self, path: Path) -> ApiError:
        """A member that this object does not have."""
        return invalid("Extra inputs are not permitted", path)


def invalid(message: str, path: Path = ()) -> ApiError:
    """A request that is not valid; the place, if one is named, begins the message."""
    if not path:
        return ApiError(ErrorKind.INVALID_REQUEST, message)
    return ApiError(ErrorKind.INVALID_REQUEST, f"{dotted(path)}: {message}", param=bracketed(path))
