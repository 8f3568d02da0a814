"""Turns of a Gemini conversation: consecutive contents of one role are one turn.

Clients that store stream chunks as history send an answer back as several contents.
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
    """Consecutive contents of one role.

    Attributes:
        role: the role.
        first: the index of its first content.
        parts: all parts.
    """

    role: Role
    first: int
    parts: Sequence[Mapping[str, Any]]

    def of(self, kind: str) -> list[Any]:
        """Return the values of parts of one kind."""
        return [part[kind] for part in self.parts if kind in part]


def turns_of(contents: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """Return the turns of a conversation."""
    found = []
    for role, group in groupby(enumerate(contents), lambda item: ROLES[item[1].get("role", "")]):
        numbered = list(group)
        parts = [part for _, content in numbered for part in content["parts"]]
        found.append(Turn(role, numbered[0][0], parts))
    return found
