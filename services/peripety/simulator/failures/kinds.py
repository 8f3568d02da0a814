"""The kinds of failures by the names that scenario files use, their settings, and what each does."""

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
    """Where a failure acts."""

    ERROR = "error"  # the request is refused, in the provider's own words
    CONNECTION = "connection"  # nothing of an answer arrives
    BODY = "body"  # what arrives is no answer
    STREAM = "stream"  # the answer is broken, late or cut short on its way
    ANSWER = "answer"  # the answer arrives well, and says something else


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a kind of failure.

    Attributes:
        type: `str`, `int`, or `float`, which takes whole numbers too.
        about: what it means, in one line, with its unit.
        default: its value where none is given; None is a value of its own: not set.
        minimum: the lowest number.
        maximum: the highest number.
        choices: the only values, if not every value of the type.
    """

    type: type[str | int | float]
    about: str
    default: str | float | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of failure.

    Attributes:
        place: where it acts.
        about: what it does, in one line.
        settings: its settings, by name.
        spoils: whether it needs a response that it spoils; the others bring all they need.
        calls: whether that response needs tool calls.
    """

    place: Place
    about: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    spoils: bool = False
    calls: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings where none are given."""
        return {name: setting.default for name, setting in self.settings.items()}


def _message(text: str) -> Setting:
    return Setting(str, "what the caller is told", default=text)


def _status(default: int) -> Setting:
    return Setting(int, "the HTTP status", default=default, minimum=500, maximum=599)


def _after(what: str) -> Setting:
    return Setting(int, f"how many chunks arrive before {what}", default=1, minimum=0)


_LATER = Setting(float, "seconds after which to come back; not said unless set", minimum=0)
_FORM = Setting(
    str,
    "how a header says when to come back",
    default=RetryForm.SECONDS.value,
    choices=tuple(form.value for form in RetryForm),
)
_CHUNK = Setting(int, "which chunk with content, counted from 0", default=0, minimum=0)
_ERROR = Setting(
    str,
    "which of the failures that are errors",
    default="overloaded",
    choices=("rate_limit", "overloaded", "unavailable", "server_error", "timeout", "invalid_request"),
)
_WORDS = Setting(str, "what the caller is told; the error's own words unless set")

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        # refused in the provider's own words
        "auth_error": Kind(Place.ERROR, "the key is not accepted", {"message": _message("Invalid API key")}),
        "permission_denied": Kind(
            Place.ERROR,
            "the key may not do this",
            {"message": _message("Your API key does not have permission to use this model")},
        ),
        "not_found": Kind(
            Place.ERROR, "the model is not there", {"message": _message("The model does not exist")}
        ),
        "invalid_request": Kind(
            Place.ERROR,
            "the request is not valid",
            {
                "message": _message("The request is not valid"),
                "param": Setting(str, "the field at fault; none unless set"),
            },
        ),
        "conflict": Kind(
            Place.ERROR,
            "something else changed the same",
            {"message": _message("The request conflicts with another")},
        ),
        "too_large": Kind(
            Place.ERROR, "the request is too long", {"message": _message("Request exceeds the maximum size")}
        ),
        "rate_limit": Kind(
            Place.ERROR,
            "too many requests or tokens in too short a time",
            {
                "retry_after": Setting(float, "seconds after which to come back", default=60, minimum=0),
                "form": _FORM,
                "message": _message("Rate limit exceeded"),
            },
        ),
        "out_of_credits": Kind(
            Place.ERROR,
            "nothing is left to pay with, until somebody pays",
            {"message": _message("Your credit balance is too low")},
        ),
        "overloaded": Kind(
            Place.ERROR,
            "the provider has more to do than it can",
            {"retry_after": _LATER, "form": _FORM, "message": _message("Overloaded")},
        ),
        "unavailable": Kind(
            Place.ERROR,
            "the service is down for a moment",
            {
                "retry_after": _LATER,
                "form": _FORM,
                "message": _message("The service is temporarily unavailable"),
            },
        ),
        "server_error": Kind(
            Place.ERROR,
            "the provider fails",
            {"status": _status(500), "message": _message("Internal server error")},
        ),
        "timeout": Kind(
            Place.ERROR,
            "the provider itself gives up waiting",
            {"message": _message("The request timed out")},
        ),
        # nothing of an answer arrives
        "network_unreachable": Kind(Place.CONNECTION, "the connection is reset before anything arrives"),
        "connection_timeout": Kind(
            Place.CONNECTION,
            "nothing arrives, and then the connection is closed",
            {"after_ms": Setting(int, "milliseconds until it is closed", default=5000, minimum=0)},
        ),
        "hang": Kind(Place.CONNECTION, "nothing arrives, for as long as the caller waits"),
        "connection_reset": Kind(Place.CONNECTION, "the headers arrive, and then the connection is reset"),
        # what arrives is no answer
        "malformed_json": Kind(
            Place.BODY,
            "text arrives where JSON belongs: as the whole document, or as the first content of a stream",
            {"raw": Setting(str, "the text", default='{"type": "message", "content": [')},
        ),
        "empty_body": Kind(Place.BODY, "status 200, and nothing else"),
        "html_error": Kind(
            Place.BODY, "the page of a proxy arrives instead of JSON", {"status": _status(502)}
        ),
        "error_in_200": Kind(
            Place.BODY,
            "an error arrives with status 200: as the whole document, or as the first chunk of a stream",
            {"error": _ERROR, "message": _WORDS},
        ),
        # broken, late or cut short on its way
        "partial_response": Kind(
            Place.STREAM,
            "the beginning of a text arrives, and then the connection is closed",
            {"partial_text": Setting(str, "what arrives of the text", default="This is the beginning of a")},
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
            {"token": Setting(int, "how many tokens arrive before that", default=1, minimum=0)},
            spoils=True,
        ),
        "stall": Kind(
            Place.STREAM,
            "nothing arrives for a while, and then the rest",
            {
                "after_chunks": _after("that"),
                "for_ms": Setting(int, "how long the while is, in milliseconds", default=30_000, minimum=0),
            },
            spoils=True,
        ),
        "slow_drip": Kind(
            Place.STREAM,
            "each chunk is a long time coming",
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
        "split_utf8": Kind(Place.STREAM, "characters of several bytes arrive in two pieces", spoils=True),
        "error_in_stream": Kind(
            Place.STREAM,
            "an error ends a stream that has begun well; what is not streamed is refused with it",
            {"after_chunks": _after("it"), "error": _ERROR, "message": _WORDS},
            spoils=True,
        ),
        "missing_end": Kind(Place.STREAM, "the mark that an answer is complete does not arrive", spoils=True),
        "late_usage": Kind(
            Place.STREAM,
            "the usage, and what follows it, arrives late",
            {"delay_ms": Setting(int, "how late, in milliseconds", default=1000, minimum=0)},
            spoils=True,
        ),
        "missing_usage": Kind(Place.STREAM, "no usage arrives", spoils=True),
        # another answer
        "truncated_arguments": Kind(
            Place.ANSWER,
            "the arguments of the last tool call are cut off in the middle, for length",
            spoils=True,
            calls=True,
        ),
        "invalid_arguments": Kind(
            Place.ANSWER,
            "the arguments of tool calls are valid JSON, and break the tool's schema",
            spoils=True,
            calls=True,
        ),
        "refusal": Kind(
            Place.ANSWER,
            "the model declines",
            {"message": Setting(str, "in which words", default="I can't help with that.")},
        ),
        "content_filter": Kind(Place.ANSWER, "a filter ends the answer half way"),
        "length": Kind(
            Place.ANSWER,
            "the answer ends where the tokens do",
            {"tokens": Setting(int, "how many tokens there are for it", default=1, minimum=0)},
            spoils=True,
        ),
    }
)
