"""Fault recognition: the fault whose emulated error is most similar to an error of a provider."""

from __future__ import annotations

import json
import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from peripety.simulator.failures import KINDS, Place, refusal
from peripety.simulator.model import RetryForm
from peripety.simulator.scenario.model import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.simulator.wire.base import Wire

__all__ = ["inside_answer", "instead_of_answer"]

_SERVER = 500
_ERRORS = tuple(name for name, kind in KINDS.items() if kind.place is Place.ERROR)
_DELAY = re.compile(r'"retryDelay"\s*:\s*"([\d.]+)s"')
_NOT_COMPARED = frozenset({"message", "request_id"})


def instead_of_answer(
    wire: Wire, status: int, headers: Mapping[str, str], body: bytes, now: float
) -> Failure:
    """Return the fault for an error response.

    Args:
        wire: the API of the error.
        status: the HTTP status.
        headers: the headers, names in lower case.
        body: the body.
        now: seconds since 1970, for retry dates.
    """
    try:
        value = json.loads(body)
    except ValueError:
        if status >= _SERVER:
            return _failure("html_error", status=status)
        value = {"error": body.decode(errors="replace")[:200]}
    name = _likest(wire, _ERRORS, value, status)
    settings: dict[str, Any] = {"message": _message(value)}
    if name == "server_error":
        settings["status"] = status
    if "retry_after" in KINDS[name].settings:
        settings |= _retry(name, headers, body.decode(errors="replace"), now)
    return _failure(name, **settings)


def inside_answer(wire: Wire, value: Any, chunks: int, *, stream: bool) -> Failure:
    """Return the fault for an error inside a successful response.

    Args:
        wire: the API of the error.
        value: the error.
        chunks: number of content chunks before it.
        stream: True if the answer is streamed.
    """
    choices = KINDS["error_in_stream"].settings["error"].choices
    settings = {"error": _likest(wire, choices, value, None), "message": _message(value)}
    if not stream:
        return _failure("error_in_200", **settings)
    return _failure("error_in_stream", after_chunks=chunks, **settings)


def _failure(name: str, **settings: Any) -> Failure:
    return Failure(name, {**KINDS[name].defaults, **settings})


def _likest(wire: Wire, names: Iterable[str], value: Any, status: int | None) -> str:
    """Return the kind with the most similar error among those with the same status."""
    found = set(_leaves(value))
    at_fault = status is not None and status >= _SERVER
    best, most = "overloaded", 0.0
    if status is not None:
        best, most = "server_error" if at_fault else "invalid_request", float("-inf")
    # A server error accepts any status, so it is tried last.
    for name in sorted(names, key="server_error".__eq__):
        told = {"status": status} if name == "server_error" and at_fault else {}
        error = refusal(_failure(name, **told), stream=False)
        if error is None:
            continue
        written = wire.error(error, "", now=0)
        leaves = set(_leaves(json.loads(written.body)))
        likeness = len(found & leaves) - len(leaves - found)
        if status in {None, error.status or written.status} and likeness > most:
            best, most = name, likeness
    return best


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    match value:
        case dict():
            for key, each in value.items():
                if key not in _NOT_COMPARED:
                    yield from _leaves(each, key)
        case list():
            for each in value:
                yield from _leaves(each, name)
        case _:
            yield name, value


def _message(value: Any) -> str:
    while isinstance(value, list) and value:
        value = value[0]
    error = value.get("error", value) if isinstance(value, dict) else value
    message = error.get("message", error) if isinstance(error, dict) else error
    return message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)


def _retry(name: str, headers: Mapping[str, str], body: str, now: float) -> dict[str, Any]:
    """Return the retry settings; a delay of 0 if the fault requires one and the provider sent none."""
    milliseconds, after = headers.get("retry-after-ms"), headers.get("retry-after")
    if milliseconds is not None:
        return {"retry_after": float(milliseconds) / 1000, "form": RetryForm.MILLISECONDS.value}
    if after is not None:
        try:
            return {"retry_after": float(after)}
        except ValueError:
            seconds = max(0.0, parsedate_to_datetime(after).timestamp() - now)
            return {"retry_after": float(round(seconds)), "form": RetryForm.DATE.value}
    if delay := _DELAY.search(body):
        return {"retry_after": float(delay[1])}
    return {"retry_after": 0.0} if KINDS[name].defaults["retry_after"] is not None else {}
