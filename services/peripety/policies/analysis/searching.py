"""Candidate requests: from given regions, with variations of what opaque conditions read."""

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
# Batch sizes of the replay. Most often the first request is already right.
_BLOCKS = (1, 15, 240)


def candidates(space: Space, wanted: int, *, accepted: bool = True) -> Iterator[ToolRequest]:
    """Yield requests that are, or may be, in a set, the plainest first, without repeating the previous one.

    Args:
        space: the requests to a tool.
        wanted: the set.
        accepted: True to yield only requests whose arguments the tool accepts.
    """
    chosen = space.example(wanted)
    if chosen is None:
        return
    plain = (space.request(chosen, attempt) for attempt in range(_PLAIN))
    varied = space.varied(chosen, Random(0), _MOST_VARIED)  # noqa: S311 - a fixed seed makes results reproducible
    previous: Any = None
    for request in chain(plain, varied):
        if request is not None and request != previous and (not accepted or space.accepts(request)):
            yield request
            previous = request


def first_where(
    policy: Policy, where: Iterable[tuple[Space, int]], shows: Callable[[Replay], int]
) -> ToolRequest | None:
    """Return the first request from some sets that has a property on the engine, or None.

    Args:
        policy: the policy.
        where: the sets, each with the space of its tool; the sets alternate.
        shows: returns the requests that have the property, as a mask.
    """
    in_turn = zip_longest(*(candidates(space, wanted) for space, wanted in where))
    return first_that(policy, (one for turn in in_turn for one in turn if one is not None), shows)


def first_that(
    policy: Policy, requests: Iterator[ToolRequest], shows: Callable[[Replay], int]
) -> ToolRequest | None:
    """Return the first request that has a property on the engine; None if none of the first 256 has it."""
    for size in _BLOCKS:
        block = [*islice(requests, size)]
        if not block:
            break
        shown = shows(Replay(policy, block))
        if shown:
            return block[(shown & -shown).bit_length() - 1]
    return None
