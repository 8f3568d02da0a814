"""Requests to try: from the regions where one has to be, and around what cannot be looked into."""

from __future__ import annotations

from itertools import chain, islice, zip_longest
from random import Random
from typing import TYPE_CHECKING, Any

from peripety.policies.analysis.replaying import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from peripety.policies.analysis.spaces import Space
    from peripety.sim.policies.policy import Policy
    from peripety.sim.policies.types import ToolRequest

__all__ = ["candidates", "first_that", "first_where"]

_PLAIN = 4
_MOST_VARIED = 252
# How many requests are asked about at once: most often the first is right.
_BLOCKS = (1, 15, 240)


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
    plain = (space.request(chosen, attempt) for attempt in range(_PLAIN))
    varied = space.varied(chosen, Random(0), _MOST_VARIED)  # noqa: S311 - the same each time
    previous: Any = None
    for request in chain(plain, varied):
        if request is not None and request != previous and (not accepted or space.accepts(request)):
            yield request
            previous = request


def first_where(
    policy: Policy, where: Iterable[tuple[Space, int]], shows: Callable[[Replay], int]
) -> ToolRequest | None:
    """The first request of some sets that shows something on the engine; None when none is found.

    Args:
        policy: the policy.
        where: the sets, with the tools that they are about, which take turns.
        shows: which of some requests show it, as a mask.
    """
    in_turn = zip_longest(*(candidates(space, wanted) for space, wanted in where))
    return first_that(policy, (one for turn in in_turn for one in turn if one is not None), shows)


def first_that(
    policy: Policy, requests: Iterator[ToolRequest], shows: Callable[[Replay], int]
) -> ToolRequest | None:
    """The first of some requests that shows something on the engine; None if none of the first 256 does."""
    for size in _BLOCKS:
        block = [*islice(requests, size)]
        if not block:
            break
        shown = shows(Replay(policy, block))
        if shown:
            return block[(shown & -shown).bit_length() - 1]
    return None
