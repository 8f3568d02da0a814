"""Warnings from the craft of game masters, each only where its key is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.errors import Finding


def check_craft(_spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield the warnings about a written document with lowered keys."""
    yield from ()
