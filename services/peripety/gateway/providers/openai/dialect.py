"""How the servers that speak Chat Completions differ, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GENERIC", "OPENAI", "Dialect"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of server.

    Attributes:
        name: the name of the provider.
        limit_field: the field that limits the length of the answer.
        needs_key: whether a request without a key is hopeless.
        strict_subset: whether a schema has to be brought into the form of OpenAI's strict mode to be held to.
        default_base_url: where it answers when nobody says otherwise.
    """

    name: str
    limit_field: str
    needs_key: bool
    strict_subset: bool = False
    default_base_url: str | None = None


OPENAI = Dialect(
    "openai",
    "max_completion_tokens",
    needs_key=True,
    strict_subset=True,
    default_base_url="https://api.openai.com/v1",
)
GENERIC = Dialect("generic", "max_tokens", needs_key=False)
