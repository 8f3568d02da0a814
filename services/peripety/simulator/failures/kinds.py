"""Catalog of fault kinds by their names in script files: settings, place of action and description."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import RetryForm

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KINDS", "Kind", "Place", "Setting"]


class Place(StrEnum):
    """The part of a response that a fault affects."""

    ERROR = "error"  # the request is rejected with a provider error
    CONNECTION = "connection"  # no part of an answer arrives
    BODY = "body"  # the received data is not an answer
    STREAM = "stream"  # the answer is broken, late or truncated on its way
    ANSWER = "answer"  # the answer arrives intact, with other content


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a fault kind.

    Attributes:
        type: `str`, `int`, or `float`, which accepts integers too.
        about: its meaning in one line, with its unit.
        default: the default value; None means not set.
        minimum: the minimum.
        maximum: the maximum.
        choices: the valid values, if restricted.
    """

    type: type[str | int | float]
    about: str
    default: str | float | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault.

    Attributes:
        place: the part of the response that it affects.
        about: its effect in one line.
        settings: its settings, by name.
        spoils: True if it needs a response to change; other faults need none.
        calls: True if that response must have tool calls.
    """

    place: Place
    about: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    spoils: bool = False
    calls: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """The default settings."""
        return {name: setting.default for name, setting in self.settings.items()}


def _message(text: str) -> Setting:
    return Setting(str, "the error message", default=text)


def _status(default: int) -> Setting:
    return Setting(int, "the HTTP status", default=default, minimum=500, maximum=599)


def _after(what: str) -> Setting:
    return Setting(int, f"number of chunks that arrive before {what}", default=1, minimum=0)


_LATER = Setting(float, "seconds after which to retry; no hint unless set", minimum=0)
_FORM = Setting(
    str,
    "format of the retry header",
    default=RetryForm.SECONDS.value,
    choices=tuple(form.value for form in RetryForm),
)
_CHUNK = Setting(int, "index of the content chunk, from 0", default=0, minimum=0)
_ERROR = Setting(
    str,
    "the error, one of the error types",
    default="overloaded",
    choices=("rate_limit", "overloaded", "unavailable", "server_error", "timeout", "invalid_request"),
)
_WORDS = Setting(str, "the error message; the default of the error unless set")

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        # refused in the provider's own words
        "auth_error": Kind(Place.ERROR, "the API key is not valid", {"message": _message("Invalid API key")}),
        "permission_denied": Kind(
            Place.ERROR,
            "the API key lacks the permission",
            {"message": _message("Your API key does not have permission to use this model")},
        ),
        "not_found": Kind(
            Place.ERROR, "the model does not exist", {"message": _message("The model does not exist")}
        ),
        "invalid_request": Kind(
            Place.ERROR,
            "the request is not valid",
            {
                "message": _message("The request is not valid"),
                "param": Setting(str, "the invalid field; none unless set"),
            },
        ),
        "conflict": Kind(
            Place.ERROR,
            "the request conflicts with another",
            {"message": _message("The request conflicts with another")},
        ),
        "too_large": Kind(
            Place.ERROR, "the request is too large", {"message": _message("Request exceeds the maximum size")}
        ),
        "rate_limit": Kind(
            Place.ERROR,
            "the rate limit is exceeded",
            {
                "retry_after": Setting(float, "seconds after which to retry", default=60, minimum=0),
                "form": _FORM,
                "message": _message("Rate limit exceeded"),
            },
        ),
        "out_of_credits": Kind(
            Place.ERROR,
            "the account has no credit left",
            {"message": _message("Your credit balance is too low")},
        ),
        "overloaded": Kind(
            Place.ERROR,
            "the provider is overloaded",
            {"retry_after": _LATER, "form": _FORM, "message": _message("Overloaded")},
        ),
        "unavailable": Kind(
            Place.ERROR,
            "the service is temporarily unavailable",
            {
                "retry_after": _LATER,
                "form": _FORM,
                "message": _message("The service is temporarily unavailable"),
            },
        ),
        "server_error": Kind(
            Place.ERROR,
            "an internal error of the provider",
            {"status": _status(500), "message": _message("Internal server error")},
        ),
        "timeout": Kind(
            Place.ERROR,
            "the provider times out",
            {"message": _message("The request timed out")},
        ),
        # no part of an answer arrives
        "network_unreachable": Kind(Place.CONNECTION, "the connection is reset before any data arrives"),
        "connection_timeout": Kind(
            Place.CONNECTION,
            "no data arrives, then the connection is closed",
            {
                "after_ms": Setting(
                    int, "milliseconds until the connection is closed", default=5000, minimum=0
                )
            },
        ),
        "hang": Kind(Place.CONNECTION, "no data arrives and the connection stays open"),
        "connection_reset": Kind(Place.CONNECTION, "the headers arrive, then the connection is reset"),
        # the received data is not an answer
        "malformed_json": Kind(
            Place.BODY,
            "text instead of JSON, as the whole document or as the first content of a stream",
            {"raw": Setting(str, "the text", default='{"type": "message", "content": [')},
        ),
        "empty_body": Kind(Place.BODY, "status 200 with an empty body"),
        "html_error": Kind(Place.BODY, "the HTML page of a proxy instead of JSON", {"status": _status(502)}),
        "error_in_200": Kind(
            Place.BODY,
            "an error with status 200, as the whole document or as the first chunk of a stream",
            {"error": _ERROR, "message": _WORDS},
        ),
        # broken, late or cut short on its way
        "partial_response": Kind(
            Place.STREAM,
            "the beginning of a text arrives, then the connection is closed",
            {"partial_text": Setting(str, "the text that arrives", default="This is the beginning of a")},
        ),
        "stream_cut": Kind(
            Place.STREAM,
            "the connection is closed before the end",
            {"after_chunks": _after("that")},
            spoils=True,
        ),
        "reset_at_token": Kind(
            Place.STREAM,
            "the connection is reset",
            {"token": Setting(int, "number of tokens that arrive before that", default=1, minimum=0)},
            spoils=True,
        ),
        "stall": Kind(
            Place.STREAM,
            "the stream pauses, then the rest arrives",
            {
                "after_chunks": _after("that"),
                "for_ms": Setting(int, "length of the pause, in milliseconds", default=30_000, minimum=0),
            },
            spoils=True,
        ),
        "slow_drip": Kind(
            Place.STREAM,
            "each chunk arrives late",
            {
                "ms_per_chunk": Setting(
                    int, "milliseconds from one chunk to the next", default=1000, minimum=0
                )
            },
            spoils=True,
        ),
        "duplicate_chunk": Kind(Place.STREAM, "a chunk arrives twice", {"chunk": _CHUNK}, spoils=True),
        "missing_chunk": Kind(Place.STREAM, "a chunk does not arrive", {"chunk": _CHUNK}, spoils=True),
        "reordered_chunks": Kind(
            Place.STREAM, "a chunk arrives after the one that follows it", {"chunk": _CHUNK}, spoils=True
        ),
        "split_utf8": Kind(Place.STREAM, "multi-byte characters are split between two chunks", spoils=True),
        "error_in_stream": Kind(
            Place.STREAM,
            "an error ends a stream after it has begun; a response that is not streamed becomes the error",
            {"after_chunks": _after("it"), "error": _ERROR, "message": _WORDS},
            spoils=True,
        ),
        "missing_end": Kind(Place.STREAM, "the end marker of the stream does not arrive", spoils=True),
        "late_usage": Kind(
            Place.STREAM,
            "the usage, and all that follows it, arrives late",
            {"delay_ms": Setting(int, "delay in milliseconds", default=1000, minimum=0)},
            spoils=True,
        ),
        "missing_usage": Kind(Place.STREAM, "no usage arrives", spoils=True),
        # another answer
        "truncated_arguments": Kind(
            Place.ANSWER,
            "the arguments of the last tool call are truncated by the token limit",
            spoils=True,
            calls=True,
        ),
        "invalid_arguments": Kind(
            Place.ANSWER,
            "the arguments of tool calls are valid JSON but violate the schema of the tool",
            spoils=True,
            calls=True,
        ),
        "refusal": Kind(
            Place.ANSWER,
            "the model declines",
            {"message": Setting(str, "text of the refusal", default="I can't help with that.")},
        ),
        "content_filter": Kind(Place.ANSWER, "a content filter ends the answer half way"),
        "length": Kind(
            Place.ANSWER,
            "the answer ends at the token limit",
            {"tokens": Setting(int, "the token limit", default=1, minimum=0)},
            spoils=True,
        ),
    }
)
