"""Gemini's explicit caches: contents that are stored under a name, until they expire."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind

if TYPE_CHECKING:
    from peripety.simulator.state import Table

__all__ = ["DEFAULT_TTL", "CachedContent", "Contents"]

# How long contents are stored whose creator does not say so, in seconds.
DEFAULT_TTL = 3600


@dataclass(frozen=True, slots=True)
class CachedContent:
    """Stored contents.

    Attributes:
        name: `cachedContents/` and an id.
        owner: the fingerprint of the key that stored them; to others they are not there.
        model: the only model they can be used with.
        tokens: how many input tokens they are.
        created: when they were stored, in seconds since 1970.
        updated: when they were changed last.
        expires: when they are forgotten.
        value: what was stored, as a JSON value.
    """

    name: str
    owner: str
    model: str
    tokens: int
    created: float
    updated: float
    expires: float
    value: Any


class Contents:
    """All stored contents.

    Args:
        table: keeps them.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, content: CachedContent) -> None:
        """Store contents, or change when they expire."""
        self._table.put(content.name, asdict(content))

    def get(self, name: str, owner: str, now: float) -> CachedContent:
        """Look contents up.

        Raises:
            ApiError: there are none of that name, not any more, or they are somebody else's.
        """
        row = self._table.get(name)
        if row is None or row["owner"] != owner or row["expires"] <= now:
            raise ApiError(ErrorKind.PERMISSION, "CachedContent not found (or permission denied)")
        return CachedContent(**row)

    def of(self, owner: str, now: float) -> list[CachedContent]:
        """What a key has stored, from the latest on."""
        rows = [CachedContent(**self._table.get(name)) for name in list(self._table)]
        mine = [content for content in rows if content.owner == owner and now < content.expires]
        return sorted(mine, key=lambda content: (-content.created, content.name))

    def extend(self, name: str, owner: str, now: float, *, expires: float) -> CachedContent:
        """Let contents expire at another time.

        Raises:
            ApiError: they are not there.
        """
        changed = replace(self.get(name, owner, now), updated=now, expires=expires)
        self.put(changed)
        return changed

    def delete(self, name: str, owner: str, now: float) -> None:
        """Forget contents.

        Raises:
            ApiError: they are not there.
        """
        self.get(name, owner, now)
        self._table.put(name, None)
