"""Whose turn it is: contents of one side that follow each other are one turn.

Clients that keep the chunks of a stream as the history send an answer back in as many contents as it had
chunks.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.simulator.model import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ROLES", "Turn", "turns_of"]

ROLES = {"": Role.USER, "user": Role.USER, "function": Role.USER, "model": Role.ASSISTANT}


class Turn(NamedTuple):
    """What one side says before the other does.

    Attributes:
        role: which side.
        first: the index of the first content it is made of.
        parts: everything in it.
    """

    role: Role
    first: int
    parts: Sequence[Mapping[str, Any]]

    def of(self, kind: str) -> list[Any]:
        """The parts of one kind, without what is around them."""
        return [part[kind] for part in self.parts if kind in part]


def turns_of(contents: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """The turns of a conversation."""
    found = []
    for role, group in groupby(enumerate(contents), lambda item: ROLES[item[1].get("role", "")]):
        numbered = list(group)
        parts = [part for _, content in numbered for part in content["parts"]]
        found.append(Turn(role, numbered[0][0], parts))
    return found
