"""Error messages of Anthropic."""

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
    """Error messages in the words of `api.anthropic.com`."""

    def not_json(self, reason: str) -> ApiError:
        """Return the error for a body that is not JSON."""
        return invalid(f"The request body is not valid JSON: {reason}")

    def missing(self, path: Path) -> ApiError:
        """Return the error for a missing required member."""
        return invalid("Field required", path)

    def mistyped(self, path: Path, wanted: Sequence[Kind], value: Any) -> ApiError:  # noqa: ARG002
        """Return the error for a value of the wrong type."""
        return invalid(
            f"Input should be a valid {' or '.join(_NAMES.get(kind, kind) for kind in wanted)}", path
        )

    def not_among(self, path: Path, choices: Sequence[str], value: str) -> ApiError:  # noqa: ARG002
        """Return the error for a text that is not an allowed value."""
        *most, last = (f"'{choice}'" for choice in choices)
        return invalid(f"Input should be {', '.join(most)}{' or ' if most else ''}{last}", path)

    def unexpected(self, path: Path) -> ApiError:
        """Return the error for an unknown member."""
        return invalid("Extra inputs are not permitted", path)


def invalid(message: str, path: Path = ()) -> ApiError:
    """Return an invalid request error; the path, if given, is the prefix of the message."""
    if not path:
        return ApiError(ErrorKind.INVALID_REQUEST, message)
    return ApiError(ErrorKind.INVALID_REQUEST, f"{dotted(path)}: {message}", param=bracketed(path))
