"""One request in progress: its answer, and callbacks for the moments of its delivery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.simulator.delivery.plan import Manner
    from peripety.simulator.model import ApiError, Block, Reply, Request
    from peripety.simulator.truth.limits import Allowance

__all__ = ["Exchange"]


def _nothing(_answer: Sequence[Block] = ()) -> None:
    """Do nothing: a rejected request has no callbacks."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The decision about a request: a reply or an error.

    The delivery calls `started` when the first byte of the answer leaves, then either `finished` or
    `abandoned`. Extra calls are harmless.

    Attributes:
        request: the request.
        id: 24 letters and digits that identify the exchange.
        manner: the delivery settings, including the fault.
        label: the source of the answer: `response[i]`, `response[i].turn[j]`, `default`; None without a
            match.
        reply: the answer.
        error: the error sent instead.
        allowance: the remaining rate limits; None without limits.
        started: called when the answer starts to leave.
        finished: called when the answer is sent, with the answer as prompt blocks if the provider caches
            these.
        abandoned: called if the answer is not sent completely.
    """

    request: Request
    id: str
    manner: Manner
    label: str | None = None
    reply: Reply | None = None
    error: ApiError | None = None
    allowance: Allowance | None = None
    started: Callable[[], None] = _nothing
    finished: Callable[[Sequence[Block]], None] = _nothing
    abandoned: Callable[[], None] = _nothing
