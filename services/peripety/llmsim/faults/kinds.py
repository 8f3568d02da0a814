"""Catalog of fault kinds by their names in script files: settings, place of action and description."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from peripety.llmsim.types import RetryForm

if TYPE_CHECKING:
    from collections.abc import Mapping


class FaultStage(StrEnum):
    """The part of a response that a fault affects."""

    ERROR = "error"  # the request is rejected with a provider error
    CONNECTION = "connection"  # no part of an answer arrives
    BODY = "body"  # the received data is not an answer
    STREAM = "stream"  # the answer is broken, late or truncated on its way
    ANSWER = "answer"  # the answer arrives intact, with other content


@dataclass(frozen=True, slots=True)
class FaultSetting:
    """A setting of a fault kind.

    Attributes:
        type: `str`, `int`, or `float`, which accepts integers too.
        description: its meaning in one line, with its unit.
        default: the default value; None means not set.
        minimum: the minimum.
        maximum: the maximum.
        choices: the valid values, if restricted.
    """

    type: type[str | int | float]
    description: str
    default: str | float | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault.

    Attributes:
        stage: the part of the response that it affects.
        description: its effect in one line.
        settings: its settings, by name.
        needs_response: True if it needs a response to change; other faults need none.
        needs_tool_calls: True if that response must have tool calls.
    """

    stage: FaultStage
    description: str
    settings: Mapping[str, FaultSetting] = field(default_factory=dict)
    needs_response: bool = False
    needs_tool_calls: bool = False

    @property
    def default_settings(self) -> dict[str, Any]:
        """The default settings."""
        return {name: setting.default for name, setting in self.settings.items()}


def _message_setting(text: str) -> FaultSetting:
    return FaultSetting(str, "the error message", default=text)


def _status_setting(default: int) -> FaultSetting:
    return FaultSetting(int, "the HTTP status", default=default, minimum=500, maximum=599)


def _chunks_before(what: str) -> FaultSetting:
    return FaultSetting(int, f"number of chunks that arrive before {what}", default=1, minimum=0)


_RETRY_AFTER = FaultSetting(float, "seconds after which to retry; no hint unless set", minimum=0)
_RETRY_FORM = FaultSetting(
    str,
    "format of the retry header",
    default=RetryForm.SECONDS.value,
    choices=tuple(form.value for form in RetryForm),
)
_CHUNK_INDEX = FaultSetting(int, "index of the content chunk, from 0", default=0, minimum=0)
_ERROR_TYPE = FaultSetting(
    str,
    "the error, one of the error types",
    default="overloaded",
    choices=("rate_limit", "overloaded", "unavailable", "server_error", "timeout", "invalid_request"),
)
_ERROR_MESSAGE = FaultSetting(str, "the error message; the default of the error unless set")

KINDS: Mapping[str, FaultKind] = MappingProxyType(
    {
        # refused in the provider's own words
        "auth_error": FaultKind(
            FaultStage.ERROR,
            "the API key is not valid",
            {"message": _message_setting("Invalid API key")},
        ),
        "permission_denied": FaultKind(
            FaultStage.ERROR,
            "the API key lacks the permission",
            {"message": _message_setting("Your API key does not have permission to use this model")},
        ),
        "not_found": FaultKind(
            FaultStage.ERROR,
            "the model does not exist",
            {"message": _message_setting("The model does not exist")},
        ),
        "invalid_request": FaultKind(
            FaultStage.ERROR,
            "the request is not valid",
            {
                "message": _message_setting("The request is not valid"),
                "param": FaultSetting(str, "the invalid field; none unless set"),
            },
        ),
        "conflict": FaultKind(
            FaultStage.ERROR,
            "the request conflicts with another",
            {"message": _message_setting("The request conflicts with another")},
        ),
        "too_large": FaultKind(
            FaultStage.ERROR,
            "the request is too large",
            {"message": _message_setting("Request exceeds the maximum size")},
        ),
        "rate_limit": FaultKind(
            FaultStage.ERROR,
            "the rate limit is exceeded",
            {
                "retry_after": FaultSetting(float, "seconds after which to retry", default=60, minimum=0),
                "form": _RETRY_FORM,
                "message": _message_setting("Rate limit exceeded"),
            },
        ),
        "out_of_credits": FaultKind(
            FaultStage.ERROR,
            "the account has no credit left",
            {"message": _message_setting("Your credit balance is too low")},
        ),
        "overloaded": FaultKind(
            FaultStage.ERROR,
            "the provider is overloaded",
            {"retry_after": _RETRY_AFTER, "form": _RETRY_FORM, "message": _message_setting("Overloaded")},
        ),
        "unavailable": FaultKind(
            FaultStage.ERROR,
            "the service is temporarily unavailable",
            {
                "retry_after": _RETRY_AFTER,
                "form": _RETRY_FORM,
                "message": _message_setting("The service is temporarily unavailable"),
            },
        ),
        "server_error": FaultKind(
            FaultStage.ERROR,
            "an internal error of the provider",
            {"status": _status_setting(500), "message": _message_setting("Internal server error")},
        ),
        "timeout": FaultKind(
            FaultStage.ERROR,
            "the provider times out",
            {"message": _message_setting("The request timed out")},
        ),
        # no part of an answer arrives
        "network_unreachable": FaultKind(
            FaultStage.CONNECTION,
            "the connection is reset before any data arrives",
        ),
        "connection_timeout": FaultKind(
            FaultStage.CONNECTION,
            "no data arrives, then the connection is closed",
            {
                "after_ms": FaultSetting(
                    int,
                    "milliseconds until the connection is closed",
                    default=5000,
                    minimum=0,
                ),
            },
        ),
        "hang": FaultKind(FaultStage.CONNECTION, "no data arrives and the connection stays open"),
        "connection_reset": FaultKind(
            FaultStage.CONNECTION,
            "the headers arrive, then the connection is reset",
        ),
        # the received data is not an answer
        "malformed_json": FaultKind(
            FaultStage.BODY,
            "text instead of JSON, as the whole document or as the first content of a stream",
            {"raw": FaultSetting(str, "the text", default='{"type": "message", "content": [')},
        ),
        "empty_body": FaultKind(FaultStage.BODY, "status 200 with an empty body"),
        "html_error": FaultKind(
            FaultStage.BODY,
            "the HTML page of a proxy instead of JSON",
            {"status": _status_setting(502)},
        ),
        "error_in_200": FaultKind(
            FaultStage.BODY,
            "an error with status 200, as the whole document or as the first chunk of a stream",
            {"error": _ERROR_TYPE, "message": _ERROR_MESSAGE},
        ),
        # broken, late or cut short on its way
        "partial_response": FaultKind(
            FaultStage.STREAM,
            "the beginning of a text arrives, then the connection is closed",
            {
                "partial_text": FaultSetting(
                    str,
                    "the text that arrives",
                    default="This is the beginning of a",
                ),
            },
        ),
        "stream_cut": FaultKind(
            FaultStage.STREAM,
            "the connection is closed before the end",
            {"after_chunks": _chunks_before("that")},
            needs_response=True,
        ),
        "reset_at_token": FaultKind(
            FaultStage.STREAM,
            "the connection is reset",
            {"token": FaultSetting(int, "number of tokens that arrive before that", default=1, minimum=0)},
            needs_response=True,
        ),
        "stall": FaultKind(
            FaultStage.STREAM,
            "the stream pauses, then the rest arrives",
            {
                "after_chunks": _chunks_before("that"),
                "for_ms": FaultSetting(
                    int,
                    "length of the pause, in milliseconds",
                    default=30_000,
                    minimum=0,
                ),
            },
            needs_response=True,
        ),
        "slow_drip": FaultKind(
            FaultStage.STREAM,
            "each chunk arrives late",
            {
                "ms_per_chunk": FaultSetting(
                    int,
                    "milliseconds from one chunk to the next",
                    default=1000,
                    minimum=0,
                ),
            },
            needs_response=True,
        ),
        "duplicate_chunk": FaultKind(
            FaultStage.STREAM,
            "a chunk arrives twice",
            {"chunk": _CHUNK_INDEX},
            needs_response=True,
        ),
        "missing_chunk": FaultKind(
            FaultStage.STREAM,
            "a chunk does not arrive",
            {"chunk": _CHUNK_INDEX},
            needs_response=True,
        ),
        "reordered_chunks": FaultKind(
            FaultStage.STREAM,
            "a chunk arrives after the one that follows it",
            {"chunk": _CHUNK_INDEX},
            needs_response=True,
        ),
        "split_utf8": FaultKind(
            FaultStage.STREAM,
            "multi-byte characters are split between two chunks",
            needs_response=True,
        ),
        "error_in_stream": FaultKind(
            FaultStage.STREAM,
            "an error ends a stream after it has begun; a response that is not streamed becomes the error",
            {"after_chunks": _chunks_before("it"), "error": _ERROR_TYPE, "message": _ERROR_MESSAGE},
            needs_response=True,
        ),
        "missing_end": FaultKind(
            FaultStage.STREAM,
            "the end marker of the stream does not arrive",
            needs_response=True,
        ),
        "late_usage": FaultKind(
            FaultStage.STREAM,
            "the usage, and all that follows it, arrives late",
            {"delay_ms": FaultSetting(int, "delay in milliseconds", default=1000, minimum=0)},
            needs_response=True,
        ),
        "missing_usage": FaultKind(FaultStage.STREAM, "no usage arrives", needs_response=True),
        # another answer
        "truncated_arguments": FaultKind(
            FaultStage.ANSWER,
            "the arguments of the last tool call are truncated by the token limit",
            needs_response=True,
            needs_tool_calls=True,
        ),
        "invalid_arguments": FaultKind(
            FaultStage.ANSWER,
            "the arguments of tool calls are valid JSON but violate the schema of the tool",
            needs_response=True,
            needs_tool_calls=True,
        ),
        "refusal": FaultKind(
            FaultStage.ANSWER,
            "the model declines",
            {"message": FaultSetting(str, "text of the refusal", default="I can't help with that.")},
        ),
        "content_filter": FaultKind(FaultStage.ANSWER, "a content filter ends the answer half way"),
        "length": FaultKind(
            FaultStage.ANSWER,
            "the answer ends at the token limit",
            {"tokens": FaultSetting(int, "the token limit", default=1, minimum=0)},
            needs_response=True,
        ),
    },
)
