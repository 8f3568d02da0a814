"""Values that grow, for tests of what is shown of them."""

from __future__ import annotations

from typing import Any


def begins(shown: Any, whole: Any) -> bool:
    """Whether a whole value has everything that was shown of it."""
    if isinstance(shown, dict) and isinstance(whole, dict):
        return all(key in whole and begins(value, whole[key]) for key, value in shown.items())
    if isinstance(shown, list) and isinstance(whole, list):
        return len(shown) <= len(whole) and all(map(begins, shown, whole))
    return bool(shown == whole)
