"""How the servers that speak Chat Completions differ, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GENERIC", "OPENAI", "Dialect"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of server.

    Attributes:
        limit_field: the field that limits the length of the answer.
        strict_subset: whether a schema has to be brought into the form of OpenAI's strict mode to be held to.
    """

    limit_field: str
    strict_subset: bool = False


OPENAI = Dialect("max_completion_tokens", strict_subset=True)
GENERIC = Dialect("max_tokens")
