"""Requests to try: from the regions where one has to be, and around what cannot be looked into."""

from __future__ import annotations

from itertools import chain, islice
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.policies.analysis.spaces import Space
    from peripety.sim.policies.types import ToolRequest

__all__ = ["MOST_TRIED", "candidates"]

MOST_TRIED = 256
_PLAIN = 4


def candidates(space: Space, wanted: int, *, accepted: bool = True) -> Iterator[ToolRequest]:
    """Requests that are, or may be, in a set, the plainest first; none twice in a row.

    Args:
        space: the requests to a tool.
        wanted: the set.
        accepted: whether only requests will do whose arguments the tool accepts.
    """
    chosen = space.example(wanted)
    if chosen is None:
        return
    found = (space.request(chosen, attempt) for attempt in range(_PLAIN))
    tried = islice(chain(found, space.varied(chosen, Random(0), MOST_TRIED)), MOST_TRIED)  # noqa: S311 - repeatable
    previous: Any = None
    for request in tried:
        if request is not None and request != previous and (not accepted or space.accepts(request)):
            yield request
            previous = request
