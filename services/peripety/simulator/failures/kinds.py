"""The kinds of failures by the names that scenario files use, and the settings of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.simulator.model import RetryForm

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KINDS", "Kind", "Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a kind of failure.

    Attributes:
        type: what its value is; a float may be written as an integer.
        default: its value where none is given; None leaves it to the kind.
        minimum: the least number.
        maximum: the greatest number.
        choices: the only values there are; empty allows all.
    """

    type: type[str | int | float]
    default: str | float | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of failure.

    Attributes:
        settings: its settings, by name.
        spoils: whether it breaks an answer, and so needs one to break; the others take its place.
    """

    settings: Mapping[str, Setting] = field(default_factory=dict)
    spoils: bool = False


_MESSAGE = Setting(str)  # by default the provider's own words
_MOMENT = Setting(int, default=1, minimum=0)
_ERRORS = ("rate_limit", "overloaded", "unavailable", "server_error", "timeout", "invalid_request")
_REFUSED = {"message": _MESSAGE}
_RETRIED = {
    "message": _MESSAGE,
    "retry_after": Setting(float, minimum=0),
    "form": Setting(str, default=RetryForm.SECONDS.value, choices=tuple(RetryForm)),
}

KINDS: Mapping[str, Kind] = {
    # the provider answers with an error
    "auth_error": Kind({"message": Setting(str, default="Invalid API key")}),
    "permission_denied": Kind(_REFUSED),
    "not_found": Kind(_REFUSED),
    "invalid_request": Kind(_REFUSED),
    "conflict": Kind(_REFUSED),
    "too_large": Kind(_REFUSED),
    "rate_limit": Kind({**_RETRIED, "retry_after": Setting(float, default=60.0, minimum=0)}),
    "out_of_credits": Kind(_REFUSED),
    "overloaded": Kind(_RETRIED),
    "unavailable": Kind(_RETRIED),
    "server_error": Kind(
        {"message": _MESSAGE, "status": Setting(int, default=500, minimum=500, maximum=599)}
    ),
    "timeout": Kind(_REFUSED),
    # the network fails before there is an answer
    "network_unreachable": Kind(),
    "connection_timeout": Kind({"after_ms": Setting(int, default=5000, minimum=0)}),
    "connection_reset": Kind(),
    "hang": Kind(),
    # there is an answer, and it is none
    "malformed_json": Kind({"raw": Setting(str, default='{"type": "message", "content": [{"type": "te')}),
    "empty_body": Kind(),
    "html_error": Kind({"status": Setting(int, default=502, minimum=200, maximum=599)}),
    "error_in_200": Kind({"error": Setting(str, default="overloaded", choices=_ERRORS), "message": _MESSAGE}),
    "partial_response": Kind({"partial_text": Setting(str, default="This answer ends in the middle of a")}),
    # the stream breaks
    "stream_cut": Kind({"after_chunks": _MOMENT}, spoils=True),
    "reset_at_token": Kind({"token": _MOMENT}, spoils=True),
    "stall": Kind({"after_chunks": _MOMENT, "for_ms": Setting(int, default=30_000, minimum=0)}, spoils=True),
    "slow_drip": Kind({"ms_per_chunk": Setting(int, default=1000, minimum=0)}, spoils=True),
    "duplicate_chunk": Kind({"chunk": _MOMENT}, spoils=True),
    "missing_chunk": Kind({"chunk": _MOMENT}, spoils=True),
    "reordered_chunks": Kind({"chunk": _MOMENT}, spoils=True),
    "split_utf8": Kind(spoils=True),
    "error_in_stream": Kind(
        {
            "after_chunks": _MOMENT,
            "error": Setting(str, default="overloaded", choices=_ERRORS),
            "message": _MESSAGE,
        },
        spoils=True,
    ),
    "missing_end": Kind(spoils=True),
    # the content is wrong
    "truncated_arguments": Kind(spoils=True),
    "invalid_arguments": Kind(spoils=True),
    "late_usage": Kind(spoils=True),
    "missing_usage": Kind(spoils=True),
    "refusal": Kind({"message": Setting(str, default="I can't help with that.")}),
    "content_filter": Kind(spoils=True),
    "length": Kind({"tokens": Setting(int, default=1, minimum=0)}, spoils=True),
}
