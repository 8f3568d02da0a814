"""Gemini's explicit caches: contents stored under a name until they expire."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind

if TYPE_CHECKING:
    from peripety.simulator.state import Table

__all__ = ["DEFAULT_TTL", "CachedContent", "Contents"]

# Default lifetime of stored contents, in seconds.
DEFAULT_TTL = 3600


@dataclass(frozen=True, slots=True)
class CachedContent:
    """Stored contents.

    Attributes:
        name: `cachedContents/` and an id.
        owner: the fingerprint of the key that stored them; other keys cannot see them.
        model: the only model that can use them.
        tokens: number of input tokens.
        created: the time of creation, in seconds since 1970.
        updated: the time of the last change.
        expires: the expiry time.
        value: the stored JSON value.
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
        table: the storage.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, content: CachedContent) -> None:
        """Store contents, or update their expiry time."""
        self._table.put(content.name, asdict(content))

    def get(self, name: str, owner: str, now: float) -> CachedContent:
        """Return contents by name.

        Raises:
            ApiError: they do not exist, have expired, or belong to another key.
        """
        row = self._table.get(name)
        if row is None or row["owner"] != owner or row["expires"] <= now:
            raise ApiError(ErrorKind.PERMISSION, "CachedContent not found (or permission denied)")
        return CachedContent(**row)

    def of(self, owner: str, now: float) -> list[CachedContent]:
        """Return the contents of a key, latest first."""
        rows = [CachedContent(**self._table.get(name)) for name in list(self._table)]
        mine = [content for content in rows if content.owner == owner and now < content.expires]
        return sorted(mine, key=lambda content: (-content.created, content.name))

    def extend(self, name: str, owner: str, now: float, *, expires: float) -> CachedContent:
        """Change the expiry time of contents.

        Raises:
            ApiError: they do not exist.
        """
        changed = replace(self.get(name, owner, now), updated=now, expires=expires)
        self.put(changed)
        return changed

    def delete(self, name: str, owner: str, now: float) -> None:
        """Delete contents.

        Raises:
            ApiError: they do not exist.
        """
        self.get(name, owner, now)
        self._table.put(name, None)
