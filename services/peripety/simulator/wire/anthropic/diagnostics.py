"""Cache diagnostics: the reason that the prompt cache was not used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.truth.cache.diagnosis import Change, Outline
from peripety.simulator.truth.keys import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.model import Reply, Request
    from peripety.simulator.wire.anthropic.body import Body
    from peripety.simulator.wire.base import Service

__all__ = ["diagnose", "diagnostics", "remembered"]

_TABLE = "anthropic_messages"
# Changes without further details.
_BARE = (Change.OTHER, Change.UNKNOWN)


def diagnose(body: Body, key: str, service: Service) -> Mapping[str, Any] | None:
    """Return the change since the named request, and how much of that request was cached.

    None if the caller did not request diagnostics.
    """
    if body.diagnosis is None:
        return None
    previous = body.diagnosis.previous
    if previous is None:
        return {"change": None, "cached": 0}
    row = service.objects(_TABLE).get(_name(key, previous))
    if row is None:
        return {"change": Change.UNKNOWN, "cached": 0}
    change = Outline.from_json(row["outline"]).change(_model(body.model, body.speed), body.prompt)
    return {"change": change, "cached": row["cached"]}


def diagnostics(request: Request, reply: Reply) -> dict[str, Any] | None:
    """Return the member `diagnostics` of an answer."""
    found = request.options["diagnosis"]
    if found is None:
        return None
    change: Change | None = found["change"]
    if change is None:
        return {"cache_miss_reason": None}
    reason: dict[str, Any] = {"type": change.value}
    if change not in _BARE:
        reason["cache_missed_input_tokens"] = max(0, found["cached"] - reply.usage.read)
    return {"cache_miss_reason": reason}


def remembered(request: Request, reply: Reply) -> Mapping[str, Mapping[str, Any]]:
    """Return the data to store for later diagnostics, by the id of the answer."""
    if request.options["diagnosis"] is None:
        return {}
    outline = Outline.of(_model(request.model, request.options["speed"]), request.prompt)
    cached = reply.usage.read + sum(reply.usage.written.values())
    row = {"outline": outline.to_json(), "cached": cached}
    return {_TABLE: {_name(request.key, f"msg_{reply.id}"): row}}


def _model(name: str, speed: str) -> str:
    return f"{name} {speed}"


def _name(key: str, message: str) -> str:
    return f"{fingerprint(key)} {message}"
