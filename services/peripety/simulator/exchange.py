"""One request under way: what answers it, and the moments of its delivery that the simulator has to know."""

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
    """What has not been let in has no moments."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the simulator has decided about a request: a reply or an error, one of the two.

    Whoever delivers it calls `started` when the first byte of the answer leaves, and then either `finished`
    or `abandoned`. Calling more than that does no harm.

    Attributes:
        request: the request.
        id: 24 letters and digits that identify the exchange.
        manner: how it is delivered, and what goes wrong with that.
        label: what answers: `response[i]`, `response[i].turn[j]`, `default`; None if nothing does.
        reply: the answer.
        error: what is answered instead.
        allowance: what is left of the limits; None where there are none.
        started: the answer begins to leave.
        finished: all of it has left; told with the answer as blocks of a prompt that repeats it, if the
            provider caches these.
        abandoned: it will not leave, or not all of it.
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
