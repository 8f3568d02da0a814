"""Deliveries for exchanges, errors and documents."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from peripety.simulator.delivery.http import Delivery, Head, document, refused, streamed
from peripety.simulator.delivery.plan import Plan, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.exchange import Exchange
    from peripety.simulator.model import ApiError
    from peripety.simulator.wire.base import Document, Wire

__all__ = ["of_document", "of_error", "of_exchange"]


def of_exchange(wire: Wire, exchange: Exchange, now: float) -> Delivery:
    """Return the delivery of an exchange. `now` is by the simulator's clock."""
    request, reply, manner = exchange.request, exchange.reply, exchange.manner
    headers = wire.headers(exchange.id, exchange.allowance, now)
    if exchange.error is not None:
        return refused(wire, exchange.error, headers, exchange.id, time.time(), manner.delay_ms)
    if reply is None:
        raise ValueError("an exchange needs a reply or an error")
    deliver = streamed if request.stream else document
    return deliver(wire, request, reply, manner, headers, exchange.id)


def of_error(wire: Wire, error: ApiError, request_id: str, now: float) -> Delivery:
    """Return the delivery of an error for an invalid request."""
    return refused(wire, error, wire.headers(request_id, None, now), request_id, time.time())


def of_document(answer: Document, headers: Mapping[str, str]) -> Delivery:
    """Return the delivery of a document, without delay, with the headers of every answer."""
    head = Head(answer.status, answer.media_type, {**headers, **answer.headers}, len(answer.body))
    return Delivery(head, Plan([Step(0, answer.body)]))
