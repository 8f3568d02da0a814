"""Error mapping: converts provider errors to ours, each with a remedy."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
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
from peripety.gateway.providers.retry_after import parse_retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.providers.provider import Endpoint


_REQUEST_TIMEOUT = 408
_TOO_MANY_REQUESTS = 429
_MAX_MESSAGE_LENGTH = 300
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class ErrorVocabulary:
    """Error vocabulary of a provider, found in an error's `code`, `type` or `status`, or in its `details`.

    Attributes:
        statuses: names inside streams, with the equivalent HTTP status.
        rejected_keys: names of a rejected key with a misleading status.
        permanent_limits: names of limits that do not reset with time.
        permanent_limit_words: phrases of such a limit in a message without a name.
        too_long: names of a prompt that exceeds the context window.
        too_long_words: phrases of that in a message without a name.
    """

    statuses: Mapping[str, int] = field(default_factory=dict)
    rejected_keys: frozenset[str] = frozenset()
    permanent_limits: frozenset[str] = frozenset()
    permanent_limit_words: re.Pattern[str] | None = None
    too_long: frozenset[str] = frozenset()
    too_long_words: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class ErrorMapper:
    """Mapper from errors of one server to our errors, with remedies.

    Attributes:
        endpoint: the server; its key is redacted from messages.
        model: the requested model.
        vocabulary: the server's names of errors.
    """

    endpoint: Endpoint
    model: str
    vocabulary: ErrorVocabulary

    def from_response(self, status: int, headers: Mapping[str, str], body: bytes) -> PeripetyError:
        """Return the error for a status other than 200."""
        reported = _error_object(body)
        wait = parse_retry_after(headers, reported, time.time(), is_rate_limited=status == _TOO_MANY_REQUESTS)
        error = self._map(status, reported, wait)
        told = {name.lower(): value for name, value in headers.items()}.get("x-should-retry")
        if told in {"true", "false"}:
            error.details["should_retry"] = told
        return error

    def from_stream(self, error: Any) -> PeripetyError:
        """Return the error for an `error` object inside a stream."""
        reported = error if isinstance(error, dict) else {"message": str(error)}
        code = reported.get("code")
        if not isinstance(code, int):
            known = self.vocabulary.statuses
            # Of several names, the one for a bad request is the least specific: some servers use it for all
            # errors.
            code = max((known[name] for name in _error_names(reported) if name in known), default=500)
        wait = parse_retry_after({}, reported, time.time(), is_rate_limited=False)
        return self._map(code, reported, wait)

    def _map(self, status: int, reported: Mapping[str, Any], retry_after: float | None) -> PeripetyError:
        told = self._redacted_message(reported.get("message"))
        if _error_names(reported) & self.vocabulary.rejected_keys:
            return self._rejected_key_error(status)
        match status:
            case 401 | 403:
                error = self._rejected_key_error(status)
            case 404:
                error = self._unknown_model_error(told)
            case 402:
                error = self._no_credit_error()
            case 429:
                permanent = self._is_permanent(reported)
                error = self._no_credit_error() if permanent else self._rate_limit_error(retry_after)
            case 409 | 425:
                error = self._busy_error(status, told, retry_after)
            case _ if status in range(300, 400):
                error = self._redirect_error(status)
            case _ if status in range(400, 500) and status != _REQUEST_TIMEOUT:
                error = self._rejected_request_error(status, told, too_long=self._is_too_long(reported))
            case _:
                error = self._server_error(status, told, retry_after)
        return error

    def _is_permanent(self, reported: Mapping[str, Any]) -> bool:
        vocabulary = self.vocabulary
        return _matches_vocabulary(reported, vocabulary.permanent_limits, vocabulary.permanent_limit_words)

    def _is_too_long(self, reported: Mapping[str, Any]) -> bool:
        return _matches_vocabulary(reported, self.vocabulary.too_long, self.vocabulary.too_long_words)

    def _rejected_key_error(self, status: int) -> PeripetyError:
        # The server's message may contain part of the key, so it is not passed on.
        return FailedPreconditionError(
            f"provider {self.endpoint.name}: credentials rejected ({status}); check"
            f" {self.endpoint.key_variable}",
            code="PROVIDER_REFUSED_KEY",
        )

    def _unknown_model_error(self, detail: str) -> PeripetyError:
        return NotFoundError(
            f"provider {self.endpoint.name}: unknown model '{self.model}', or wrong API URL; check"
            f" MODEL_NAME and {self.endpoint.base_variable}{detail}",
            code="MODEL_NOT_FOUND",
        )

    def _no_credit_error(self) -> PeripetyError:
        return ResourceExhaustedError(
            f"provider {self.endpoint.name}: the account has no credit left; waiting does not help",
            code="PROVIDER_QUOTA_EXHAUSTED",
        )

    def _rate_limit_error(self, retry_after: float | None) -> PeripetyError:
        return ResourceExhaustedError(
            f"provider {self.endpoint.name}: rate limit of requests reached; try again later",
            code="PROVIDER_RATE_LIMITED",
            retry_after=retry_after,
        )

    def _redirect_error(self, status: int) -> PeripetyError:
        return FailedPreconditionError(
            f"provider {self.endpoint.name}: redirect ({status}) not followed, because it would receive"
            f" the key; set {self.endpoint.base_variable} to the final URL",
            code="PROVIDER_REDIRECTS",
        )

    def _rejected_request_error(self, status: int, detail: str, *, too_long: bool) -> PeripetyError:
        if too_long:
            return InvalidArgumentError(
                f"prompt exceeds the context of the model '{self.model}'; shorten it, or use"
                f" another model{detail}",
                code="CONTEXT_LENGTH_EXCEEDED",
            )
        return InvalidArgumentError(
            f"provider {self.endpoint.name}: request rejected ({status}){detail}",
            code="PROVIDER_REFUSED_REQUEST",
        )

    def _busy_error(self, status: int, detail: str, retry_after: float | None) -> PeripetyError:
        return UnavailableError(
            f"provider {self.endpoint.name}: busy ({status}); try again{detail}",
            code="PROVIDER_BUSY",
            retry_after=retry_after,
        )

    def _server_error(self, status: int, detail: str, retry_after: float | None) -> PeripetyError:
        return UnavailableError(
            f"provider {self.endpoint.name}: server failed ({status}){detail}",
            code="PROVIDER_FAILED",
            retry_after=retry_after,
        )

    def _redacted_message(self, message: Any) -> str:
        """Return the server's message on one line, with the key redacted."""
        if not isinstance(message, str) or not message.strip():
            return ""
        if self.endpoint.key is not None and self.endpoint.key.get_secret_value():
            message = message.replace(self.endpoint.key.get_secret_value(), "***")
        return ": " + _UNPRINTABLE.sub(" ", message).strip()[:_MAX_MESSAGE_LENGTH]


def _error_object(body: bytes) -> Mapping[str, Any]:
    """Return the `error` object of a body.

    Servers may wrap it, send it bare, or send an HTML page instead.
    """
    try:
        document = jiter.from_json(body)
    except ValueError:
        return {}
    error = document.get("error", document) if isinstance(document, dict) else document
    return error if isinstance(error, dict) else {"message": error}


def _matches_vocabulary(
    reported: Mapping[str, Any],
    names: frozenset[str],
    words: re.Pattern[str] | None,
) -> bool:
    told = str(reported.get("message"))
    return bool(_error_names(reported) & names) or (words is not None and words.search(told) is not None)


def _error_names(reported: Mapping[str, Any]) -> set[str]:
    details = reported.get("details")
    inner = [details.get("error_code")] if isinstance(details, dict) else []
    listed = details if isinstance(details, list) else []
    inner += [detail.get("reason") for detail in listed if isinstance(detail, dict)]
    return {
        str(name) for name in (reported.get("code"), reported.get("type"), reported.get("status"), *inner)
    }
