"""What a server's refusal means, and what to do about it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jiter

from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.providers.hints import seconds_to_wait

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

__all__ = ["Failures"]

_PERMANENT_LIMITS = frozenset(
    {"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached"}
)
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TIMED_OUT = 408
_TOO_MANY = 429
_STATUS_BY_NAME = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_exceeded": 429,
    **dict.fromkeys(_PERMANENT_LIMITS, 429),
    **dict.fromkeys(_TOO_LONG, 400),
}
_MAX_TOLD = 300
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Failures:
    """Turns the refusals of one server into errors that say what to do.

    Attributes:
        server: name of the provider.
        model: the model that was asked for.
        api_key: the key, so that an echo of it is never repeated.
    """

    server: str
    model: str
    api_key: SecretStr | None

    def by_status(self, status: int, headers: Mapping[str, str], body: bytes) -> PeripetyError:
        """The error for a status other than 200."""
        reported = _reported(body)
        wait = seconds_to_wait(headers, reported, time.time(), limited=status == _TOO_MANY)
        return self._explain(status, reported, wait)

    def in_stream(self, error: Any) -> PeripetyError:
        """The error for an `error` object inside a stream."""
        reported = error if isinstance(error, dict) else {"message": str(error)}
        known = [_STATUS_BY_NAME[name] for name in _names(reported) if name in _STATUS_BY_NAME]
        code = reported.get("code")
        return self._explain(
            code if isinstance(code, int) else next(iter(known), 500),
            reported,
            seconds_to_wait({}, reported, time.time(), limited=False),
        )

    def _explain(self, status: int, reported: Mapping[str, Any], retry_after: float | None) -> PeripetyError:
        told = self._told(reported.get("message"))
        names = _names(reported)
        match status:
            case 401 | 403:
                error = self._refused_key(status)
            case 404:
                error = self._unknown_model(told)
            case 402:
                error = self._out_of_credit()
            case 429:
                error = self._out_of_credit() if names & _PERMANENT_LIMITS else self._too_many(retry_after)
            case 409 | 425:
                error = self._busy(status, told, retry_after)
            case _ if status in range(300, 400):
                error = self._redirects(status)
            case _ if status in range(400, 500) and status != _TIMED_OUT:
                error = self._refused_request(status, told, too_long=bool(names & _TOO_LONG))
            case _:
                error = self._failed(status, told, retry_after)
        return error

    def _refused_key(self, status: int) -> PeripetyError:
        # What the server says here may repeat a part of the key, so it is not passed on.
        return FailedPreconditionError(
            f"The {self.server} server refused the credentials ({status}): check OPENAI_API_KEY",
            code="PROVIDER_REFUSED_KEY",
        )

    def _unknown_model(self, told: str) -> PeripetyError:
        return NotFoundError(
            f"The {self.server} server does not know the model '{self.model}', or the URL is not that of its"
            f" API: check MODEL_NAME and OPENAI_API_BASE{told}",
            code="MODEL_NOT_FOUND",
        )

    def _out_of_credit(self) -> PeripetyError:
        return ResourceExhaustedError(
            f"The account at the {self.server} server has no credit left; waiting does not help",
            code="PROVIDER_QUOTA_EXHAUSTED",
        )

    def _too_many(self, retry_after: float | None) -> PeripetyError:
        return ResourceExhaustedError(
            f"The {self.server} server limits the rate of requests; try again later",
            code="PROVIDER_RATE_LIMITED",
            retry_after=retry_after,
        )

    def _redirects(self, status: int) -> PeripetyError:
        return FailedPreconditionError(
            f"The {self.server} server redirects ({status}); that is not followed because the key would go"
            " along: set OPENAI_API_BASE to the final URL",
            code="PROVIDER_REDIRECTS",
        )

    def _refused_request(self, status: int, told: str, *, too_long: bool) -> PeripetyError:
        if too_long:
            return InvalidArgumentError(
                f"The prompt does not fit into the context of the model '{self.model}': shorten it, or use"
                f" another model{told}",
                code="CONTEXT_LENGTH_EXCEEDED",
            )
        return InvalidArgumentError(
            f"The {self.server} server refused the request ({status}){told}", code="PROVIDER_REFUSED_REQUEST"
        )

    def _busy(self, status: int, told: str, retry_after: float | None) -> PeripetyError:
        return UnavailableError(
            f"The {self.server} server is busy with something else ({status}); try again{told}",
            code="PROVIDER_BUSY",
            retry_after=retry_after,
        )

    def _failed(self, status: int, told: str, retry_after: float | None) -> PeripetyError:
        return UnavailableError(
            f"The {self.server} server failed ({status}){told}",
            code="PROVIDER_FAILED",
            retry_after=retry_after,
        )

    def _told(self, message: Any) -> str:
        """The server's own words, on one line, without the key."""
        if not isinstance(message, str) or not message.strip():
            return ""
        if self.api_key is not None and self.api_key.get_secret_value():
            message = message.replace(self.api_key.get_secret_value(), "***")
        return ": " + _UNPRINTABLE.sub(" ", message).strip()[:_MAX_TOLD]


def _reported(body: bytes) -> Mapping[str, Any]:
    """The `error` object of a body; servers wrap it, leave it bare, or send a page instead."""
    try:
        document = jiter.from_json(body)
    except ValueError:
        return {}
    error = document.get("error", document) if isinstance(document, dict) else document
    return error if isinstance(error, dict) else {"message": error}


def _names(reported: Mapping[str, Any]) -> set[str]:
    return {str(reported.get("code")), str(reported.get("type"))}
